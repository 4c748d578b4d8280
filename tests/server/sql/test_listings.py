from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pyarrow as pa
import pytest

from floeberg.process.auth import Principal
from floeberg.process.auth.watched import WatchedFile
from floeberg.protocol.errors import (
    Cancelled,
    CatalogUnavailable,
    CorruptMetadata,
    NotPermitted,
)
from floeberg.protocol.flight_sql import (
    GetCatalogs,
    GetDbSchemas,
    GetForeignKeys,
    GetPrimaryKeys,
    GetSqlInfo,
    GetTables,
    GetTableTypes,
    GetXdbcTypeInfo,
    Listing,
)
from floeberg.protocol.sealing import Keyring
from floeberg.server.access import Caller, Callers, Policies
from floeberg.server.catalogs import Catalogs, LoadedTable, WarehouseCatalog
from floeberg.server.sql.service import SqlService, Statements, listing_schema
from tests.support.lake import TableWriter, list_of, required, schema
from tests.support.people import write_people

POLICIES = """
[[rule]]
principals = ["ann"]
tables = ["lake.hr.people"]
hide = ["salary"]
mask = ["email"]

[[rule]]
principals = ["ann"]
tables = ["pond.*"]

[[rule]]
principals = ["stale"]
tables = ["*"]
mask = ["emial"]
"""
COMMANDS: list[Listing] = [
    GetSqlInfo(),
    GetXdbcTypeInfo(),
    GetCatalogs(),
    GetDbSchemas(),
    GetTables(),
    GetTables(with_schema=True),
    GetTableTypes(),
    GetPrimaryKeys(),
    GetForeignKeys(),
]


class Asked:
    """A catalog over the network: it may be out of reach."""

    is_local = suggests_cheaply = False
    kind = "far"

    def __init__(self, near: WarehouseCatalog) -> None:
        self._near = near
        self.name = near.name
        self.answers = True

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        if not self.answers:
            raise CatalogUnavailable(f"catalog {self.name} doesn't answer")
        return self._near.list_tables()

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        return self._near.load(identifier)

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        return []


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    lake.mkdir()
    write_people(lake / "hr" / "people")
    for name in ("my_table", "myXtable"):
        TableWriter.create(
            lake / "db" / name, schema({"id": required("long"), "price": "decimal(9,2)"})
        )
    TableWriter.create(lake / "top", schema({"tags": list_of("string")}))
    return lake


@pytest.fixture
def pond(tmp_path: Path) -> Asked:
    TableWriter.create(tmp_path / "pond" / "eu.db" / "frogs", schema({"id": "int"}))
    return Asked(WarehouseCatalog("pond", str(tmp_path / "pond")))


@pytest.fixture
def catalogs(lake: Path, pond: Asked) -> Catalogs:
    return Catalogs([WarehouseCatalog("lake", str(lake)), pond])


@pytest.fixture
def caller(catalogs: Catalogs) -> Caller:
    return Callers(catalogs).of(None)


@pytest.fixture
def restricted(catalogs: Catalogs, tmp_path: Path) -> Callable[[str], Caller]:
    (tmp_path / "policies").write_text(POLICIES)
    watched = WatchedFile("policies", str(tmp_path / "policies"), Policies.parse)
    return lambda name: Callers(catalogs, watched).of(Principal(name, "token"))


def rows(
    command: Listing, caller: Caller, is_cancelled: Callable[[], bool] = lambda: False
) -> list[dict[str, Any]]:
    table = SqlService(Keyring.generate(), create_autospec(Statements)).listing(
        command, caller, is_cancelled
    )
    table.validate(full=True)
    assert table.schema == listing_schema(command)
    return table.to_pylist()


def names(command: GetTables, caller: Caller) -> list[str]:
    keys = ("catalog_name", "db_schema_name", "table_name")
    return ["/".join(row[key] for key in keys) for row in rows(command, caller)]


def columns(row: dict[str, Any]) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(row["table_schema"]))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command))
def test_a_listing_has_the_columns_that_were_told_and_no_null_among_them(
    command: Listing, caller: Caller
):
    for row in rows(command, caller):
        for field in listing_schema(command):
            assert field.nullable or row[field.name] is not None


