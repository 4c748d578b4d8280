from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from floeberg.protocol.errors import BadSql, Cancelled
from floeberg.server.access import Caller
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.sql.names import Session
from floeberg.server.sql.showing import show, shown_schema
from floeberg.server.sql.statements import Kind, parse_statement
from tests.support.lake import TableWriter, required, schema

COLUMNS = schema({"id": required("long"), "price": "decimal(9,2)"})


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Caller:
    made: Path = tmp_path_factory.mktemp("lakes")
    for name in ("lake/db/b", "lake/db/a", "lake/top", "lake/Other/c", "pond/db/frogs"):
        TableWriter.create(made / name, COLUMNS)
    return Caller(
        None, Catalogs([WarehouseCatalog(name, str(made / name)) for name in ("lake", "pond")])
    )


def rows(sql: str, caller: Caller, schema: str = "") -> list[tuple[Any, ...]]:
    session = Session(caller.catalogs.names, "lake", tuple(filter(None, schema.split("."))))
    statement = parse_statement(sql)
    found = show(statement, session, caller, lambda: False)
    assert found.schema == shown_schema(statement.kind)
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize(
    ("sql", "schema", "names"),
    [
        ("SHOW TABLES", "db", ["a", "b"]),
        ("SHOW TABLES", "DB", ["a", "b"]),
        ("SHOW TABLES", "", ["Other.c", "db.a", "db.b", "top"]),
        ("SHOW TABLES", "empty", []),
        ("SHOW TABLES FROM other", "db", ["c"]),
        ("SHOW TABLES IN lake.db", "", ["a", "b"]),
        ("SHOW TABLES FROM POND", "db", ["db.frogs"]),
        ("SHOW TABLES FROM pond.db", "db", ["frogs"]),
        ('SHOW TABLES FROM "pond".DB', "db", ["frogs"]),
    ],
)
def test_tables_are_shown_by_names_that_mean_them(
    sql: str, schema: str, names: list[str], caller: Caller
):
    assert rows(sql, caller, schema) == [(name,) for name in names]


def test_all_tables_are_shown_with_their_columns(caller: Caller):
    found = rows("SHOW ALL TABLES", caller)

    assert [row[:3] for row in found] == [
        ("lake", "", "top"),
        ("lake", "Other", "c"),
        ("lake", "db", "a"),
        ("lake", "db", "b"),
        ("pond", "db", "frogs"),
    ]
    assert {(*row[3], *row[4], row[5]) for row in found} == {
        ("id", "price", "BIGINT", "DECIMAL(9,2)", False)
    }


def test_schemas_and_catalogs_are_shown(caller: Caller):
    lake = [("lake", "", False), ("lake", "Other", False), ("lake", "db", True)]
    assert rows("SHOW SCHEMAS", caller, "db") == [*lake, ("pond", "db", False)]
    assert rows("SHOW SCHEMAS FROM Lake", caller, "db") == lake
    assert rows("SHOW DATABASES", caller) == [("lake",), ("pond",)]
    assert rows("SHOW CATALOGS", caller) == [("lake",), ("pond",)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SHOW TABLES FROM others", "no schema 'others'; did you mean Other?"),
        ("SHOW TABLES FROM nowhere.at.all", "SHOW SCHEMAS lists"),
        ("SHOW SCHEMAS FROM sea", "no catalog 'sea'; there are lake, pond"),
    ],
)
def test_what_is_not_there_is_told(sql: str, message: str, caller: Caller):
    with pytest.raises(BadSql, match=message.replace("?", r"\?")):
        rows(sql, caller)


def test_columns_are_not_looked_up_for_who_has_left(caller: Caller):
    session = Session(caller.catalogs.names, "lake")
    with pytest.raises(Cancelled):
        show(parse_statement("SHOW ALL TABLES"), session, caller, lambda: True)


@pytest.mark.parametrize("kind", [k for k in Kind if k.startswith("show")])
def test_columns_are_those_of_duckdb(kind: Kind):
    with duckdb.connect() as connection:
        known = connection.sql(kind.upper())
        ours = connection.from_arrow(shown_schema(kind).empty_table())
        assert list(zip(ours.columns, ours.types, strict=True)) == list(
            zip(known.columns, known.types, strict=True)
        )
