"""What keeps a part of a query from being computed on shares of the rows, each by itself.

An expression belongs to a row if it says the same wherever and whenever the row is read, and looks
at no other row. What is looked for is the engine's text of an expression rather than its tree, in
which one function goes by several names.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.expressions.core import Expr
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.parsing import to_sql

AGGREGATES = frozenset(
    {
        *("any_value", "approx_count_distinct", "approx_quantile", "approx_top_k", "arbitrary"),
        *("arg_max", "arg_max_null", "arg_max_nulls_last", "arg_min", "arg_min_null"),
        *("arg_min_nulls_last", "argmax", "argmin", "array_agg", "avg", "bit_and", "bit_or"),
        *("bit_xor", "bitstring_agg", "bool_and", "bool_or", "combine_aggr", "corr", "count"),
        *("count_if", "count_star", "countif", "covar_pop", "covar_samp", "decimal_average"),
        *("entropy", "favg", "first", "fsum", "group_concat", "histogram", "histogram_exact"),
        *("kahan_sum", "kurtosis", "kurtosis_pop", "last", "list", "listagg", "lttb", "mad", "max"),
        *("max_by", "mean", "median", "min", "min_by", "mode", "product", "quantile"),
        *("quantile_cont", "quantile_disc", "regr_avgx", "regr_avgy", "regr_count"),
        *("regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
        *("reservoir_quantile", "sem", "skewness", "stddev", "stddev_pop", "stddev_samp"),
        *("string_agg", "sum", "sum_no_overflow", "sumkahan", "var_pop", "var_samp", "variance"),
        *("variant_group_object", "grouping", "grouping_id"),
    }
)
"""The engine's aggregate functions."""

UNSTABLE = frozenset(
    {
        # another value for each call
        *("random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval", "currval"),
        *("setseed", "setval", "error", "write_log", "sleep_ms"),
        # another value for each statement, and a fragment is one of its own
        *("now", "today", "age", "current_date", "current_localtime", "current_localtimestamp"),
        *("get_current_time", "get_current_timestamp", "transaction_timestamp", "current_time"),
        *("current_timestamp", "localtime", "localtimestamp", "txid_current"),
        *("current_connection_id", "current_query", "current_query_id", "current_transaction_id"),
        *("stats", "vector_type"),
    }
)
"""The engine's functions that may give fragments of one statement different values."""

_UNSTABLE_NODES = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Rand,
    exp.Uuid,
)
_CALL = re.compile(r'(\w+)"?\s*\(')


class Undivided(Exception):
    """The query is not computed by fragments."""


def called(node: Node) -> set[str]:
    """Return the names of the functions that `node` calls, in lower case, and perhaps others."""
    return {name.lower() for name in _CALL.findall(to_sql(node))}


def function_called(node: Expr) -> str | None:
    """Return the name of the function that `node` itself is a call of, to the engine."""
    if not isinstance(node, exp.Func) or not isinstance(node, Node):
        return None
    text = to_sql(node)
    found = _CALL.match(text, 1 if text.startswith('"') else 0)
    if found is None or _end_of_call(text, found.end()) != len(text):
        return None  # an operator, perhaps with a call on its left
    return found[1].lower()


_QUOTES_AND_BRACKETS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]""")


def _end_of_call(text: str, at: int) -> int:
    """Return where the bracket closes behind which `at` is."""
    depth = 1
    for found in _QUOTES_AND_BRACKETS.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text) + 1


def are_same(one: Node, other: Node) -> bool:
    """Say whether two expressions are written in the same way; to the trees by themselves, keys of
    JSON that differ in case are the same."""
    return one == other and to_sql(one) == to_sql(other)


def is_of_a_row(node: Node) -> bool:
    """Say whether an expression says the same of a row wherever and whenever it is read."""
    return (
        is_stable(node)
        and not called(node) & AGGREGATES
        and node.find(exp.Window, exp.AggFunc) is None
    )


def is_stable(node: Node) -> bool:
    """Say whether there is nothing in `node` that differs from call to call, and no query."""
    if any(isinstance(each, (*_UNSTABLE_NODES, exp.Query)) for each in node.walk()):
        return False
    return not called(node) & UNSTABLE


def check_stable(select: exp.Select) -> None:
    """Raise `Undivided` if an expression of `select` itself is not stable."""
    for key, value in select.args.items():
        clauses = value if isinstance(value, list) else [value]
        if key != "from_" and not all(is_stable(c) for c in clauses if isinstance(c, Node)):
            raise Undivided
