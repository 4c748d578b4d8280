from __future__ import annotations

import duckdb
import pytest

from floeberg.process.version import floeberg_version
from floeberg.server.sql.names import Session
from floeberg.server.sql.session_values import with_session_values
from floeberg.server.sql.statements import parse_statement

SESSION = Session(["lake", "old"], "lake", ("sales", "eu"))


def answer(
    sql: str, session: Session = SESSION, principal: str | None = "ann"
) -> tuple[list, list]:
    statement = with_session_values(parse_statement(sql), session, principal)
    with duckdb.connect() as connection:
        found = connection.sql(statement.sql())
        return found.columns, found.fetchall()


@pytest.mark.parametrize(
    ("sql", "name", "value"),
    [
        ("current_schema()", "current_schema()", "sales.eu"),
        ("CURRENT_SCHEMA", "current_schema", "sales.eu"),
        ("current_catalog", "current_catalog", "lake"),
        ("current_database()", "current_database()", "lake"),
        ("current_user", "current_user", "ann"),
        ("Session_User", "session_user", "ann"),
        ("version()", "version()", f"floeberg {floeberg_version()}"),
    ],
)
def test_a_column_has_the_value_and_the_name_of_the_function(sql, name, value):
    assert answer(f"SELECT {sql}") == ([name], [(value,)])
    assert answer(f"SELECT {sql} AS x") == (["x"], [(value,)])


def test_values_are_found_wherever_they_stand():
    sql = (
        "WITH a AS (SELECT upper(current_user) AS u WHERE current_catalog = 'lake')"
        " SELECT u || '.' || current_schema() AS x FROM a GROUP BY ALL"
        " ORDER BY current_user, (SELECT current_database())"
    )
    assert answer(sql) == (["x"], [("ANN.sales.eu",)])


def test_without_a_schema_it_is_empty_and_nobody_is_null():
    nobody = answer("SELECT current_schema() AS a, current_user AS b", Session(["l"], "l"), None)
    assert nobody == (["a", "b"], [("", None)])


def test_a_name_in_quotes_is_a_column():
    sql = 'SELECT "current_schema", t.current_schema FROM (SELECT 1 AS current_schema) AS t'
    assert answer(sql)[1] == [(1, 1)]


def test_a_value_is_text_whatever_is_in_it():
    assert answer("SELECT current_user", principal="o'neill")[1] == [("o'neill",)]


def test_other_statements_stay_as_they_are():
    statement = parse_statement("SELECT a FROM t")
    assert with_session_values(statement, SESSION, "ann") is statement
    shown = parse_statement("SHOW TABLES")
    assert with_session_values(shown, SESSION, "ann") is shown
