"""What every catalog behind PyIceberg does, proven on SQLite and on a REST catalog over S3."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as Writer
from pyiceberg.catalog import load_catalog

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import (
    AccessDenied,
    BadConfig,
    CatalogUnavailable,
    MissingFile,
    UnknownTable,
    UnsupportedVersion,
)
from floeberg.protocol.manifests import read_manifest_list
from floeberg.protocol.storage import StorageConfig
from floeberg.server.catalogs import Catalog, Catalogs
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.services import STRANGER, WAREHOUSE

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "text": ["a", None, "c"]})


@dataclass(frozen=True)
class Lake:
    """A catalog as its writer has it and as it is served, and a namespace of the test's own."""

    writer: Writer
    served: PyIcebergCatalog
    namespace: str

    def write(self, name: str, rows: pa.Table = ROWS) -> tuple[str, ...]:
        self.writer.create_table((self.namespace, name), rows.schema).append(rows)
        return (self.namespace, name)

    def tables(self) -> list[tuple[str, ...]]:
        return [t for t in self.served.list_tables() if t[0] == self.namespace]


@pytest.fixture
def sqlite_properties(tmp_path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/lake",
    }


@pytest.fixture(params=["sqlite", "rest"])
def lake(request) -> Iterator[Lake]:
    if request.param == "sqlite":
        properties = request.getfixturevalue("sqlite_properties")
    else:
        seaweed = request.getfixturevalue("seaweed")
        properties = {"type": "rest", **seaweed.catalog_properties()}
    writer = load_catalog("lake", **properties)
    namespace = f"ns_{os.urandom(4).hex()}"
    writer.create_namespace(namespace)
    served = PyIcebergCatalog("lake", properties)
    yield Lake(writer, served, namespace)
    served.close()
    writer.close()


def test_a_table_is_loaded_with_what_reaches_its_files(lake: Lake):
    identifier = lake.write("orders")

    table = lake.served.load(identifier)

    assert isinstance(lake.served, Catalog)
    assert table.name == f"lake.{lake.namespace}.orders"
    theirs = lake.writer.load_table(identifier)
    assert table.metadata_location == theirs.metadata_location
    assert table.metadata.table_uuid == str(theirs.metadata.table_uuid)
    assert [f.name for f in table.metadata.schema().fields] == ["id", "text"]
    storage = open_storage(table.storage)
    assert json.loads(storage.read(table.metadata_location))["location"] == theirs.location()
    manifest_list = table.metadata.current_snapshot().manifest_list
    (manifest,) = read_manifest_list(storage.read(manifest_list), manifest_list)
    assert manifest.added_rows_count == 3
    assert storage.size(manifest.location) == manifest.length
    (data_file,) = theirs.inspect.files()["file_path"].to_pylist()
    assert storage.read_ranges(data_file, [(0, 4)]) == [b"PAR1"]


def test_tables_are_listed(lake: Lake):
    assert lake.tables() == []
    lake.write("orders")
    lake.write("a-table")

    assert lake.tables() == [(lake.namespace, "a-table"), (lake.namespace, "orders")]
    for identifier in lake.tables():
        assert lake.served.load(identifier).identifier == identifier


def test_namespaces_within_namespaces_are_listed(lake: Lake):
    inner = (lake.namespace, "inner")
    lake.writer.create_namespace(inner)
    lake.writer.create_table((*inner, "deep"), ROWS.schema)

    assert lake.tables() == [(*inner, "deep")]
    assert lake.served.load((*inner, "deep")).metadata.current_snapshot() is None


def test_a_commit_is_seen_at_once(lake: Lake):
    identifier = lake.write("orders")
    before = lake.served.load(identifier)

    lake.writer.load_table(identifier).append(ROWS)

    after = lake.served.load(identifier)
    assert after.metadata_location != before.metadata_location
    assert len(after.metadata.snapshots) == len(before.metadata.snapshots) + 1


def test_a_table_made_again_under_its_name_is_another(lake: Lake):
    identifier = lake.write("orders")
    before = lake.served.load(identifier)

    lake.writer.drop_table(identifier)
    with pytest.raises(UnknownTable):
        lake.served.load(identifier)
    lake.write("orders", pa.table({"other": ["x"]}))

    after = lake.served.load(identifier)
    assert after.metadata.table_uuid != before.metadata.table_uuid
    assert [f.name for f in after.metadata.schema().fields] == ["other"]


