"""What a worker can be told."""

from __future__ import annotations

from dataclasses import dataclass

from floeberg.process.config import option
from floeberg.process.service import ServiceConfig


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(ServiceConfig):
    """The configuration of one worker process."""

    coordinator: tuple[str, ...] = option(
        (),
        "The coordinators to register with, as Flight URIs (`grpc+tcp://host:8815`). Repeat the"
        " flag for several.",
    )
    zone: str | None = option(None, "The zone that this worker runs in, for placement.")
    max_streams: int = option(
        32,
        "How many streams to serve at once. One more is refused, never queued: a client that opens"
        " all its endpoints and reads them in turn would wait for itself.",
        minimum=1,
    )
    memory_bytes: int = option(
        3 << 30,
        "How much memory the process is to stay below. A stream that might go over it is refused:"
        " each counts for what it takes, and for 64 MiB more until its first batch.",
        minimum=256 << 20,
    )
    fetch_ahead_bytes: int = option(
        32 << 20,
        "About how many bytes each stream may fetch from an object store before they are decoded;"
        " with 0, storage is asked only when there is need. A window of up to 16 MiB is fetched at"
        " once in any case.",
        minimum=0,
    )
