"""Show what a server is doing to a person at a terminal: the facts of its status page."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable

from floeberg.embedded.cli.terminal import plain
from floeberg.protocol.status import CertificateEntry, QueryEntry, RunningPlan, Status, WorkerEntry

_RECENT_SHOWN = 20


def show_status(found: Status, console: Console) -> None:
    """Print a coordinator and its fleet; of the last queries, those of one screen."""
    console.print(
        plain(
            f"coordinator {found.coordinator_id}, version {found.version},"
            f" up {found.uptime_seconds:,.0f} s, {found.state}"
        )
    )
    for catalog in found.catalogs:
        default = " (default)" if catalog.is_default else ""
        console.print(plain(f"catalog {catalog.name}: {catalog.kind}{default}"))
    console.print(_workers(found.workers))
    if found.plans:
        console.print(_plans(found.plans))
    if found.recent:
        console.print(_queries(found.recent[:_RECENT_SHOWN]))
    if found.queries:
        console.print(plain(f"scans: {_counts(dict(sorted(found.queries.items())))}"))
    for cache in found.caches:
        size = "" if cache.size_bytes is None else f", {cache.size_bytes:,} bytes"
        console.print(
            plain(f"cache of {cache.name}: {cache.hits:,} hits, {cache.misses:,} misses{size}")
        )
    if found.errors:
        console.print(plain(f"errors: {_counts(found.errors)}"))
    for certificate in found.certificates:
        console.print(plain(_certificate(certificate)))


def _workers(workers: tuple[WorkerEntry, ...]) -> RichTable:
    table = RichTable(
        *("worker", "location", "state", "zone"),
        *(_number("streams"), _number("MB/s"), _number("in flight"), _number("lease"), "version"),
    )
    for worker in workers:
        table.add_row(
            plain(worker.worker_id),
            plain(worker.location),
            worker.state,
            plain(worker.zone or ""),
            f"{worker.streams} of {worker.max_streams}",
            f"{worker.bytes_per_second / 1e6:,.1f}",
            f"{worker.bytes_in_flight / 1e6:,.1f} of {worker.max_bytes / 1e6:,.0f} MB",
            f"{worker.lease_seconds:.0f} s",
            plain(worker.version),
        )
    return table


def _plans(plans: tuple[RunningPlan, ...]) -> RichTable:
    table = RichTable("planning", "for", _number("seconds"), "step", _number("manifests read"))
    for plan in plans:
        table.add_row(
            plain(plan.table),
            plain(plan.principal or ""),
            f"{plan.seconds:,.1f}",
            plain(plan.phase),
            f"{plan.manifests_read:,} of {plan.manifests:,}" if plan.manifests else "",
        )
    return table


def _queries(queries: tuple[QueryEntry, ...]) -> RichTable:
    table = RichTable(
        *("last queries", "kind", "for", "outcome", _number("seconds")),
        *(_number("tasks"), _number("endpoints"), _number("MB"), _number("read")),
    )
    for query in queries:
        plan = query.plan
        endpoints = None if plan is None else plan.endpoints
        table.add_row(
            plain(query.table),
            query.kind,
            plain(query.principal or ""),
            plain(query.code or query.outcome),
            f"{query.seconds:,.3f}",
            "" if plan is None else f"{plan.tasks:,}",
            "" if endpoints is None else f"{endpoints:,}",
            "" if plan is None else f"{plan.bytes / 1e6:,.1f}",
            "" if query.read is None else f"{query.read.rows:,} rows",
        )
    return table


def _certificate(certificate: CertificateEntry) -> str:
    told = f"file of {certificate.file}: {certificate.state}"
    if certificate.expires_ms is not None:
        day = datetime.fromtimestamp(certificate.expires_ms / 1000, UTC)
        told += f", until {day:%Y-%m-%d %H:%M} UTC"
    if certificate.is_replaced:
        told += "; it was replaced: drain and restart the coordinator to use it"
    return told


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _number(header: str) -> Column:
    return Column(header, justify="right")
