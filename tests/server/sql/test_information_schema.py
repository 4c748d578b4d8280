from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from floeberg.process.auth import Principal
from floeberg.process.auth.watched import WatchedFile
from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import (
    Cancelled,
    CatalogUnavailable,
    CorruptMetadata,
    UnsupportedSql,
)
from floeberg.server.access import Caller, Callers, Policies
from floeberg.server.catalogs import Catalogs, LoadedTable, WarehouseCatalog
from floeberg.server.sql.information_schema import (
    VIEWS,
    AskedNames,
    information_schema,
    information_schema_table,
)
from floeberg.server.sql.names import Session, TableReference
from floeberg.server.sql.splitting import split
from floeberg.server.sql.statements import parse_statement
from tests.support.all_types import COLUMNS, write_all_types
from tests.support.lake import TableWriter, required, schema
from tests.support.people import write_people


class Far:
    """A catalog over the network, which remembers what was loaded."""

    is_local = suggests_cheaply = False
    kind = "far"

    def __init__(self, near: WarehouseCatalog) -> None:
        self._near = near
        self.name = near.name
        self.answers = True
        self.loaded: list[tuple[str, ...]] = []

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        if not self.answers:
            raise CatalogUnavailable(f"catalog {self.name} doesn't answer")
        return self._near.list_tables()

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        self.loaded.append(identifier)
        return self._near.load(identifier)

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        return []


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("lakes")
    write_people(made / "lake" / "hr" / "people")
    columns = schema({"id": required("long"), "price": "decimal(9,2)"})
    for name in ("b", "a"):
        TableWriter.create(made / "lake" / "db" / name, columns)
    TableWriter.create(made / "pond" / "eu" / "frogs", schema({"id": "int"}))
    write_all_types(made / "pond" / "eu" / "types")
    return made


@pytest.fixture
def pond(directory: Path) -> Far:
    return Far(WarehouseCatalog("pond", str(directory / "pond")))


@pytest.fixture
def catalogs(directory: Path, pond: Far) -> Catalogs:
    return Catalogs([WarehouseCatalog("lake", str(directory / "lake")), pond])


@pytest.fixture
def caller(catalogs: Catalogs) -> Caller:
    return Caller(None, catalogs)


def rows(view: str, caller: Caller, **asked: str) -> list[dict[str, Any]]:
    names = AskedNames(**{kind: frozenset({name}) for kind, name in asked.items()})
    found = information_schema_table(view, caller, lambda: False, names)
    found.validate(full=True)
    assert found.schema.equals(arrow_schema(information_schema(view)))
    return found.to_pylist()


@pytest.mark.parametrize("view", list(VIEWS))
def test_views_have_the_columns_that_duckdb_s_have(view: str):
    with duckdb.connect() as connection:
        known = connection.sql(f"SELECT * FROM information_schema.{view} LIMIT 0")
        ours = connection.from_arrow(arrow_schema(information_schema(view)).empty_table())
        assert list(zip(ours.columns, ours.types, strict=True)) == list(
            zip(known.columns, known.types, strict=True)
        )


def test_lists_schemas_and_tables_of_all_catalogs(caller: Caller):
    schemas = [(r["catalog_name"], r["schema_name"]) for r in rows("schemata", caller)]
    assert schemas == [("lake", "db"), ("lake", "hr"), ("pond", "eu")]
    tables = rows("tables", caller)
    assert [".".join(list(r.values())[:3]) for r in tables] == [
        "lake.db.a",
        "lake.db.b",
        "lake.hr.people",
        "pond.eu.frogs",
        "pond.eu.types",
    ]
    assert {(r["table_type"], r["is_insertable_into"]) for r in tables} == {("BASE TABLE", "NO")}
    assert rows("views", caller) == []


def test_lists_columns_with_their_types(caller: Caller):
    first, second = rows("columns", caller, tables="a")

    def told(row: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in row.items() if v is not None}

    named = {"table_catalog": "lake", "table_schema": "db", "table_name": "a"}
    assert told(first) == named | {
        "column_name": "id",
        "ordinal_position": 1,
        "is_nullable": "NO",
        "data_type": "BIGINT",
        "numeric_precision": 64,
        "numeric_precision_radix": 2,
        "numeric_scale": 0,
        "is_generated": "NEVER",
    }
    assert told(second) == named | {
        "column_name": "price",
        "ordinal_position": 2,
        "is_nullable": "YES",
        "data_type": "DECIMAL(9,2)",
        "numeric_precision": 9,
        "numeric_precision_radix": 10,
        "numeric_scale": 2,
        "is_generated": "NEVER",
    }
    types = {r["column_name"]: r for r in rows("columns", caller, tables="types")}
    assert list(types) == list(COLUMNS)
    assert types["timestamp_ns"]["datetime_precision"] == 9
    assert types["time"]["datetime_precision"] == 6
    assert types["list"]["data_type"] == "DECIMAL(3,1)[]"


