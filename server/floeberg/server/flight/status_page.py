"""A coordinator's status page: its facts as a person looks at them."""

from __future__ import annotations

import re
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
    filling,
    joined,
    progress,
    rate,
    ratio,
    section,
    table,
    tile,
    tiles,
)
from floeberg.protocol.status import (
    PlanFacts,
    QueryEntry,
    ReadFacts,
    RunningPlan,
    Status,
    WorkerEntry,
)

_SHOWN = 25  # the rest is in the JSON

# what a browser can follow; a wildcard is where a worker listens, not where it is
_PAGE_OF_WORKER = re.compile(r"https?://(?!0\.0\.0\.0|\[::\])[A-Za-z0-9.\-\[\]:]+")


def coordinator_page(status: Status) -> Page:
    """Return the page of `status`; ages are as of the moment of `status`."""
    now_ms = status.started_ms + int(status.uptime_seconds * 1000)
    return Page(
        title=f"floeberg coordinator {status.coordinator_id}",
        heading=joined(_heading(status)),
        content=joined(_content(status, now_ms)),
    )


def _heading(status: Status) -> Iterator[Html]:
    yield element("h1", "floeberg coordinator")
    yield badge(status.state, "good" if status.state == "ready" else "busy")
    catalogs = ", ".join(f"{c.name} ({c.kind})" for c in status.catalogs)
    yield element(
        "p",
        code(status.coordinator_id),
        f" · version {status.version} · up {duration(status.uptime_seconds)}"
        f" · catalogs: {catalogs}",
    )


def _content(status: Status, now_ms: int) -> Iterator[Html]:
    ready = sum(w.state == "ready" for w in status.workers)
    asked = sum(status.queries.values())
    yield tiles(
        tile("workers ready", count(ready), _draining(len(status.workers) - ready)),
        tile(
            "streams",
            count(sum(w.streams for w in status.workers)),
            f"of {count(sum(w.max_streams for w in status.workers))} at once",
        ),
        tile(
            "sent by workers",
            rate(sum(w.bytes_per_second for w in status.workers)),
            f"{count(round(sum(w.rows_per_second for w in status.workers)))} rows/s",
        ),
        tile("in flight", amount(sum(w.bytes_in_flight for w in status.workers))),
        tile("plans in the making", count(len(status.plans))),
        tile("scans since the start", count(asked), _outcomes(status.queries)),
        tile("calls that failed", count(sum(status.errors.values()))),
    )
    yield section("Workers", _workers(status.workers, now_ms))
    yield section("Plans in the making", _plans(status.plans))
    yield section(
        "Last queries",
        _queries(status.recent[:_SHOWN], now_ms),
        note="The newest first. How far each is read is what workers said last.",
    )
    yield element(
        "div",
        section("Caches of planning", caches_table(status.caches)),
        section("Errors", errors_table(status.errors)),
        class_="pair",
    )
    if status.certificates:
        yield section("Certificates", certificates_table(status.certificates, now_ms))


def _draining(number: int) -> str | None:
    return f"{count(number)} draining" if number else None


def _outcomes(queries: dict[str, int]) -> str:
    return ", ".join(f"{count(n)} {outcome}" for outcome, n in queries.items() if n)


def _workers(workers: Sequence[WorkerEntry], now_ms: int) -> Html:
    return table(
        "The workers of this coordinator, as they said last",
        [
            Column("worker"),
            Column("state"),
            Column("zone"),
            Column("location"),
            Column("streams"),
            Column("bytes in flight"),
            Column("sends", is_number=True),
            Column("heard of", is_number=True),
            Column("lease left", is_number=True),
            Column("version"),
        ],
        (
            (
                _worker(w),
                badge(w.state, "good" if w.state == "ready" else "busy"),
                w.zone or "",
                code(w.location),
                filling(w.streams, w.max_streams, f"{count(w.streams)} of {count(w.max_streams)}"),
                filling(
                    w.bytes_in_flight,
                    w.max_bytes,
                    f"{amount(w.bytes_in_flight)} of {amount(w.max_bytes)}",
                ),
                rate(w.bytes_per_second),
                ago(now_ms - w.last_seen_ms),
                duration(w.lease_seconds),
                w.version,
            )
            for w in workers
        ),
        empty="No worker has registered: every scan fails with NO_WORKERS.",
    )


def _worker(worker: WorkerEntry) -> Html:
    named = code(worker.worker_id)
    if worker.http_address is None or not _PAGE_OF_WORKER.fullmatch(worker.http_address):
        return named
    return element("a", named, href=f"{worker.http_address}/status", rel="noreferrer")


def _plans(plans: Sequence[RunningPlan]) -> Html:
    return table(
        "Plans in the making, the oldest first",
        [
            Column("table"),
            Column("for"),
            Column("kind"),
            Column("step"),
            Column("manifests read"),
            Column("since", is_number=True),
            Column("request"),
        ],
        (
            (
                p.table,
                p.principal or "",
                p.kind,
                p.phase,
                progress(
                    p.manifests_read,
                    p.manifests,
                    f"{count(p.manifests_read)} of {count(p.manifests)}",
                )
                if p.manifests
                else "",
                duration(p.seconds),
                code(p.request_id) if p.request_id else "",
            )
            for p in plans
        ),
        empty="None right now.",
    )


def _queries(queries: Sequence[QueryEntry], now_ms: int) -> Html:
    return table(
        "The last queries, the newest first",
        [
            Column("table"),
            Column("for"),
            Column("kind"),
            Column("outcome"),
            Column("planned in", is_number=True),
            Column("tasks", is_number=True),
            Column("endpoints", is_number=True),
            Column("data", is_number=True),
            Column("manifests ruled out", is_number=True),
            Column("files ruled out", is_number=True),
            Column("read"),
            Column("when", is_number=True),
            Column("request"),
        ],
        (
            (
                q.table,
                q.principal or "",
                q.kind,
                _outcome(q),
                duration(q.seconds),
                count(q.plan.tasks) if q.plan else "",
                count(q.plan.endpoints) if q.plan and q.plan.endpoints is not None else "",
                amount(q.plan.bytes) if q.plan else "",
                *_ruled_out(q.plan),
                _read(q.plan, q.read) if q.plan and q.read else "",
                ago(now_ms - q.began_ms),
                code(q.request_id) if q.request_id else "",
            )
            for q in queries
        ),
        empty="None since the start.",
    )


def _outcome(query: QueryEntry) -> str:
    if query.outcome == "planned":
        return query.outcome
    return badge(query.code or query.outcome, "plain" if query.outcome == "cancelled" else "bad")


def _read(plan: PlanFacts, read: ReadFacts) -> Html:
    """Return how far a query is read, which may be more than once."""
    percent = ratio(read.tasks, plan.tasks) if plan.tasks else "all"
    return progress(
        min(read.tasks, plan.tasks), max(plan.tasks, 1), f"{percent} · {amount(read.bytes)}"
    )


def _ruled_out(plan: PlanFacts | None) -> tuple[str, str]:
    """Return how many manifests a plan didn't have to read, and how many files of those that it
    read it left out.
    """
    if plan is None:
        return "", ""
    counters = plan.counters
    files = counters.get("files_skipped_by_partition", 0) + counters.get(
        "files_skipped_by_metrics", 0
    )
    return (
        _of(counters.get("manifests_skipped", 0), counters.get("manifests", 0)),
        _of(files, counters.get("files", 0)),
    )


def _of(part: int, whole: int) -> str:
    return f"{count(part)} of {count(whole)}"
