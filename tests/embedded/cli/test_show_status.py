from __future__ import annotations

import io

from floeberg.embedded.cli.show_status import show_status
from floeberg.embedded.cli.terminal import console
from floeberg.protocol.status import (
    CacheEntry,
    CertificateEntry,
    PlanFacts,
    QueryEntry,
    ReadFacts,
    RunningPlan,
    Status,
)

ESCAPE = "\x1b[2J"


def status(**facts: object) -> Status:
    return Status.model_validate(
        {
            "coordinator_id": "c-1",
            "version": "1",
            "started_ms": 0,
            "uptime_seconds": 61.0,
            "workers": (),
            "catalogs": (),
            "queries": {"planned": 3},
            **facts,
        }
    )


def shown(found: Status) -> str:
    file = io.StringIO()
    show_status(found, console(file))
    return file.getvalue()


def test_last_queries_tell_outcome_or_code() -> None:
    plan = PlanFacts(tasks=12, bytes=34_000_000, endpoints=4, counters={})
    planned = QueryEntry(
        kind="scan",
        table="db.orders",
        principal="ann",
        outcome="planned",
        code=None,
        began_ms=0,
        seconds=0.25,
        plan=plan,
        read=ReadFacts(running=1, done=0, tasks=3, rows=5000, bytes=1),
    )
    failed = planned.model_copy(
        update={"outcome": "failed", "code": "NO_WORKERS", "plan": None, "read": None}
    )

    text = shown(status(recent=(planned, failed), errors={"NO_WORKERS": 1}))

    (first,) = [line for line in text.splitlines() if "planned" in line and "│" in line]
    cells = [cell.strip() for cell in first.split("│")]
    assert cells[1:6] == ["db.orders", "scan", "ann", "planned", "0.250"]
    assert cells[6:-1] == ["12", "4", "34.0", "5,000 rows"]
    assert "NO_WORKERS" in text
    assert "errors: 1 NO_WORKERS" in text
    assert "scans: 3 planned" in text


def test_what_is_planned_and_remembered_is_told() -> None:
    plan = RunningPlan(
        table="t", principal=None, phase="read", manifests=9, manifests_read=3, seconds=1.5
    )
    cache = CacheEntry(name="manifests in memory", hits=1234, misses=5, size_bytes=67)

    text = shown(status(plans=(plan,), caches=(cache,)))

    assert "3 of 9" in text
    assert "cache of manifests in memory: 1,234 hits, 5 misses, 67 bytes" in text


def test_names_cannot_take_hold_of_a_terminal() -> None:
    plan = RunningPlan(
        table=ESCAPE, principal=ESCAPE, phase="x", manifests=0, manifests_read=0, seconds=0.0
    )

    assert "\x1b" not in shown(status(plans=(plan,), errors={ESCAPE: 1}))


def test_certificates_tell_when_they_expire_and_that_others_lie_in_their_place() -> None:
    good = CertificateEntry(file="tls_key", state="good", expires_ms=None, is_replaced=False)
    expired = CertificateEntry(file="tls_cert", state="expired", expires_ms=0, is_replaced=True)

    text = " ".join(shown(status(certificates=(good, expired))).split())

    assert "file of tls_key: good" in text
    assert "file of tls_cert: expired, until 1970-01-01 00:00 UTC; it was replaced" in text
