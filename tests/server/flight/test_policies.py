"""What callers can find out of a table under a policy, by everything that a fleet answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.client import Lake, connect
from floeberg.protocol.errors import (
    BadRequest,
    FloebergError,
    NotPermitted,
    UnknownColumn,
    UnknownTable,
)
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.tickets import open_ticket
from tests.support.callers import bearing, secret_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema
from tests.support.people import PEOPLE, person, write_people

RULES = """
[[rule]]
principals = ["*"]
tables = ["warehouse.hr.*"]
deny = true

[[rule]]
principals = ["root"]
tables = ["*"]

[[rule]]
principals = ["eu"]
tables = ["warehouse.db.people"]
rows = "region = 'eu'"

[[rule]]
principals = ["masked"]
tables = ["warehouse.db.people"]
mask = ["team", "email", "salary", "address", "notes.element.secret"]

[[rule]]
principals = ["hidden"]
tables = ["warehouse.db.people"]
hide = ["team", "email", "salary", "address.street", "notes"]

[[rule]]
principals = ["stale"]
tables = ["warehouse.db.people"]
mask = ["emial"]
"""
PRINCIPALS = ("root", "eu", "masked", "hidden", "stale", "nobody")
RESTRICTED = ("eu", "masked", "hidden")


def token(principal: str) -> str:
    return f"the-token-of-{principal}-for-tests"


@pytest.fixture(scope="module", autouse=True)
def no_tracebacks() -> Iterator[None]:
    sys.tracebacklimit = 0
    yield
    del sys.tracebacklimit


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    write_people(folder / "db" / "people")
    pay = TableWriter.create(folder / "hr.db" / "pay", schema({"id": required("long")}))
    pay.append([{"id": 1}])
    return folder


@pytest.fixture(scope="module")
def fleet(lakes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    folder = tmp_path_factory.mktemp("auth")
    tokens = "".join(f"{name}:{token(name)}\n" for name in PRINCIPALS)
    (folder / "policies.toml").write_text(RULES)
    flags = {
        "auth_tokens": secret_file(folder / "tokens", tokens),
        "policies": str(folder / "policies.toml"),
    }
    with local_fleet(lakes, **flags) as fleet:
        yield fleet


@pytest.fixture
def lake_of(fleet: LocalFleet) -> Iterator[Callable[[str], Lake]]:
    made: list[Lake] = []

    def connected(principal: str) -> Lake:
        made.append(connect(fleet.location, token(principal)))
        return made[-1]

    yield connected
    for lake in made:
        lake.close()


LakeOf = Callable[[str], Lake]


def people(lake: Lake, **scan: Any) -> list[dict[str, Any]]:
    rows = lake.table("db.people").scan(**scan).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row.get("id", 0))


EVERYBODY = [person(number) for number in range(PEOPLE)]
EUROPEANS = [p for p in EVERYBODY if p["region"] == "eu"]


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("filter", [None, "id < 20", "region = 'us'", "id < 20 OR true"])
def test_only_the_callers_rows_come(lake_of: LakeOf, filter: str | None):
    def asked(row: dict[str, Any]) -> bool:
        match filter:
            case "id < 20":
                return row["id"] < 20
            case "region = 'us'":
                return row["region"] == "us"
            case _:
                return True

    expected = [row for row in EUROPEANS if asked(row)]

    assert people(lake_of("eu"), filter=filter) == expected
    assert lake_of("eu").table("db.people").scan(filter=filter).count() == len(expected)


def test_rows_are_the_callers_in_older_snapshots_too(lake_of: LakeOf):
    found = people(lake_of("eu"), ref="half", select=["id", "area"])

    assert found == [{"id": p["id"], "area": "eu"} for p in EUROPEANS if p["id"] < PEOPLE // 2]


def test_rows_without_columns_are_counted_as_the_caller_sees_them(lake_of: LakeOf):
    scan = lake_of("eu").table("db.people").scan(select=[])

    assert sum(batch.num_rows for batch in scan.to_batches()) == len(EUROPEANS)
    limited = lake_of("eu").table("db.people").scan(limit=5).to_arrow()
    assert set(limited["region"].to_pylist()) == {"eu"}


# --- columns -------------------------------------------------------------------------------------


def test_masked_columns_are_null_and_the_others_as_they_are(lake_of: LakeOf):
    expected = [
        {
            **p,
            **{"team": None, "email": None, "salary": None, "address": None},
            "notes": [{"text": note["text"], "secret": None} for note in p["notes"]],
        }
        for p in EVERYBODY
    ]

    assert people(lake_of("masked")) == expected
    only = people(lake_of("masked"), select=["team", "email"])
    assert only == [{"team": None, "email": None}] * PEOPLE
    street = people(lake_of("masked"), select=["address.street"])
    assert street == [{"address": None}] * PEOPLE
    secret = people(lake_of("masked"), select=["id", "notes.element.secret"])
    assert secret == [{"id": p["id"], "notes": [{"secret": None}]} for p in EVERYBODY]


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ("email = 'mail3@example'", 0),
        ("NOT email = 'mail3@example'", 0),
        ("email >= ''", 0),
        ("email IS NULL", PEOPLE),
        ("team = 'red'", 0),  # what files are partitioned by
        ("team IS NOT NULL", 0),
        ("salary > 30000", 0),
        ("salary <= 30000 OR salary > 30000", 0),
        ("address.city = 'city 3'", 0),
        ("id < 10 AND email IS NULL", 10),
    ],
)
def test_a_filter_finds_nothing_out_of_masked_columns(lake_of: LakeOf, filter: str, count: int):
    scan = lake_of("masked").table("db.people").scan(filter=filter)
    planned = scan.planned()

    assert scan.count() == count
    assert scan.to_arrow().num_rows == count
    assert planned.info.total_records in (-1, count)


def test_hidden_columns_are_as_if_they_had_never_been(lake_of: LakeOf):
    lake = lake_of("hidden")
    expected = [
        {"id": p["id"], "region": p["region"], "address": {"city": p["address"]["city"]}}
        for p in EVERYBODY
    ]

    assert people(lake) == expected
    for name in ("team", "email", "TEAM", "address.street", "notes", "notes.element.text"):
        unknown = error_of(lambda name=name: people(lake, select=[name]))
        assert isinstance(unknown, UnknownColumn)
        known = {"id", "region", "address", "address.city"}
        assert set(str(unknown).partition("; it has ")[2].split(", ")) == known
        assert isinstance(
            error_of(lambda name=name: people(lake, filter=f"{name} IS NULL")), UnknownColumn
        )
        insensitive = {"select": [name], "case_sensitive": False}
        assert isinstance(error_of(lambda o=insensitive: people(lake, **o)), UnknownColumn)


@pytest.mark.parametrize("principal", RESTRICTED)
@pytest.mark.parametrize(
    "name", ["_file", "_pos", "_partition", "_partition.team", "_spec_id", "_deleted"]
)
def test_metadata_columns_tell_nothing(lake_of: LakeOf, principal: str, name: str):
    assert isinstance(error_of(lambda: people(lake_of(principal), select=[name])), UnknownColumn)
    assert people(lake_of("root"), select=["id", name])


def error_of(call: Callable[[], object]) -> FloebergError:
    with pytest.raises(FloebergError) as raised:
        call()
    return raised.value


# --- what is told beside rows --------------------------------------------------------------------

COMMAND = fl.FlightDescriptor.for_command(b'{"table": "db.people"}')
PATH = fl.FlightDescriptor.for_path("db", "people")


@pytest.mark.parametrize("principal", RESTRICTED)
def test_the_answer_tells_nothing_of_other_rows_and_files(fleet: LocalFleet, principal: str):
    with fl.connect(fleet.location) as client:
        for descriptor in (COMMAND, PATH):
            info = client.get_flight_info(descriptor, bearing(token(principal)))
            full = client.get_flight_info(descriptor, bearing(token("root")))

            assert info.total_bytes == -1
            assert set(json.loads(info.app_metadata)) == {"table", "snapshot_id", "request_id"}
            assert set(json.loads(full.app_metadata)) > {"tasks", "counters"}
            expected = {"eu": {-1, len(EUROPEANS)}}.get(principal, {PEOPLE})
            assert info.total_records in expected


@pytest.mark.parametrize("principal", RESTRICTED)
def test_schemas_are_the_same_wherever_they_are_told(fleet: LocalFleet, principal: str):
    options = bearing(token(principal))
    with fl.connect(fleet.location) as client:
        info = client.get_flight_info(PATH, options)
        asked: Any = client.get_schema(PATH, options)
        (listed,) = list(client.list_flights(b"", options))
        for endpoint in info.endpoints:
            with fl.connect(endpoint.locations[0]) as worker:
                streamed = worker.do_get(endpoint.ticket, options).schema
                assert streamed.equals(info.schema, check_metadata=True)

    assert asked.schema.equals(info.schema, check_metadata=True)
    assert listed.schema.equals(info.schema, check_metadata=True)


@pytest.mark.parametrize("principal", RESTRICTED)
@pytest.mark.parametrize("action", ["plan", "files", "explain"])
def test_plans_are_not_shown(lake_of: LakeOf, principal: str, action: str):
    scan = lake_of(principal).table("db.people").scan()

    error = error_of(getattr(scan, action))

    assert isinstance(error, NotPermitted)
    assert "scans and counts are answered" in str(error)
    assert getattr(lake_of("root").table("db.people").scan(), action)()


@pytest.mark.parametrize("principal", RESTRICTED)
def test_descriptions_and_snapshots_tell_nothing_that_is_kept_back(lake_of: LakeOf, principal: str):
    table = lake_of(principal).table("db.people")
    full = lake_of("root").table("db.people")
    description, snapshots = table.describe(), table.snapshots()

    assert (description.location, description.metadata_location) == (None, None)
    assert description.properties == {}
    assert full.describe().properties
    assert [s.snapshot_id for s in snapshots.snapshots] == [
        s.snapshot_id for s in full.snapshots().snapshots
    ]
    assert all(s.summary == {} and s.manifest_list is None for s in snapshots.snapshots)
    told = description.model_dump_json() + snapshots.model_dump_json()
    if principal == "hidden":
        assert not any(name in told for name in ("team", "email", "salary", "street", "notes"))
    if principal == "masked":
        assert [spec["fields"] for spec in description.partition_specs] == [[]]
    assert not any(word in told for word in ("total-records", "added-", "example", ".avro"))


def test_a_worker_is_given_nothing_that_it_could_return_more_from(fleet: LocalFleet):
    """The ticket holds no field of a masked or hidden column to read, and the rows' filter."""
    for principal, fields in (("masked", {"id", "region"}), ("hidden", {"id", "region"})):
        with fl.connect(fleet.location) as client:
            info = client.get_flight_info(PATH, bearing(token(principal)))
        for endpoint in info.endpoints:
            plan = open_ticket(endpoint.ticket.ticket, fleet.keys, now_ms=0).plan
            real = {f.field_id for f in plan.schema.fields}
            asked = {f.name for f in plan.projection.fields if f.field_id in real}
            assert asked - {"address", "notes"} == fields
    with fl.connect(fleet.location) as client:
        info = client.get_flight_info(PATH, bearing(token("eu")))
    for endpoint in info.endpoints:
        plan = open_ticket(endpoint.ticket.ticket, fleet.keys, now_ms=0).plan
        assert all("'eu'" in str(task.residual) for task in plan.tasks)


