"""What a reason takes away from a comparison: functions from a comparison to what is left of it.

Each looks at the very rows that differ, so that a reason doesn't cover for another mistake.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from math import inf
from typing import Any, TypeAlias

from tests.oracles.comparison import Comparison, Row
from tests.oracles.scans import operations

Forgive: TypeAlias = Callable[[Comparison], Comparison]

_ZEROS = (struct.pack("<d", 0.0), struct.pack("<d", -0.0))
_INFINITIES = (struct.pack("<d", float("inf")), struct.pack("<d", float("-inf")))
_LEAST_INT, _LEAST_LONG = -(2**31), -(2**63)


# --- rows, by their values in the columns that the filter looks at --------------------------------


def nan(c: Comparison) -> Comparison:
    return c.without(lambda values: "NaN" in values)


def null(c: Comparison) -> Comparison:
    """Take away the oracle's rows with null, unless null is what the filter asks for."""
    if {*operations(c.scan.filter)} <= {"is-null", "not-null"}:
        return c
    return replace(c, only_theirs=c.without(lambda values: None in values).only_theirs)


def signed_zero(c: Comparison) -> Comparison:
    return c.without(lambda values: any(v in _ZEROS for v in values))


def infinity(c: Comparison) -> Comparison:
    """Take away rows with an infinity; and if the literal is one, those with NaN."""
    literal = (c.scan.filter or ())[-1:]
    odd = (*_INFINITIES, "NaN") if literal in ((inf,), (-inf,)) else _INFINITIES
    return c.without(lambda values: any(v in odd for v in values))


def uuid(c: Comparison) -> Comparison:
    return c.without(lambda values: any(isinstance(v, bytes) and len(v) == 16 for v in values))


def before_1970(c: Comparison) -> Comparison:
    """Take away rows whose time is negative."""
    return c.without(lambda values: any(isinstance(v, int) and v < 0 for v in values))


def negative_decimal(c: Comparison) -> Comparison:
    return c.without(lambda values: any(isinstance(v, Decimal) and v < 0 for v in values))


def least_integer(c: Comparison) -> Comparison:
    """Take away rows with the least value of their type, or all of ours if it is the literal."""
    if _LEAST_LONG in (c.scan.filter or ()):
        return ours(c)
    return c.without(lambda values: any(v in (_LEAST_INT, _LEAST_LONG) for v in values))


# --- rows, by the side ----------------------------------------------------------------------------


def ours(c: Comparison) -> Comparison:
    """Take away the rows that the oracle lacks."""
    return replace(c, only_ours=[])


def filtered(c: Comparison) -> Comparison:
    """Take away everything, if there is a filter."""
    return c if c.scan.filter is None else replace(c, only_ours=[], only_theirs=[])


# --- values ---------------------------------------------------------------------------------------


def columns(*names: str) -> Forgive:
    """Return what compares the rows without some columns."""
    return lambda c: c.alike(lambda row: {k: v for k, v in row.items() if k not in names})


def empty_for_null(c: Comparison) -> Comparison:
    """Compare the rows with null for an empty list or map."""
    return c.alike(_each(lambda v: None if v == () or v == frozenset() else v))


def hollow_for_null(c: Comparison) -> Comparison:
    """Compare the rows with null for a struct that holds only nulls."""
    return c.alike(
        _each(lambda v: None if isinstance(v, frozenset) and all(f[1] is None for f in v) else v)
    )


def _each(change: Callable[[Any], Any]) -> Callable[[Row], Row]:
    return lambda row: {name: change(value) for name, value in row.items()}
