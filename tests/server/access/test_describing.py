from __future__ import annotations

from floeberg.protocol.status import PlanFacts, QueryEntry, RunningPlan, Status
from floeberg.server.access import Caller, Policies
from floeberg.server.access.describing import status_for
from floeberg.server.catalogs import Catalogs, WarehouseCatalog

FACTS = PlanFacts.model_construct()


def running(principal: str) -> RunningPlan:
    return RunningPlan(
        table="lake.db.people",
        principal=principal,
        phase="read manifests",
        manifests=40,
        manifests_read=20,
        seconds=1.0,
    )


def planned(principal: str) -> QueryEntry:
    return QueryEntry(
        kind="scan",
        table="lake.db.people",
        principal=principal,
        outcome="planned",
        code=None,
        began_ms=0,
        seconds=1.0,
        plan=FACTS,
    )


STATUS = Status(
    coordinator_id="c",
    version="1",
    started_ms=0,
    uptime_seconds=1.0,
    workers=(),
    catalogs=(),
    queries={},
    plans=(running("ann"), running("bob")),
    recent=(planned("bob"), planned("ann")),
)


def caller(principal: str, policies: Policies | None, directory: str) -> Caller:
    return Caller(principal, Catalogs([WarehouseCatalog("lake", directory)]), policies)


def test_who_is_under_policies_sees_its_own_queries_alone_and_no_counts(tmp_path):
    policies = Policies.parse("")

    seen = status_for(caller("ann", policies, str(tmp_path)), STATUS)

    (plan,), (query,) = seen.plans, seen.recent
    assert (plan.principal, plan.manifests, plan.manifests_read) == ("ann", 0, 0)
    assert (query.principal, query.plan) == ("ann", None)


def test_without_policies_all_is_seen(tmp_path):
    assert status_for(caller("ann", None, str(tmp_path)), STATUS) == STATUS
