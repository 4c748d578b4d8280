from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.client import Lake, RemoteTable, connect
from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadCommand, BadConfig, BadRequest, UnknownTable
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import live_ids
from tests.support.unreachable import UnreachableCatalog


def test_tables_are_listed_by_names_that_lead_back_to_them(lake: Lake):
    names = lake.tables()

    assert names == [TableName(("db", n)) for n in ("a.b", "empty", "orders")]
    assert [lake.table(name).scan().count() for name in names] == [1, 0, len(live_ids())]


def test_a_catalog_that_cannot_be_listed_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    catalogs = [WarehouseCatalog("there", str(tmp_path)), UnreachableCatalog("gone", tmp_path)]
    TableWriter.create(tmp_path / "orders", schema({"id": required("long")}))
    with (
        local_fleet(Catalogs(catalogs), workers=0) as fleet,
        connect(fleet.location) as lake,
    ):
        listing = lake.list_tables()
        tables = lake.tables()

    assert listing.tables == tables == [TableName(("orders",))]
    assert list(listing.unlisted) == ["gone"]
    assert "catalog not listed" in caplog.messages


@pytest.mark.parametrize(
    "name", ["db.orders", ("db", "orders"), ["db", "orders"], "warehouse.db.orders"]
)
def test_a_table_has_several_names(lake: Lake, name):
    assert lake.table(name).scan().count() == len(live_ids())


def test_a_server_and_its_tables_show_where_they_are(lake: Lake, fleet: LocalFleet):
    assert repr(lake) == f"<Lake at {fleet.location}>"
    assert repr(lake.table("db.orders")) == f"<RemoteTable db.orders at {fleet.location}>"


def test_a_name_that_holds_a_dot_is_given_in_parts(lake: Lake):
    table = lake.table(("db", "a.b"))

    assert table.scan().to_arrow().to_pydict() == {"id": [7]}
    assert table.describe().identifier == ("db", "a.b")


def test_a_table_tells_what_it_is_like(orders: RemoteTable):
    described, history = orders.describe(), orders.snapshots()

    assert orders.schema().names == ["id", "region", "amount", "placed_at", "customer", "note"]
    assert described.format_version == 2
    assert {(r.name, r.type) for r in described.refs} == {
        ("main", "branch"),
        ("audit", "branch"),
        ("v1", "tag"),
    }
    assert history.current_snapshot_id == described.current_snapshot_id
    times = [s.timestamp_ms for s in history.snapshots]
    assert times == sorted(times)


def test_the_status_names_the_workers(lake: Lake, fleet: LocalFleet):
    status = lake.status()

    assert {w.location for w in status.workers} == {w.location for w in fleet.workers}
    assert [c.name for c in status.catalogs] == ["warehouse"]


def test_an_unknown_table_is_told_with_the_nearest_name(lake: Lake):
    with pytest.raises(UnknownTable, match=r"db\.orders"):
        lake.table("db.order").schema()
    with pytest.raises(BadCommand, match="empty"):
        lake.table("db.")


def test_a_closed_connection_says_so(fleet: LocalFleet):
    with connect(fleet.location) as lake:
        table = lake.table("db.orders")

    with pytest.raises(BadRequest, match="closed"):
        table.schema()


@pytest.mark.parametrize("location", ["localhost:8815", "http://localhost:8815", "grpc://host", ""])
def test_what_is_no_flight_location_is_refused_before_any_call(location: str):
    with pytest.raises(BadRequest, match="grpc://HOST:PORT"):
        connect(location)


def test_roots_that_cannot_be_read_are_refused(tmp_path: Path):
    with pytest.raises(BadConfig, match="tls_roots"):
        connect("grpc+tls://localhost:1", tls_roots=tmp_path / "none.pem")


@pytest.mark.parametrize("token", ["", "two\nlines", "über"])
def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(token: str):
    with pytest.raises(BadConfig, match="token") as raised:
        connect("grpc://localhost:1", token)

    assert not token or token not in str(raised.value)


def test_names_lead_back_where_a_namespace_is_called_like_a_catalog(tmp_path: Path):
    for directory, rows in (("one/two/t", 1), ("one/db/t", 2), ("other/t", 3)):
        table = TableWriter.create(tmp_path / directory, schema({"id": required("long")}))
        table.append([{"id": n} for n in range(rows)])
    catalogs = Catalogs(
        [
            WarehouseCatalog("one", str(tmp_path / "one")),
            WarehouseCatalog("two", str(tmp_path / "other")),
        ]
    )

    with local_fleet(catalogs, workers=1) as fleet, connect(fleet.location) as lake:
        counts = {str(name): lake.table(name).scan().count() for name in lake.tables()}

    assert counts == {"one.two.t": 1, "db.t": 2, "two.t": 3}
