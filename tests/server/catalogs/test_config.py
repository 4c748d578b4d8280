import json
import tomllib

import pytest

from floeberg.process.storage import StorageCache
from floeberg.protocol.errors import BadConfig, UnknownCatalog
from floeberg.server.catalogs import (
    CatalogConfig,
    WarehouseCatalog,
    configure_catalogs,
    read_catalog_flag,
    read_catalogs_table,
)
from floeberg.server.catalogs.config import open_catalog
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.documents import empty_metadata, write_empty_table

FILE = """
[catalogs.lake]
kind = "rest"
uri = "https://catalog.example/api"
known_as = "prod"
deadline_seconds = 5
properties.warehouse = "lake"
properties.credential = "id:hush-hush"
properties.s3.region = "eu-central-1"
properties."s3.endpoint" = "http://store:9000"
properties.s3.path-style-access = true
properties.auth = { type = "oauth2", oauth2 = { client_id = "id", client_secret = "hush-hush" } }
rebase = { "s3://old" = "s3://new" }

[catalogs.files]
kind = "warehouse"
uri = "s3://bucket/lake"
"""


def test_a_file_says_everything_about_a_catalog():
    lake, files = read_catalogs_table(tomllib.loads(FILE)["catalogs"])

    assert lake == CatalogConfig(
        name="lake",
        kind="rest",
        uri="https://catalog.example/api",
        properties={
            "warehouse": "lake",
            "credential": "id:hush-hush",
            "s3.region": "eu-central-1",
            "s3.endpoint": "http://store:9000",
            "s3.path-style-access": "true",
            "auth": {
                "type": "oauth2",
                "oauth2": {"client_id": "id", "client_secret": "hush-hush"},
            },
        },
        rebase={"s3://old": "s3://new"},
        known_as="prod",
        deadline_seconds=5.0,
    )
    assert (files.name, files.kind, files.uri) == ("files", "warehouse", "s3://bucket/lake")
    assert "hush" not in repr(lake)


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("l=warehouse:/data/lake", CatalogConfig("l", "warehouse", "/data/lake")),
        ("l=warehouse:s3://b/p", CatalogConfig("l", "warehouse", "s3://b/p")),
        ("l=sql:sqlite:////d/c.db", CatalogConfig("l", "sql", "sqlite:////d/c.db")),
        ("l=glue:", CatalogConfig("l", "glue")),
        ("l=pyiceberg:", CatalogConfig("l", "pyiceberg")),
        (
            "l=rest:http://h:1/a?warehouse=w&credential=id:a%26b+c=&s3.region=eu",
            CatalogConfig(
                "l",
                "rest",
                "http://h:1/a",
                {"warehouse": "w", "credential": "id:a&b+c=", "s3.region": "eu"},
            ),
        ),
        (
            "l=sql:?uri=postgresql%3A%2F%2Fu@h%2Fd%3Fsslmode%3Drequire&known_as=x&deadline_seconds=2",
            CatalogConfig(
                "l",
                "sql",
                "postgresql://u@h/d?sslmode=require",
                known_as="x",
                deadline_seconds=2.0,
            ),
        ),
    ],
)
def test_a_flag_says_the_same_in_one_line(flag, expected):
    assert read_catalog_flag(flag) == expected


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("lake", "NAME=KIND:URI"),
        ("lake=hush-hush", "NAME=KIND:URI"),
        ("=rest:x", "NAME=KIND:URI"),
        ("lake=:x", "NAME=KIND:URI"),
        ("lake=rets:http://x", "did you mean 'rest'"),
        ("lake=nessie:http://x", "there are warehouse, sql"),
        ("a.b=rest:http://x", "'a.b' cannot be a catalog's name"),
        ("lake=rest:http://x?warehouse", "'warehouse' has no value"),
        ("lake=warehouse:", "needs its directory"),
        ("lake=rest:http://x?deadline_seconds=soon", "a number of seconds"),
        ("lake=rest:http://x?deadline_seconds=-1", "above 0"),
    ],
)
def test_a_flag_that_cannot_be_read_says_why(flag, message):
    with pytest.raises(BadConfig, match=message) as raised:
        read_catalog_flag(flag)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"lake": "rest"}, "catalogs.lake must be a table"),
        ({"lake": {}}, "catalogs.lake.kind is missing"),
        ({"lake": {"kind": 1}}, "catalogs.lake.kind must be text"),
        ({"lake": {"kind": "rest", "ury": "x"}}, "'ury' is not known; did you mean 'uri'"),
        ({"lake": {"kind": "rest", "s3.region": "x"}}, "go under `properties`"),
        ({"lake": {"kind": "rest", "properties": "x"}}, "must be a table"),
        ({"lake": {"kind": "rest", "properties": {"a": {"b": [1]}}}}, "properties.a.b must be"),
    ],
)
def test_a_table_that_cannot_be_read_names_the_key(table, message):
    with pytest.raises(BadConfig, match=message):
        read_catalogs_table(table)


