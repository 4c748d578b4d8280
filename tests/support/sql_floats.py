"""Comparisons in generated SQL that are written in two ways: as a user does, and by IEEE's rule.

The generators mark each comparison of numbers. `as_written` gives the text for floeberg, and
`by_ieee` one of which DuckDB's own order of NaN has nothing left to decide: each comparison asks
for nulls and NaN first, each list is compared one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_MARKED = re.compile("⟪([^⟪⟫]*)⟫")


def marked(operator: str, *operands: str) -> str:
    """Return a comparison that is still to be written; its operands may hold others.

    `operator` is one of two operands, `in` and `not in` a list, `between` and `not between`, `in
    query`, `not in query`, `> any` or `> all` and their like with a query in brackets, `nullif`, or
    `case`: of a value, what it may be, and what is given then.
    """
    return f"⟪{'¦'.join((operator, *operands))}⟫"


def as_written(text: str) -> str:
    return _written(text, _plain)


def by_ieee(text: str) -> str:
    return _written(text, _spelled)


def _written(text: str, write: Callable[[str, list[str]], str]) -> str:
    while (found := _MARKED.search(text)) is not None:
        operator, *operands = found[1].split("¦")
        text = text[: found.start()] + write(operator, operands) + text[found.end() :]
    return text


def _plain(operator: str, operands: list[str]) -> str:
    left, *others = operands
    match operator.split():
        case [*negation, "in"]:
            return f"{left} {' '.join(negation)} IN ({', '.join(others)})"
        case [*negation, "between"]:
            return f"{left} {' '.join(negation)} BETWEEN {others[0]} AND {others[1]}"
        case [*negation, "in", "query"]:
            return f"{left} {' '.join(negation)} IN {others[0]}"
        case [sign, ("any" | "all") as which]:
            return f"{left} {sign} {which} {others[0]}"
        case ["nullif"]:
            return f"nullif({left}, {others[0]})"
        case ["case"]:
            return f"CASE {left} WHEN {others[0]} THEN {others[1]} END"
        case _:
            return f"{left} {operator} {others[0]}"


def _spelled(operator: str, operands: list[str]) -> str:
    left, *others = operands
    match operator.split():
        case ["not", *rest]:
            return f"(NOT {_spelled(' '.join(rest), operands)})"
        case ["in"]:
            nulls = " OR ".join(f"({other}) IS NULL" for other in others)
            of_nan = f"CASE WHEN {nulls} THEN NULL ELSE FALSE END"
            listed = f"({left}) IN ({', '.join(others)})"
            return f"CASE WHEN {_is_nan(left)} THEN {of_nan} ELSE {listed} END"
        case ["between"]:
            low, high = others
            is_any = " OR ".join(map(_is_nan, operands))
            sides = f"{_compared(left, '>=', low)} AND {_compared(left, '<=', high)}"
            between = f"({left}) BETWEEN ({low}) AND ({high})"
            return f"(CASE WHEN {is_any} THEN {sides} ELSE {between} END)"
        case ["in", "query"]:
            return _any(left, "=", others[0])
        case [sign, "any"]:
            return _any(left, sign, others[0])
        case [sign, "all"]:
            opposite = {"=": "<>", "<>": "="}
            if sign in opposite:
                return f"(NOT {_any(left, opposite[sign], others[0])})"
            return _all(left, sign, others[0])
        case ["nullif"]:
            return f"CASE WHEN {_compared(left, '=', others[0])} THEN NULL ELSE {left} END"
        case ["case"]:
            return f"CASE WHEN {_compared(left, '=', others[0])} THEN {others[1]} END"
        case _:
            return _compared(left, operator, others[0])


def _compared(left: str, sign: str, right: str) -> str:
    of_nan = "TRUE" if sign in ("<>", "!=") else "FALSE"
    return (
        f"(CASE WHEN ({left}) IS NULL OR ({right}) IS NULL THEN NULL"
        f" WHEN {_is_nan(left)} OR {_is_nan(right)} THEN {of_nan}"
        f" ELSE ({left}) {sign} ({right}) END)"
    )


def _is_nan(operand: str) -> str:
    return f"coalesce(isnan(TRY_CAST(({operand}) AS DOUBLE)), FALSE)"


def _counted(left: str, sign: str, query: str) -> list[str]:
    """Return conditions that say whether one of the rows compares true, false or unknown."""
    test = _compared(left, sign, "each_one")
    rows = f"SELECT {test} AS answer FROM {query} AS every(each_one)"
    return [
        f"(SELECT count(*) FROM ({rows}) WHERE answer IS {answer}) > 0"
        for answer in ("TRUE", "FALSE", "NULL")
    ]


def _any(left: str, sign: str, query: str) -> str:
    true, _, unknown = _counted(left, sign, query)
    return f"(CASE WHEN {true} THEN TRUE WHEN {unknown} THEN NULL ELSE FALSE END)"


def _all(left: str, sign: str, query: str) -> str:
    _, false, unknown = _counted(left, sign, query)
    return f"(CASE WHEN {false} THEN FALSE WHEN {unknown} THEN NULL ELSE TRUE END)"