def test_loads_only_the_tables_whose_names_are_asked_for(caller: Caller, pond: Far):
    assert [r["column_name"] for r in rows("columns", caller, tables="frogs")] == ["id"]
    assert rows("columns", caller, schemas="nowhere") == []
    assert rows("columns", caller, catalogs="lake", tables="frogs") == []
    assert pond.loaded == [("eu", "frogs")]


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("table_name = 'a'", AskedNames(tables=frozenset({"a"}))),
        (
            "table_schema = 'db' AND table_name IN ('a', 'b') AND ordinal_position > 1",
            AskedNames(schemas=frozenset({"db"}), tables=frozenset({"a", "b"})),
        ),
        ("'lake' = table_catalog", AskedNames(catalogs=frozenset({"lake"}))),
        ("table_name = 'a' AND table_name = 'b'", AskedNames(tables=frozenset())),
        ("table_name = 'a' OR is_nullable = 'NO'", AskedNames()),
        ("table_name LIKE '%a'", AskedNames()),
        ("NOT table_name = 'a'", AskedNames()),
        ("column_name = 'a'", AskedNames()),
    ],
)
def test_the_names_that_a_query_asks_for_are_found(condition: str, asked: AskedNames):
    def schema_of(reference: TableReference) -> Any:
        assert reference.information_schema is not None
        return information_schema(reference.information_schema)

    statement = parse_statement(f"SELECT * FROM information_schema.columns WHERE {condition}")
    (only,) = split(statement, Session(["lake"], "lake"), schema_of).inputs
    assert AskedNames.of(only.filter) == asked


def test_has_the_columns_that_are_asked_for(caller: Caller):
    found = information_schema_table(
        "tables", caller, lambda: False, columns=["TABLE_COMMENT", "table_name"]
    )
    assert found.column_names == ["table_name", "TABLE_COMMENT"]
    assert found.num_rows == 5


def test_a_caller_sees_what_policies_let_it_see(catalogs: Catalogs, tmp_path: Path):
    rules = '[[rule]]\nprincipals = ["ann"]\ntables = ["lake.hr.people"]\nhide = ["salary"]\n'
    (tmp_path / "policies").write_text(rules)
    watched = WatchedFile("policies", tmp_path / "policies", Policies.parse)
    ann = Callers(catalogs, watched).of(Principal("ann", "token"))

    assert [r["table_name"] for r in rows("tables", ann)] == ["people"]
    columns = [r["column_name"] for r in rows("columns", ann)]
    assert "email" in columns
    assert "salary" not in columns


def test_a_damaged_table_hides_no_other_and_is_an_error_by_its_name(tmp_path: Path):
    for name in ("a", "b"):
        table = TableWriter.create(tmp_path / "db" / name, schema({"id": "int"}))
    table.metadata_path.write_text("{}")
    caller = Caller(None, Catalogs([WarehouseCatalog("lake", str(tmp_path))]))

    assert [r["table_name"] for r in rows("columns", caller)] == ["a"]
    assert [r["table_name"] for r in rows("tables", caller)] == ["a", "b"]
    with pytest.raises(CorruptMetadata):
        rows("columns", caller, tables="b")


def test_a_catalog_that_does_not_answer_hides_no_other(caller: Caller, pond: Far):
    pond.answers = False
    assert {r["table_catalog"] for r in rows("tables", caller)} == {"lake"}
    with pytest.raises(CatalogUnavailable):
        rows("tables", caller, catalogs="pond")


@pytest.mark.parametrize("catalog", ["lake", "pond"])
def test_columns_are_not_looked_up_for_who_has_left(catalog: str, caller: Caller, pond: Far):
    asked = AskedNames(catalogs=frozenset({catalog}))
    with pytest.raises(Cancelled):
        information_schema_table("columns", caller, lambda: True, asked)
    assert pond.loaded == []


def test_a_view_that_is_not_there_is_told_with_those_that_are():
    with pytest.raises(UnsupportedSql, match="'triggers' is not served; it has schemata, tables"):
        information_schema("triggers")