@pytest.mark.parametrize("principal", RESTRICTED)
def test_tickets_that_name_manifests_are_governed_alike(
    lakes: Path, fleet: LocalFleet, lake_of: LakeOf, principal: str
):
    flags = {k: fleet.flags[k] for k in ("auth_tokens", "policies")}
    with (
        local_fleet(lakes, workers=1, max_info_bytes=0, **flags) as other,
        connect(other.location, token(principal)) as lake,
    ):
        assert people(lake) == people(lake_of(principal))


# --- tables --------------------------------------------------------------------------------------


def test_tables_that_a_caller_may_not_read_are_not_listed(fleet: LocalFleet, lake_of: LakeOf):
    listed = {p: [str(name) for name in lake_of(p).tables()] for p in PRINCIPALS}

    assert listed == {p: ["db.people"] if p != "nobody" else [] for p in PRINCIPALS}
    with fl.connect(fleet.location) as client:
        flights = list(client.list_flights(b"", bearing(token("nobody"))))
    assert flights == []


CALLS: dict[str, Callable[[Lake, str], object]] = {
    "describe": lambda lake, name: lake.table(name).describe(),
    "snapshots": lambda lake, name: lake.table(name).snapshots(),
    "schema": lambda lake, name: lake.table(name).schema(),
    "scan": lambda lake, name: lake.table(name).scan().to_arrow(),
    "count": lambda lake, name: lake.table(name).scan().count(),
    "plan": lambda lake, name: lake.table(name).scan().plan(),
    "files": lambda lake, name: lake.table(name).scan().files(),
    "explain": lambda lake, name: lake.table(name).scan().explain(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_table_that_is_kept_back_is_told_from_none_by_nothing(lake_of: LakeOf, call: str):
    there = error_of(lambda: CALLS[call](lake_of("nobody"), "db.people"))
    nowhere = error_of(lambda: CALLS[call](lake_of("nobody"), "db.peoplf"))

    assert isinstance(there, UnknownTable)
    assert str(there) == str(nowhere).replace("peoplf", "people")


@pytest.mark.parametrize("principal", ["root", "eu"])
@pytest.mark.parametrize(
    "name",
    [
        "hr.pay",
        "warehouse.hr.pay",
        ["hr", "pay"],
        ["hr.db", "pay"],  # the directory's own name
        ["warehouse", "hr.db", "pay"],
        "HR.pay",
        "hr.db.pay",
        ["db", "..", "hr.db", "pay"],
    ],
)
def test_no_other_spelling_passes_a_rule_that_denies(
    lake_of: LakeOf, principal: str, name: str | list[str]
):
    lake = lake_of(principal)

    assert isinstance(error_of(lambda: lake.table(name).scan().to_arrow()), BadRequest)
    error = error_of(lambda: lake.table("hr.pai").scan().to_arrow())
    assert "hr.pay" not in str(error)


def test_a_policy_that_cannot_be_applied_shows_nothing(lake_of: LakeOf):
    for call in CALLS.values():
        assert isinstance(error_of(lambda c=call: c(lake_of("stale"), "db.people")), NotPermitted)


def test_plans_of_others_are_not_in_the_status(lakes: Path, fleet: LocalFleet, lake_of: LakeOf):
    runs = fleet.coordinator._scans._runs
    with runs.run("db.people", "root"), runs.run("db.people", "eu"):
        shown = {p: [plan.principal for plan in lake_of(p).status().plans] for p in ("root", "eu")}

    assert shown == {"root": ["root"], "eu": ["eu"]}


# --- changes -------------------------------------------------------------------------------------


def test_policies_are_in_force_a_moment_after_the_file_changes(lakes: Path, tmp_path: Path):
    from tests.support.waiting import wait_until

    policies = tmp_path / "policies.toml"
    policies.write_text('[[rule]]\nprincipals=["eu"]\ntables=["*"]\n')
    tokens = secret_file(tmp_path / "tokens", f"eu:{token('eu')}\n")
    flags = {"auth_tokens": tokens, "policies": str(policies)}
    with (
        local_fleet(lakes, workers=0, **flags) as fleet,
        fl.connect(fleet.location) as client,
    ):
        options = bearing(token("eu"))
        assert len(list(client.list_flights(b"", options))) == 2
        policies.write_text("[[rule]]\nprincipals = [broken")
        wait_until(lambda: len(list(client.list_flights(b"", options))) == 2, "the old rules")
        policies.write_text("")
        wait_until(lambda: not list(client.list_flights(b"", options)), "the new rules")
        with pytest.raises(pa.ArrowKeyError) as raised:
            client.get_flight_info(PATH, options)
        assert isinstance(from_flight(raised.value), UnknownTable)
