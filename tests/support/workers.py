"""Workers as they introduce themselves to coordinators."""

from __future__ import annotations

from floeberg.protocol.registration import RegisterWorker

NOW_MS = 1_700_000_000_000
"""When their messages are made."""


def introduction(name: str = "w1", location: str | None = None) -> RegisterWorker:
    return RegisterWorker(
        worker_id=name,
        location=location or f"grpc+tcp://{name}:8816",
        max_streams=8,
        max_bytes=1000,
        version="1",
        zone="z1",
    )