def test_neighbours_are_the_tables_of_the_namespace_or_of_those_beside_it(lake: Lake):
    orders = lake.write("orders")

    assert lake.served.neighbours((lake.namespace, "order")) == [orders]
    beside = lake.served.neighbours((f"{lake.namespace}x", "orders"))
    # other tests' namespaces may be called much alike
    assert beside[0] == orders
    assert lake.served.neighbours(("..", "x")) == ()
    assert lake.served.suggests_cheaply is (lake.served.kind == "sql")


def test_a_table_without_its_namespace_has_neighbours(sqlite_properties):
    writer = load_catalog("lake", **sqlite_properties)
    writer.create_namespace("db")
    writer.create_table(("db", "orders"), ROWS.schema)
    writer.close()
    served = PyIcebergCatalog("lake", sqlite_properties)

    assert served.neighbours(("orders",)) == [("db", "orders")]
    served.close()


@pytest.mark.parametrize(
    "identifier", [("..", "x"), ("x",), (), ("ns", ""), ("ns", ".."), ("a\x1fb", "x"), ("a", "\0")]
)
def test_what_can_be_no_name_is_an_unknown_table(lake: Lake, identifier):
    with pytest.raises(UnknownTable):
        lake.served.load(identifier)


def test_threads_share_a_catalog(lake: Lake):
    identifier = lake.write("orders")

    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lake.served.load, [identifier] * 24))

    assert {t.metadata.table_uuid for t in tables} == {tables[0].metadata.table_uuid}


def test_a_rest_catalogs_secrets_stay_with_the_coordinator(seaweed):
    properties = {"type": "rest", **seaweed.catalog_properties()}
    served = PyIcebergCatalog("lake", properties)
    writer = load_catalog("lake", **properties)
    writer.create_namespace("secrets")
    writer.create_table("secrets.t", ROWS.schema, properties={"s3.endpoint": "http://elsewhere"})

    table = served.load(("secrets", "t"))

    # neither the way to the catalog, nor what a table's writer said about endpoints
    assert table.storage.properties == seaweed.s3_properties()
    assert "owner-secret" not in repr(table)
    served.close()
    writer.close()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"credential": "owner-key:hush-hush"}, AccessDenied),
        ({"credential": f"{STRANGER.access_key}:{STRANGER.secret_key}"}, BadConfig),
        ({"warehouse": "no-such-lake"}, BadConfig),
        ({"uri": "http://hush:hush-hush@127.0.0.1:9"}, CatalogUnavailable),
        ({"auth": {"type": "nonsense", "nonsense": {"x": "hush-hush"}}}, BadConfig),
        ({"rest-page-size": "many hush-hush", "credential": "owner-key:hush-hush"}, AccessDenied),
    ],
)
def test_trouble_with_a_rest_catalog_is_named_and_tells_no_secret(seaweed, changed, error):
    served = PyIcebergCatalog("lake", {"type": "rest", **seaweed.catalog_properties(), **changed})

    for call in (served.list_tables, lambda: Catalogs([served]).load(("db", "t"))):
        with pytest.raises(error, match="catalog 'lake'") as raised:
            call()
        assert "hush-hush" not in str(raised.value)
        assert "hush-hush" not in repr(raised.value.__cause__)
    served.close()


def test_a_catalog_that_stalls_is_unavailable_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        served = PyIcebergCatalog("lake", {"type": "rest", "uri": uri}, deadline_seconds=0.3)
        started = time.monotonic()

        with pytest.raises(CatalogUnavailable, match=r"'lake' .*within 0\.3 s"):
            served.load(("db", "t"))

        assert time.monotonic() - started < 5


def test_rebased_metadata_is_read_where_it_is_now(sqlite_properties, tmp_path):
    with load_catalog("lake", **sqlite_properties) as writer:
        writer.create_namespace("db")
        writer.create_table("db.t", ROWS.schema).append(ROWS)
    (tmp_path / "lake").rename(tmp_path / "moved")

    served = PyIcebergCatalog(
        "lake", sqlite_properties, {f"file://{tmp_path}/lake": f"{tmp_path}/moved"}
    )
    table = served.load(("db", "t"))

    snapshot = table.metadata.current_snapshot()
    assert snapshot.manifest_list.startswith(f"file://{tmp_path}/lake/")
    assert read_manifest_list(open_storage(table.storage).read(snapshot.manifest_list), "it")
    served.close()


