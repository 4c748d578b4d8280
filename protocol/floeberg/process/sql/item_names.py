"""What DuckDB calls the columns of a query that gives them no names: by the text of its own parser,
before anything is written anew."""

from __future__ import annotations

import json
import threading
from functools import lru_cache
from typing import Any

import duckdb

from floeberg.process.sql.connecting import open_connection

# one connection for all: a statement is a value to it, which is read and never run
_LOCK = threading.Lock()


def item_names(sql: str) -> list[str | None]:
    """Return the name of each item of the outermost SELECT of `sql`, the first of set operations.

    None for those that have a name, that are a column, or may be several; nothing at all for what
    DuckDB does not read, and for a query that is no SELECT.

    >>> item_names("SELECT a, count(*), a::int + 1 FROM t")
    [None, 'count_star()', '(CAST(a AS INTEGER) + 1)']
    """
    with _LOCK:
        parsed = json.loads(_asked("SELECT json_serialize_sql($1::VARCHAR)", sql))
        if parsed["error"] or len(parsed["statements"]) != 1:
            return []
        statement = parsed["statements"][0]
        node = statement["node"]
        while node.get("type") == "SET_OPERATION_NODE" and node.get("children"):
            if "BY_NAME" in str(node.get("setop_type")):
                return []
            node = node["children"][0]
        if node.get("type") != "SELECT_NODE":
            return []
        return [_name(item, statement) for item in node["select_list"]]


def _name(item: dict[str, Any], statement: dict[str, Any]) -> str | None:
    if item.get("alias") or item["class"] in ("COLUMN_REF", "STAR"):
        return None
    if '"STAR"' in (text := json.dumps(item)) or '"unnest"' in text or "STRUCT_EXTRACT" in text:
        return None
    only = json.loads(_asked("SELECT json_serialize_sql($1::VARCHAR)", "SELECT 1"))
    only["statements"][0]["node"]["select_list"] = [item]
    only["statements"][0]["named_param_map"] = statement.get("named_param_map", [])
    try:
        return _asked("SELECT json_deserialize_sql($1::JSON)", json.dumps(only))[len("SELECT ") :]
    except duckdb.Error:
        return None


def _asked(sql: str, value: str) -> str:
    ((text,),) = _parser().execute(sql, [value]).fetchall()
    return str(text)


@lru_cache(maxsize=1)
def _parser() -> duckdb.DuckDBPyConnection:
    return open_connection(
        memory_bytes=64 << 20, threads=1, spill=None, spill_bytes=0, timezone="UTC"
    )
