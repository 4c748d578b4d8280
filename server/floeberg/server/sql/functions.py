"""Which functions a statement may call.

The engine that computes a statement is locked down by itself; what is refused here never reaches
it, and gets an answer that says why. Functions that give rows (behind FROM) are those that read
files and the engine's inside, so only the few in `TABLE_FUNCTIONS` may be called. Functions of
values are many and harmless but for those in `_REFUSED`, which tell of the machine and the engine,
wait, log, or keep something between calls.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.process.sql.checking import TABLE_FUNCTIONS
from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.suggestions import quoted

_REFUSED = frozenset(
    {
        # settings, variables and the machine
        "current_setting",
        "getenv",
        "getvariable",
        "in_search_path",
        "inet_client_addr",
        "inet_client_port",
        "inet_server_addr",
        "inet_server_port",
        "pg_conf_load_time",
        "pg_postmaster_start_time",
        # the connection
        "current_connection_id",
        "current_query",
        "current_query_id",
        "current_transaction_id",
        "txid_current",
        # state
        "currval",
        "nextval",
        "setseed",
        "setval",
        "write_log",
        # the engine's inside
        "constant_or_null",
        "json_execute_serialized_sql",
        "json_serialize_plan",
        "stats",
        "vector_type",
        # time that is only spent
        "pg_sleep",
        "sleep_ms",
    }
)
_REFUSED_PREFIXES = ("__", "read_", "parquet_", "duckdb_", "pragma_", "sniff_")
_FILES = ("read_", "parquet_", "glob", "sniff_")


def function_name(node: exp.Func) -> str:
    """Return the name by which `node` calls a function, in lower case."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.name).lower()
    if isinstance(node, exp.GenerateSeries):
        return "range" if node.args.get("is_end_exclusive") else "generate_series"
    return node.sql_name().lower()


def check_functions(tree: Node) -> None:
    """Raise `UnsupportedSql` for a function that may not be called, or not behind FROM."""
    for node in tree.walk():
        match node:
            case exp.Table(this=exp.Identifier() | exp.Dot()):
                pass
            case exp.Table() | exp.Lateral(this=exp.Func()):
                _check_table_function(node.this)
            case exp.Func() if is_refused(name := function_name(node)):
                raise _refusal(name)


def is_refused(name: str) -> bool:
    """Say whether a function of values may not be called; `name` is in lower case."""
    return name in _REFUSED or name.startswith(_REFUSED_PREFIXES)


def _check_table_function(called: object) -> None:
    if not isinstance(called, exp.Func):
        raise UnsupportedSql("only tables, queries and functions can stand behind FROM")
    name = function_name(called)
    if name not in TABLE_FUNCTIONS:
        raise _refusal(name)


def _refusal(name: str) -> UnsupportedSql:
    if name.startswith(_FILES):
        return UnsupportedSql(
            f"{quoted(name)} reads files, and only the tables of the catalogs are read here; name"
            " one, as in FROM db.orders"
        )
    return UnsupportedSql(
        f"function {quoted(name)} is not served here, since it reaches beyond the query (behind"
        f" FROM, only {', '.join(sorted(TABLE_FUNCTIONS))} are)"
    )