def test_metadata_that_is_gone_is_missing(sqlite_properties):
    with load_catalog("lake", **sqlite_properties) as writer:
        writer.create_namespace("db")
        location = writer.create_table("db.t", ROWS.schema).metadata_location
    os.unlink(location.removeprefix("file://"))
    served = PyIcebergCatalog("lake", sqlite_properties)

    with pytest.raises(MissingFile, match=r"metadata\.json"):
        served.load(("db", "t"))
    served.close()


def test_tables_registered_under_another_name_are_found(sqlite_properties):
    with load_catalog("default", **sqlite_properties) as writer:
        writer.create_namespace("db")
        writer.create_table("db.t", ROWS.schema)

    served = PyIcebergCatalog("lake", sqlite_properties, known_as="default")

    assert served.list_tables() == [("db", "t")]
    assert served.load(("db", "t")).catalog == "lake"
    served.close()


def test_what_pyiceberg_is_configured_with_fills_the_gaps(sqlite_properties, monkeypatch):
    with load_catalog("lake", **sqlite_properties) as writer:
        writer.create_namespace("db")
        writer.create_table("db.t", ROWS.schema)
    for key, value in sqlite_properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper()}", value)

    served = PyIcebergCatalog("lake", {})

    assert served.list_tables() == [("db", "t")]
    served.close()


def test_metadata_that_pyiceberg_cannot_parse_is_floebergs_to_judge(sqlite_properties, tmp_path):
    with load_catalog("lake", **sqlite_properties) as writer:
        writer.create_namespace("db")
        table = writer.create_table("db.t", ROWS.schema, properties={"format-version": "2"})
        location = table.metadata_location.removeprefix("file://")
    document = json.loads(Path(location).read_text())
    document["schemas"][0]["fields"][1]["type"] = "variant"
    document["format-version"] = 3
    document["next-row-id"] = 0
    document["from-the-future"] = {"kept": True}
    Path(location).write_text(json.dumps(document))
    served = PyIcebergCatalog("lake", sqlite_properties)

    metadata = served.load(("db", "t")).metadata

    assert metadata.format_version == 3
    assert metadata.to_json()["from-the-future"] == {"kept": True}
    served.close()

    document["format-version"] = 9
    Path(location).write_text(json.dumps(document))
    served = PyIcebergCatalog("lake", sqlite_properties)
    with pytest.raises(UnsupportedVersion, match="9"):
        served.load(("db", "t"))
    served.close()


def test_serving_a_database_changes_nothing_in_it(tmp_path):
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    served = PyIcebergCatalog("lake", {"type": "sql", "uri": f"sqlite:///{tmp_path}/empty.db"})

    with pytest.raises(CatalogUnavailable, match="no such table"):
        served.list_tables()

    served.close()
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_a_database_that_is_not_there_is_a_mistake_of_configuration(tmp_path):
    with pytest.raises(BadConfig, match="nowhere"):
        PyIcebergCatalog("lake", {"type": "sql", "uri": f"sqlite:///{tmp_path}/nowhere.db"})
    assert not (tmp_path / "nowhere.db").exists()
    for properties in ({"type": "in-memory"}, {"type": "sql", "uri": "sqlite:///:memory:"}):
        with pytest.raises(BadConfig, match="in memory"):
            PyIcebergCatalog("lake", properties)


def test_a_library_that_is_not_installed_is_named():
    served = PyIcebergCatalog("lake", {"type": "hive", "uri": "thrift://127.0.0.1:9"})

    with pytest.raises((BadConfig, CatalogUnavailable), match="catalog 'lake'"):
        served.list_tables()


def test_the_rest_catalogs_own_bucket_is_read_by_path(seaweed):
    storage = open_storage(StorageConfig(seaweed.s3_properties()))

    assert storage.is_directory(f"s3://{WAREHOUSE}")
