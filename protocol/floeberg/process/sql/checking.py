"""Which statements are run: one SELECT over the inputs, by what DuckDB's own parser makes of it.

A coordinator has looked at the statement before. It does so with another parser, and where two
parsers differ lies what an attacker looks for: so the parser that the engine runs has the last
word, and what is let through is listed, but for scalar functions, of which there are hundreds, and
those that tell of the process or write are named instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import duckdb

from floeberg.protocol.errors import BadSql, UnsupportedSql
from floeberg.protocol.suggestions import quoted

TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree"})
"""The functions that may stand behind FROM."""
_DENIED = frozenset(
    {
        *("current_setting", "getvariable", "getenv", "write_log", "nextval", "currval"),
        *("setval", "sleep_ms"),
        *("query", "query_table", "json_execute_serialized_sql", "json_serialize_plan"),
        *("parse_duckdb_log_message", "add_parquet_key", "txid_current", "in_search_path"),
    }
)
_DENIED_PREFIXES = (
    *("__", "duckdb_", "pragma_", "pg_", "has_"),
    *("icu_", "arrow_", "pandas_", "python_"),
)

_REPEATING: Mapping[str, tuple[int, ...]] = {
    "repeat": (1,),
    "lpad": (1,),
    "rpad": (1,),
    "list_resize": (1,),
    "array_resize": (1,),
    "bitstring": (1,),
    "range": (0, 1, 2),
    "generate_series": (0, 1, 2),
}
"""Functions whose value grows with the number that an argument gives. DuckDB does not count their
memory, nor can they be interrupted: a single call may take all that the machine has."""
_MOST_REPEATED = 10_000
# likewise: a field may be as wide as the format says, or as one of the values
_FORMATTING = frozenset({"format", "printf"})
_WIDE = re.compile(r"\d{4}|\*|\{[^}]*\{")

# views that a bare name finds, as DuckDB searches the schemas main and pg_catalog
_SYSTEM_VIEWS = """
    SELECT lower(view_name) FROM duckdb_views() WHERE internal
    UNION SELECT lower(table_name) FROM duckdb_tables() WHERE internal
"""


def check_statement(
    connection: duckdb.DuckDBPyConnection, sql: str, inputs: Collection[str]
) -> None:
    """Let `sql` pass if it is one statement that reads `inputs`, and what it makes up itself.

    Raises `BadSql` for what is no SQL, and `UnsupportedSql`, which names what is not run.
    """
    parsed = _parsed(connection, sql)
    if parsed["error"]:
        if parsed["error_type"] == "not implemented":
            raise UnsupportedSql("only SELECT statements are run, and no PIVOT within them")
        if "expression depth" in str(parsed["error_message"]):
            raise too_deep()
        raise BadSql(str(parsed["error_message"]))
    if len(parsed["statements"]) != 1:
        raise UnsupportedSql("one statement at a time is run; send them one after the other")
    nodes = list(_nodes(parsed["statements"]))
    named = {str(name).lower() for node in nodes for name in _ctes(node)}
    system = _system_views()
    readable = {name.lower() for name in inputs}
    as_tables = {id(node["function"]) for node in nodes if node.get("type") == "TABLE_FUNCTION"}
    for node in nodes:
        match node.get("type"):
            case "BASE_TABLE":
                _check_table(node, readable, named - system)
            case "TABLE_FUNCTION":
                function = node["function"]
                name = str(function.get("function_name")).lower()
                if function.get("class") != "FUNCTION" or name not in TABLE_FUNCTIONS:
                    raise UnsupportedSql(
                        f"the table function {quoted(name)} is not available here;"
                        f" {', '.join(sorted(TABLE_FUNCTIONS))} are"
                    )
            case "SHOW_REF":
                raise UnsupportedSql("SHOW, DESCRIBE and SUMMARIZE are not run by a worker")
            case _:
                if "function_name" in node:
                    _check_function(node, is_table=id(node) in as_tables)


@lru_cache(maxsize=1)
def _system_views() -> frozenset[str]:
    with duckdb.connect() as connection:
        return frozenset(name for (name,) in connection.execute(_SYSTEM_VIEWS).fetchall())


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Return what DuckDB's parser makes of `sql`."""
    # all rows: the connection does nothing else before a result was read to its end
    ((text,),) = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchall()
    try:
        return cast(dict[str, Any], json.loads(text))
    except RecursionError:
        raise too_deep() from None


def too_deep() -> UnsupportedSql:
    return UnsupportedSql("the statement is nested too deeply; write it in several steps")


def _nodes(root: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects within, without recursion."""
    waiting = [root]
    while waiting:
        match waiting.pop():
            case dict() as node:
                yield node
                waiting.extend(node.values())
            case list() as items:
                waiting.extend(items)


def _ctes(node: Mapping[str, Any]) -> Iterator[object]:
    """Yield the names that a node gives to queries."""
    match node:
        case {"cte_map": {"map": [*entries]}}:
            yield from (entry["key"] for entry in entries)
    if node.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
        yield node.get("cte_name", "")


def _check_table(node: Mapping[str, Any], inputs: Collection[str], named: Collection[str]) -> None:
    name = str(node.get("table_name")).lower()
    if node.get("catalog_name") or node.get("schema_name") or node.get("at_clause"):
        raise UnsupportedSql(f"the table {quoted(name)} is named in a way that no input is")
    if name not in inputs and name not in named:
        raise BadSql(f"no table {quoted(name)} is among the statement's inputs")


def _check_function(node: Mapping[str, Any], *, is_table: bool) -> None:
    name = str(node["function_name"]).lower()
    if name in _DENIED or name.startswith(_DENIED_PREFIXES) or node.get("catalog"):
        raise UnsupportedSql(f"the function {quoted(name)} is not available here")
    # as a table, it gives its rows one after the other
    if name in _REPEATING and not is_table:
        arguments = [argument["expression"] for argument in node["arguments"]]
        is_named = any(argument["name"] for argument in node["arguments"])
        numbers = [arguments[at] for at in _REPEATING[name] if at < len(arguments)]
        if is_named or not all(map(_is_small, numbers)):
            raise UnsupportedSql(
                f"{name} takes a number of at most {_MOST_REPEATED:,} here, written out; for a"
                " series, read FROM generate_series(…)"
            )
    if name in _FORMATTING and not _is_narrow(node["arguments"]):
        raise UnsupportedSql(f"{name} takes a format that is written out, without wide fields")


def _is_small(node: Mapping[str, Any]) -> bool:
    """Say whether an argument is a small number that is written out."""
    match node:
        case {"class": "CONSTANT", "literal": {"kind": "INTEGER", "text": str(text)}}:
            return len(text) <= 6 and text.isdecimal() and int(text) <= _MOST_REPEATED
    return False


def _is_narrow(arguments: Sequence[Mapping[str, Any]]) -> bool:
    match arguments:
        case [{"name": "", "expression": {"literal": {"kind": "STRING", "text": str(text)}}}, *_]:
            return _WIDE.search(text) is None
    return False