def test_catalogs_schemas_and_types_of_tables_are_listed(caller: Caller):
    assert [r["catalog_name"] for r in rows(GetCatalogs(), caller)] == ["lake", "pond"]
    assert [tuple(r.values()) for r in rows(GetDbSchemas(), caller)] == [
        ("lake", ""),
        ("lake", "db"),
        ("lake", "hr"),
        ("pond", "eu"),
    ]
    assert rows(GetTableTypes(), caller) == [{"table_type": "table"}]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            GetTables(),
            [
                "lake//top",
                "lake/db/myXtable",
                "lake/db/my_table",
                "lake/hr/people",
                "pond/eu/frogs",
            ],
        ),
        (GetTables(catalog="pond"), ["pond/eu/frogs"]),
        (GetTables(catalog="p%"), []),
        (GetTables(catalog=""), []),
        (GetTables(schema_pattern="d_"), ["lake/db/myXtable", "lake/db/my_table"]),
        (GetTables(schema_pattern=""), ["lake//top"]),
        (GetTables(table_pattern="my_table"), ["lake/db/myXtable", "lake/db/my_table"]),
        (GetTables(table_pattern=r"my\_table"), ["lake/db/my_table"]),
        (
            GetTables(schema_pattern="%", table_pattern="%o%", types=("VIEW", "TABLE")),
            [
                "lake//top",
                "lake/hr/people",
                "pond/eu/frogs",
            ],
        ),
        (GetTables(types=("view",)), []),
        (GetTables(table_pattern="SELECT * FROM hr.people"), []),
    ],
)
def test_tables_are_found_by_catalog_patterns_and_type(
    command: GetTables, expected: list[str], caller: Caller
):
    assert names(command, caller) == expected
    with_schema = GetTables(
        command.catalog, command.schema_pattern, command.table_pattern, command.types, True
    )
    assert names(with_schema, caller) == expected


def test_columns_come_with_what_sql_says_of_them(caller: Caller):
    (row,) = rows(GetTables("lake", "db", r"my\_table", with_schema=True), caller)

    found = columns(row)
    assert found.names == ["id", "price"]
    assert found.field("id").type == pa.int64()
    assert [field.nullable for field in found] == [False, True]
    prefix = b"ARROW:FLIGHT:SQL:"
    told = found.field("price").metadata
    assert {k.removeprefix(prefix): v for k, v in told.items() if k.startswith(prefix)} == {
        b"CATALOG_NAME": b"lake",
        b"SCHEMA_NAME": b"db",
        b"TABLE_NAME": b"my_table",
        b"TYPE_NAME": b"DECIMAL",
        b"PRECISION": b"9",
        b"SCALE": b"2",
        b"IS_AUTO_INCREMENT": b"0",
        b"IS_CASE_SENSITIVE": b"0",
        b"IS_READ_ONLY": b"1",
        b"IS_SEARCHABLE": b"1",
    }
    assert told[b"PARQUET:field_id"] == b"2"


def test_a_caller_sees_what_policies_let_it_see(restricted: Callable[[str], Caller]):
    ann = restricted("ann")

    assert names(GetTables(), ann) == ["lake/hr/people", "pond/eu/frogs"]
    assert [r["db_schema_name"] for r in rows(GetDbSchemas(), ann)] == ["hr", "eu"]
    people, _ = rows(GetTables(with_schema=True), ann)
    shown = columns(people)
    assert "salary" not in shown.names
    assert "email" in shown.names
    assert names(GetTables(), restricted("nobody")) == []
    assert rows(GetDbSchemas(), restricted("nobody")) == []


def test_columns_of_a_policy_that_cannot_be_applied_are_not_shown(
    restricted: Callable[[str], Caller],
):
    people = GetTables("lake", "hr", "people", with_schema=True)

    with pytest.raises(NotPermitted, match="can't be applied"):
        rows(people, restricted("stale"))
    (row,) = rows(GetTables("lake", "hr", "peopl%", with_schema=True), restricted("stale"))
    assert columns(row).names == []


def test_a_damaged_table_hides_no_other_and_is_an_error_by_its_name(lake: Path, caller: Caller):
    for path in (lake / "db" / "my_table" / "metadata").glob("*.json"):
        path.write_text("{")

    damaged, whole = sorted(
        rows(GetTables(schema_pattern="db", with_schema=True), caller),
        key=lambda row: len(columns(row)),
    )

    assert (damaged["table_name"], whole["table_name"]) == ("my_table", "myXtable")
    assert columns(damaged).names == []
    for pattern in ("my_table", r"my\_table"):
        with pytest.raises(CorruptMetadata):
            rows(GetTables(table_pattern=pattern, with_schema=True), caller)


def test_a_catalog_that_does_not_answer_hides_no_other(caller: Caller, pond: Asked):
    pond.answers = False

    assert "lake/hr/people" in names(GetTables(), caller)
    with pytest.raises(CatalogUnavailable):
        rows(GetTables(catalog="pond"), caller)
    with pytest.raises(CatalogUnavailable):
        # where it is the only one, nothing would look like an empty lake
        rows(GetDbSchemas(), Callers(Catalogs([pond])).of(None))


@pytest.mark.parametrize("catalog", ["lake", "pond"])
def test_columns_are_not_looked_up_for_who_has_left(catalog: str, caller: Caller):
    with pytest.raises(Cancelled):
        rows(GetTables(catalog, with_schema=True), caller, lambda: True)
