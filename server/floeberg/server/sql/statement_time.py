"""Functions whose value is the time of the statement: `now()`, `current_date` and so on.

It is one time for all of a statement. So each becomes a literal of the type that it has, and the
shares of a scan, of which each is a statement to its engine, agree. What is of type TIME WITH TIME
ZONE is left as it is.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql.float_comparisons import shown_name
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.parameters import Parameter, literal_of
from floeberg.server.sql.statements import Statement

_INSTANTS = frozenset({"now", "get_current_timestamp", "transaction_timestamp"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def with_statement_time(statement: Statement, at_micros: int, zone: Zone) -> Statement:
    """Return the statement with literals for the functions that ask for its time, which is
    `at_micros` since the epoch, and for the day and the clock of `zone`."""
    tree = statement.tree
    if tree is None or not any(_kind(node) for node in tree.walk()):
        return statement
    instant = _EPOCH + timedelta(microseconds=at_micros)
    local = zone.local(instant)
    values: dict[str, Parameter] = {
        "instant": instant,
        "date": local.date(),
        "local": local,
        "clock": local.time(),
    }
    tree = tree.copy()
    _name_items(tree)
    for node in list(tree.walk()):
        kind = _kind(node)
        if kind is not None:
            node.replace(literal_of(values[kind]))
    return replace(statement, tree=tree, has_time=True)


def _name_items(tree: Node) -> None:
    """Give items that have the time in them, and no name, the one that they would have: another for
    each time could not be told before."""
    for select in list(tree.find_all(exp.Select)):
        for at, item in enumerate(select.expressions):
            if isinstance(item, exp.Alias) or not any(map(_kind, item.walk())):
                continue
            if item.find(exp.Columns) is None:
                name = shown_name(item).lower() if _kind(item) else shown_name(item)
                alias = exp.Alias(this=item, alias=exp.to_identifier(name, quoted=True))
                select.set("expressions", alias, at)


def _kind(node: exp.Expr) -> str | None:
    """Return what a call tells, None for a node that is no such call."""
    if node.args.get("this") and not isinstance(node, exp.Anonymous):
        return None  # digits, or a zone
    match node:
        case exp.CurrentTimestamp():
            return "instant"
        case exp.CurrentDate():
            return "date"
        case exp.Localtimestamp():
            return "local"
        case exp.Localtime():
            return "clock"
        case exp.Anonymous() if not node.expressions:
            name = str(node.name).lower()
            if name in _INSTANTS:
                return "instant"
            return "clock" if name == "current_localtime" else None
        case _:
            return None
