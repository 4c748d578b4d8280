"""A worker's status page: its facts as a person looks at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from floeberg.process.page import (
    Column,
    Html,
    Page,
    ago,
    amount,
    badge,
    caches_table,
    certificates_table,
    code,
    count,
    duration,
    element,
    errors_table,
    joined,
    progress,
    rate,
    section,
    table,
    tile,
    tiles,
)
from floeberg.protocol.status import SeatEntry, StreamEntry, WorkerStatus

_SHOWN = 25  # the rest is in the JSON
_LONG_WAIT_SECONDS = 5.0


def worker_page(status: WorkerStatus) -> Page:
    """Return the page of `status`; ages are as of the moment of `status`."""
    now_ms = status.started_ms + int(status.uptime_seconds * 1000)
    return Page(
        title=f"floeberg worker {status.worker}",
        heading=joined(_heading(status)),
        content=joined(_content(status, now_ms)),
    )


def _heading(status: WorkerStatus) -> Iterator[Html]:
    yield element("h1", "floeberg worker")
    yield badge(status.state, "good" if status.state == "ready" else "busy")
    zone = f" · zone {status.zone}" if status.zone else ""
    yield element(
        "p",
        code(status.worker),
        f" · version {status.version} · up {duration(status.uptime_seconds)}{zone} · serves ",
        code(status.location),
    )


def _content(status: WorkerStatus, now_ms: int) -> Iterator[Html]:
    sending = [s for s in status.running if s.waits_seconds < _LONG_WAIT_SECONDS]
    yield tiles(
        tile("streams", count(status.streams), f"of {count(status.max_streams)} at once"),
        tile("memory of streams", amount(status.bytes_in_flight), f"of {amount(status.max_bytes)}"),
        tile("wait for their clients", count(len(status.running) - len(sending)), "streams"),
        tile("sent since the start", amount(status.bytes), f"{count(status.rows)} rows"),
        tile(
            "coordinators",
            f"{count(status.coordinators)} of {count(len(status.seats))}",
            "have this worker",
        ),
        tile("streams since the start", count(sum(status.ended.values())), _outcomes(status.ended)),
    )
    yield section(
        "Streams under way",
        _streams(status.running, now_ms, "Streams under way, the oldest first", "None right now."),
        note="Rates are means since a stream began, at the pace at which its client takes rows.",
    )
    yield section(
        "Last streams",
        _streams(
            status.recent[:_SHOWN],
            now_ms,
            "The last streams that ended, the newest first",
            "None since the start.",
        ),
    )
    yield element(
        "div",
        section("Coordinators", _seats(status.seats)),
        section("Caches", caches_table(status.caches)),
        section("Errors", errors_table(status.errors)),
        class_="pair",
    )
    if status.certificates:
        yield section("Certificates", certificates_table(status.certificates, now_ms))


def _outcomes(ended: dict[str, int]) -> str:
    return ", ".join(f"{count(n)} {outcome}" for outcome, n in sorted(ended.items()) if n)


def _streams(streams: Sequence[StreamEntry], now_ms: int, caption: str, empty: str) -> Html:
    return table(
        caption,
        [
            Column("table"),
            Column("for"),
            Column("state"),
            Column("task"),
            Column("rows", is_number=True),
            Column("bytes", is_number=True),
            Column("rate", is_number=True),
            Column("took", is_number=True),
            Column("began", is_number=True),
            Column("request"),
        ],
        (
            (
                s.table,
                s.principal or "",
                _state(s),
                _task(s),
                count(s.rows),
                amount(s.bytes),
                rate(s.bytes_per_second),
                duration(s.seconds),
                ago(now_ms - s.began_ms),
                code(s.request_id) if s.request_id else "",
            )
            for s in streams
        ),
        empty=empty,
    )


def _task(stream: StreamEntry) -> str:
    text = f"{count(stream.task)} of {count(stream.tasks)}"
    return progress(stream.task, stream.tasks, text) if stream.outcome is None else text


def _state(stream: StreamEntry) -> str:
    match stream.outcome:
        case None if stream.waits_seconds >= _LONG_WAIT_SECONDS:
            return badge(f"client takes nothing for {duration(stream.waits_seconds)}", "busy")
        case None:
            return badge("sending", "good")
        case "done":
            return "done"
        case "cancelled":
            return badge("cancelled", "plain")
        case "failed":
            return badge(stream.code or "failed", "bad")


def _seats(seats: Sequence[SeatEntry]) -> Html:
    return table(
        "Coordinators that this worker was told of",
        [Column("coordinator"), Column("state")],
        (
            (
                code(seat.coordinator),
                badge("registered", "good") if seat.is_member else badge("not registered", "bad"),
            )
            for seat in seats
        ),
        empty="None is configured: only tickets at hand are served.",
    )
