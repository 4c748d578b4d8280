"""Tables of real catalogs, read over Flight: by REST with the files on S3, and by SQL beside it."""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from pyiceberg.catalog import Catalog as PyCatalog
from pyiceberg.catalog import load_catalog

from floeberg.client import connect
from floeberg.server.catalogs import Catalogs
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.fleet import LocalFleet, local_fleet, read_all
from tests.support.services import Seaweed

ROWS = pa.table({"id": list(range(2000)), "region": ["eu", "us"] * 1000})


def _write(catalog: PyCatalog, namespace: str) -> None:
    catalog.create_namespace_if_not_exists(namespace)
    table = catalog.create_table((namespace, "orders"), ROWS.schema)
    for begin in range(0, ROWS.num_rows, 500):
        table.append(ROWS.slice(begin, 500))


@pytest.fixture(scope="module")
def fleet(seaweed: Seaweed, tmp_path_factory: pytest.TempPathFactory):
    rest = {"type": "rest", **seaweed.catalog_properties()}
    local = tmp_path_factory.mktemp("sql")
    sql = {"type": "sql", "uri": f"sqlite:///{local}/catalog.db", "warehouse": f"file://{local}"}
    _write(load_catalog("lake", **rest), "over_flight")
    _write(load_catalog("books", **sql), "over_flight")
    catalogs = Catalogs([PyIcebergCatalog("lake", rest), PyIcebergCatalog("books", sql)])
    with local_fleet(catalogs) as fleet:
        yield fleet


@pytest.mark.parametrize("catalog", ["lake", "books"])
def test_a_stock_client_reads_each_catalogs_table(fleet: LocalFleet, catalog: str):
    path = fl.FlightDescriptor.for_path(catalog, "over_flight", "orders")

    with fl.connect(fleet.location) as client:
        info = client.get_flight_info(path)

    assert info.total_records == 2000
    assert read_all(info).sort_by("id").equals(ROWS.cast(info.schema))


def test_the_first_catalog_is_the_default_and_filters_reach_s3(fleet: LocalFleet):
    with connect(fleet.location) as lake:
        table = lake.table("over_flight.orders")
        few = table.scan(filter="id >= 600 AND id < 610 AND region = 'eu'").to_arrow()

    assert sorted(few["id"].to_pylist()) == [600, 602, 604, 606, 608]


def test_no_secret_of_the_store_is_logged_or_sent_in_clear(
    fleet: LocalFleet, seaweed: Seaweed, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    path = fl.FlightDescriptor.for_path("lake", "over_flight", "orders")

    with fl.connect(fleet.location) as client:
        info = client.get_flight_info(path)
        read_all(info)

    secret = seaweed.s3_properties()["s3.secret-access-key"]
    assert secret not in caplog.text
    assert secret.encode() not in info.serialize()
