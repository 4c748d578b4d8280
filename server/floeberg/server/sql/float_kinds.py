"""Which values in a query may be NaN, as far as it can be told without the engine.

What cannot be told is `Kind.UNKNOWN`, and whoever asks lets the engine decide. A name is that of a
column wherever it stands in the query, also behind a query in brackets; so it is told only if all
that has this name, in any table or given by the query itself, is of one kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import numpy as np
from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.types import (
    DoubleType,
    FloatType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    VariantType,
)
from floeberg.server.sql.columns import Source, words_of
from floeberg.server.sql.constant_expressions import constant_of
from floeberg.server.sql.constants import Constant, Float, Text
from floeberg.server.sql.instants import Zone


class Kind(Enum):
    """Of the values of an expression."""

    EXACT = "of a type without NaN"
    NUMBER = "never NaN, perhaps of a float's type"
    FLOAT = "of a float's type"
    TEXT = "text in quotes, which may be NaN where it meets a float; other text meets none"
    UNKNOWN = "any of these"


_EXACT_TYPES = frozenset(
    {
        *("BIGINT", "BINARY", "BIT", "BOOLEAN", "DATE", "DECIMAL", "INT", "INT128"),
        *("INTERVAL", "SMALLINT", "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ"),
        *("TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_S", "TIMETZ", "TINYINT", "UBIGINT", "UINT"),
        *("UINT128", "USMALLINT", "UTINYINT", "UUID", "VARBINARY"),
    }
)
_EXACT = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is, exp.Not),
    *(exp.And, exp.Or, exp.Exists, exp.Like, exp.ILike, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.IsNan, exp.StartsWith),
    *(exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Length),
    exp.Interval,
)


class Kinds:
    """The kinds of the expressions of one query, whose tables are `sources`."""

    def __init__(self, tree: Node, sources: Sequence[Source], zone: Zone) -> None:
        self._zone = zone
        self._columns: dict[str, Kind] = {}
        # these give columns of types, or names, that stand nowhere in the query
        opening = (exp.SetOperation, exp.Pivot, exp.Columns, exp.Unnest, exp.Explode)
        self._is_open = tree.find(*opening) is not None
        for source in sources:
            for name, kind in _named(source.schema.fields):
                self._columns[name] = _joined([self._columns.get(name, kind), kind])
        opaque, aliases = _made_names(tree)
        self._made = opaque | aliases.keys()
        known = self._columns
        # an alias of an alias is not followed
        self._columns = {**known, **dict.fromkeys(self._made, Kind.UNKNOWN)}
        self._columns |= {
            name: _joined({*map(self.of, values), *({known[name]} if name in known else ())})
            for name, values in aliases.items()
            if name not in opaque
        }

    def constant(self, node: Node) -> Constant | None:
        """Return the constant that `node` is, or None."""
        return constant_of(node, self._zone)

    def of(self, node: Node) -> Kind:
        while isinstance(node, exp.Paren | exp.Window | exp.Filter):
            node = node.this
        constant = self.constant(node)
        if constant is not None:
            return _of_constant(constant)
        match node:
            case exp.Column() | exp.Dot():
                return self._of_words(words_of(node))
            case exp.Cast():
                return _of_type(node.to)
            case exp.Subquery(this=exp.Select() as select) | (exp.Select() as select):
                items = select.expressions
                return self.of(_unnamed(items[0])) if len(items) == 1 else Kind.UNKNOWN
            case exp.Avg():
                return Kind.NUMBER if self.of(node.this) is Kind.EXACT else Kind.UNKNOWN
            case exp.Coalesce():
                return self._of_all([node.this, *node.expressions])
            case exp.Case():
                default = node.args.get("default")
                branches = [each.args["true"] for each in node.args["ifs"]]
                return self._of_all([*branches, *([default] if default is not None else [])])
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Sum():
                kind = self._of_all(_terms(node))
                # what is beyond all numbers may add up to NaN
                return Kind.UNKNOWN if kind is Kind.NUMBER else kind
            case exp.Min() | exp.Max() | exp.Neg() | exp.Abs():
                return self._of_all([node.this])
            case _ if isinstance(node, _EXACT):
                return Kind.EXACT
            case _:
                return Kind.UNKNOWN

    def _of_all(self, nodes: Iterable[Node]) -> Kind:
        """Return what is made of values that are brought to one type."""
        kinds = set()
        for node in nodes:
            if isinstance(self.constant(node), Text):
                return Kind.UNKNOWN  # it becomes what the others are
            kinds.add(self.of(node))
        return _joined(kinds)

    def _of_words(self, words: tuple[str, ...] | None) -> Kind:
        if self._is_open or not words:
            return Kind.UNKNOWN
        *above, name = (word.casefold() for word in words)
        if any(each in self._made for each in above):
            return Kind.UNKNOWN
        return self._columns.get(name, Kind.UNKNOWN)


def _joined(kinds: Iterable[Kind]) -> Kind:
    different = set(kinds)
    return different.pop() if len(different) == 1 else Kind.UNKNOWN


def _unnamed(item: Node) -> Node:
    return item.this if isinstance(item, exp.Alias) else item


def _of_constant(constant: Constant) -> Kind:
    match constant:
        case Float(value):
            return Kind.FLOAT if np.isnan(value) else Kind.NUMBER
        case Text(text, typed=False) if "nan" in text.casefold():
            return Kind.TEXT
        case _:
            return Kind.EXACT


def _of_type(type_: exp.DataType) -> Kind:
    kind = type_.this.value if isinstance(type_.this, exp.DType) else ""
    if kind in ("FLOAT", "DOUBLE"):
        return Kind.FLOAT
    return Kind.EXACT if kind in _EXACT_TYPES else Kind.UNKNOWN


def _terms(node: Node) -> Iterator[Node]:
    """Yield what sums and products, of each other too, are made of."""
    waiting = [node]
    while waiting:
        term = waiting.pop()
        if isinstance(term, exp.Add | exp.Sub | exp.Mul | exp.Sum):
            waiting += [each for each in term.args.values() if isinstance(each, Node)]
        else:
            yield term


def _named(fields: Sequence[NestedField]) -> Iterator[tuple[str, Kind]]:
    """Yield all names of columns and of fields below them, without case."""
    for field in fields:
        yield field.name.casefold(), _of_column(field.type)
        yield from _named(_below(field.type))


def _below(type_: Type) -> Sequence[NestedField]:
    match type_:
        case StructType(fields):
            return fields
        case ListType():
            return _below(type_.element)
        case MapType():
            return [*_below(type_.key), *_below(type_.value)]
        case _:
            return ()


def _of_column(type_: Type) -> Kind:
    match type_:
        case FloatType() | DoubleType():
            return Kind.FLOAT
        case VariantType():
            return Kind.UNKNOWN
        case _:
            return Kind.EXACT


def _made_names(tree: Node) -> tuple[frozenset[str], dict[str, list[Node]]]:
    """Return the names that the query gives to values, without case: those that may be anything,
    and aliases with what they stand for."""
    opaque: set[str] = set()
    aliases: dict[str, list[Node]] = {}
    for node in tree.walk():
        match node:
            case exp.Alias():
                # a column under its own name is what it was
                if (words_of(node.this) or ("",))[-1].casefold() != node.alias.casefold():
                    aliases.setdefault(node.alias.casefold(), []).append(node.this)
            case exp.TableAlias():
                opaque.update(str(column.name) for column in node.args.get("columns") or ())
            case exp.PropertyEQ():
                opaque.add(str(node.this.name))
            case exp.Lambda():
                opaque.update(str(parameter.name) for parameter in node.expressions)
            case exp.Comprehension():
                opaque.update(str(each.name) for each in node.expression.find_all(exp.Identifier))
    return frozenset(name.casefold() for name in opaque), aliases