def test_all_ways_to_name_a_catalog_go_together(tmp_path):
    catalogs = configure_catalogs(
        warehouse=str(tmp_path),
        flags=["one=rest:http://127.0.0.1:9"],
        table={"two": {"kind": "warehouse", "uri": str(tmp_path), "rebase": {"/a": "/own"}}},
        rebase={"/a": "/b", "/c": "/d"},
    )

    assert catalogs.names == ("warehouse", "one", "two")
    assert catalogs.default.name == "warehouse"
    assert isinstance(catalogs.get("one"), PyIcebergCatalog)
    assert isinstance(catalogs.get("two"), WarehouseCatalog)


def test_rebase_holds_for_all_but_what_a_catalog_says_itself(tmp_path):
    write_empty_table(tmp_path / "t")
    catalogs = configure_catalogs(
        warehouse=str(tmp_path),
        table={"two": {"kind": "warehouse", "uri": str(tmp_path), "rebase": {"/a": "/own"}}},
        rebase={"/a": "/b", "/c": "/d"},
        default="two",
    )

    assert catalogs.load(("warehouse", "t")).storage.rebase == {"/a": "/b", "/c": "/d"}
    assert catalogs.load(("t",)).storage.rebase == {"/a": "/own", "/c": "/d"}


def test_a_default_that_is_not_configured_is_refused(tmp_path):
    with pytest.raises(UnknownCatalog, match="it has warehouse"):
        configure_catalogs(warehouse=str(tmp_path), default="lake")
    with pytest.raises(BadConfig, match="no catalog"):
        configure_catalogs()
    with pytest.raises(BadConfig, match="two catalogs are called 'warehouse'"):
        configure_catalogs(warehouse=str(tmp_path), flags=[f"warehouse=warehouse:{tmp_path}"])


def test_a_warehouse_on_s3_is_served(seaweed):
    seaweed.make_bucket("warehouse-on-s3")
    config = CatalogConfig("w", "warehouse", "s3://warehouse-on-s3/lake", seaweed.s3_properties())
    catalog = open_catalog(config, StorageCache())
    assert catalog.list_tables() == []

    document = json.dumps(empty_metadata("s3://warehouse-on-s3/lake/db/t")).encode()
    seaweed.put(
        "warehouse-on-s3",
        {
            "lake/db/t/metadata/v3.metadata.json": document,
            "lake/db/t/metadata/version-hint.text": b"3",
            "lake/db/t/data/x.parquet": b"",
            "lake/notes.txt": b"",
        },
    )

    assert catalog.list_tables() == [("db", "t")]
    table = catalog.load(("db", "t"))
    assert table.metadata_location == "s3://warehouse-on-s3/lake/db/t/metadata/v3.metadata.json"
    assert table.storage.properties == seaweed.s3_properties()
