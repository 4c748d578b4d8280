"""Filters as text: `amount > 10 AND region IN ('eu', 'us')`.

The grammar is that of a SQL WHERE clause over single columns:

    filter    := filter OR filter | filter AND filter | NOT filter | ( filter ) | TRUE | FALSE |
    test test      := column ( = | == | != | <> | < | <= | > | >= ) literal       (or the other way
    round)
               | column [NOT] IN ( literal, … )      | column [NOT] BETWEEN literal AND literal
               | column IS [NOT] NULL                | column IS [NOT] NAN
               | column [NOT] LIKE 'prefix%'         | column [NOT] STARTS WITH 'prefix'
               | STARTS_WITH(column, 'prefix')
    column    := name or "quoted" or `quoted`, and dots between them
    literal   := 'text' ('' is a quote) | number | TRUE | FALSE | X'00ff'
               | DATE 'text' | TIME 'text' | TIMESTAMP 'text' | UUID 'text'

Keywords have no case; NOT binds closest, then AND, then OR. What a literal means is decided by its
column, so `DATE` and its like are decoration, and numbers keep all their digits. Quotes allow any
character in a name; the parts are joined by dots and looked up as a whole, so `"a.b"` and `a.b` are
the same column.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn

from floeberg.protocol.errors import BadFilter
from floeberg.protocol.expressions.json_form import exact_number
from floeberg.protocol.expressions.model import (
    FALSE,
    MAX_DEPTH,
    TRUE,
    And,
    Constant,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    RawLiteral,
)
from floeberg.protocol.expressions.tokens import (
    Token,
    name_of,
    place_of,
    shortened,
    tokens,
    unquoted,
)
from floeberg.protocol.suggestions import cut, quoted

_BARE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_HUGE = re.compile(r"[eE][+-]?[0-9]{7,}\Z")
_MAX_DIGITS = 1000
_MAX_PARENTHESES = 2 * MAX_DEPTH

_RESERVED = frozenset(["and", "or", "not", "in", "is", "null", "like", "between", "true", "false"])
_TYPED = frozenset(["date", "time", "timestamp", "timestamptz", "uuid"])
_COMPARISONS = {
    "=": Op.EQ,
    "==": Op.EQ,
    "!=": Op.NE,
    "<>": Op.NE,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
}
_MIRRORED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


def parse_filter(text: str) -> Expression:
    """Return the filter that `text` writes. Raises `BadFilter` with the place of the first mistake.

    >>> parse_filter("NOT region = 'eu' OR `order id` IS NULL")
    ... # doctest: +NORMALIZE_WHITESPACE
    Or(operands=(Not(operand=Predicate(op=<Op.EQ: '='>, column='region', literals=('eu',))),
                 Predicate(op=<Op.IS_NULL: 'is-null'>, column='order id', literals=())))
    """
    return _Parser(text).parse()


@dataclass(slots=True)
class _Group:
    """What was read since an opening parenthesis: finished conjunctions, and the one being read."""

    negated: bool = False
    conjunctions: list[list[Expression]] = field(default_factory=lambda: [[]])

    def add(self, operand: Expression) -> None:
        self.conjunctions[-1].append(Not(operand) if self.negated else operand)
        self.negated = False

    def result(self) -> Expression:
        joined = [c[0] if len(c) == 1 else And(tuple(c)) for c in self.conjunctions]
        return joined[0] if len(joined) == 1 else Or(tuple(joined))


class _Parser:
    """Reads groups with a stack of its own: no depth of parentheses can overflow Python's."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0

    def parse(self) -> Expression:
        if self._peek().kind == "end":
            raise BadFilter("the filter is empty; leave it out to read every row")
        outer: list[_Group] = []
        group = _Group()
        while True:
            if self._accept_word("not"):
                group.negated = not group.negated
                continue
            if self._accept_sign("("):
                outer.append(group)
                group = _Group()
                if len(outer) > _MAX_PARENTHESES:
                    raise BadFilter(f"the filter has more than {_MAX_PARENTHESES} nested groups")
                continue
            group.add(self._test())
            while outer and self._accept_sign(")"):
                inner, group = group, outer.pop()
                group.add(inner.result())
            if self._accept_word("or"):
                group.conjunctions.append([])
            elif not self._accept_word("and"):
                break
        if self._peek().kind != "end" or outer:
            self._fail("AND, OR or a closing parenthesis" if outer else "AND, OR or the end")
        return group.result()

    # --- one test --------------------------------------------------------------------------------

    def _test(self) -> Expression:
        token = self._peek()
        if token.is_word("starts_with") and self._peek(1).is_sign("("):
            return self._starts_with_call()
        if self._is_literal():
            return self._mirrored_comparison()
        column = self._column()
        token = self._take()
        op = _COMPARISONS.get(token.text)
        if op is not None and token.kind == "sign":
            return Predicate(op, column, (self._literal(column),))
        if token.is_word("is"):
            return self._is_test(column)
        negated = token.is_word("not")
        if negated:
            token = self._take()
        match token.text.lower() if token.kind == "name" else "":
            case "in":
                return Predicate(Op.NOT_IN if negated else Op.IN, column, self._list(column))
            case "between":
                low = Predicate(Op.GE, column, (self._literal(column),))
                self._expect_word("and")
                both = And((low, Predicate(Op.LE, column, (self._literal(column),))))
                return Not(both) if negated else both
            case "like":
                return self._prefix(column, self._like_prefix(), negated)
            case "starts":
                self._expect_word("with")
                return self._prefix(column, self._prefix_literal(), negated)
            case _:
                self._fail(
                    "IN, BETWEEN, LIKE or STARTS WITH"
                    if negated
                    else f"a comparison of {quoted(column)} with a literal"
                    f" (such as {cut(column)} = TRUE)",
                    token,
                )

    def _mirrored_comparison(self) -> Expression:
        start = self._peek()
        literal = self._literal("")
        op = _COMPARISONS.get(self._peek().text) if self._peek().kind == "sign" else None
        if op is None:
            if isinstance(literal, bool):
                return TRUE if literal else FALSE
            self._fail("a comparison")
        self._take()
        if self._is_literal():
            self._fail("a column, since two literals were compared", start)
        return Predicate(_MIRRORED.get(op, op), self._column(), (literal,))

    def _is_test(self, column: str) -> Expression:
        negated = self._accept_word("not")
        if self._accept_word("null"):
            return Predicate(Op.NOT_NULL if negated else Op.IS_NULL, column)
        if self._accept_word("nan"):
            return Predicate(Op.NOT_NAN if negated else Op.IS_NAN, column)
        self._fail("NULL, NOT NULL, NAN or NOT NAN")

    def _prefix(self, column: str, prefix: RawLiteral, negated: bool) -> Expression:
        return Predicate(Op.NOT_STARTS_WITH if negated else Op.STARTS_WITH, column, (prefix,))

    def _starts_with_call(self) -> Expression:
        self._take()
        self._take()
        column = self._column()
        self._expect_sign(",")
        prefix = self._prefix_literal()
        self._expect_sign(")")
        return self._prefix(column, prefix, negated=False)

    def _prefix_literal(self) -> RawLiteral:
        if self._peek().kind not in ("text", "hex"):
            self._fail("a prefix in quotes")
        return self._literal("")

    def _like_prefix(self) -> str:
        token = self._take()
        if token.kind != "text":
            self._fail("a pattern in quotes", token)
        pattern = unquoted(token.text)
        prefix = pattern.removesuffix("%")
        if prefix == pattern or set(prefix) & set("%_\\"):
            raise BadFilter(
                f"LIKE {token.text}{place_of(token.start)} is not read: only 'prefix%' is; write"
                " column = 'text' for a whole value, and starts_with(column, 'text') for a prefix"
                " that holds %, _ or a backslash"
            )
        return prefix

    def _list(self, column: str) -> tuple[RawLiteral, ...]:
        self._expect_sign("(")
        literals: list[RawLiteral] = []
        if self._accept_sign(")"):
            return ()
        while True:
            literals.append(self._literal(column))
            if not self._accept_sign(","):
                self._expect_sign(")")
                return tuple(literals)

    # --- columns and literals --------------------------------------------------------------------

    def _column(self) -> str:
        token = self._take()
        if token.kind == "name" and token.text.lower() in _RESERVED:
            self._fail(
                f'a column (write "{token.text}" in double quotes if that is its name)', token
            )
        if token.kind not in ("name", "quoted"):
            self._fail("a column", token)
        parts = [name_of(token)]
        while self._accept_sign("."):
            token = self._take()
            if token.kind not in ("name", "quoted"):
                self._fail("a field's name after the dot", token)
            parts.append(name_of(token))
        return ".".join(parts)

    def _is_literal(self) -> bool:
        token = self._peek()
        return (
            token.kind in ("text", "number", "hex")
            or token.is_word("true")
            or token.is_word("false")
            or self._is_typed()
        )

    def _is_typed(self) -> bool:
        token = self._peek()
        is_type = token.kind == "name" and token.text.lower() in _TYPED
        return is_type and self._peek(1).kind == "text"

    def _literal(self, column: str) -> RawLiteral:
        if self._is_typed():
            self._take()
        token = self._take()
        match token.kind:
            case "text":
                return unquoted(token.text)
            case "hex":
                try:
                    return bytes.fromhex(token.text[2:-1])
                except ValueError:
                    self._fail("pairs of hexadecimal digits", token)
            case "number":
                return self._number(token)
            case "name" if token.text.lower() in ("true", "false"):
                return token.text.lower() == "true"
            case "name" if token.text.lower() == "null":
                raise BadFilter(
                    f"a comparison with NULL{place_of(token.start)} is never true;"
                    f" write {column or 'column'} IS NULL or IS NOT NULL"
                )
            case "name" | "quoted":
                self._fail(
                    "a literal (text goes in single quotes; columns are not compared)", token
                )
            case _:
                self._fail("a literal", token)

    def _number(self, token: Token) -> int | float | Decimal:
        if len(token.text) > _MAX_DIGITS or _HUGE.search(token.text):
            self._fail("a number of a sensible size", token)
        return int(token.text) if _INTEGER.fullmatch(token.text) else exact_number(token.text)

    # --- tokens ----------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept_word(self, word: str) -> bool:
        found = self._peek().is_word(word)
        self._next += found
        return found

    def _accept_sign(self, sign: str) -> bool:
        found = self._peek().is_sign(sign)
        self._next += found
        return found

    def _expect_word(self, word: str) -> None:
        if not self._accept_word(word):
            self._fail(word.upper())

    def _expect_sign(self, sign: str) -> None:
        if not self._accept_sign(sign):
            self._fail(f"{sign!r}")

    def _fail(self, expected: str, token: Token | None = None) -> NoReturn:
        token = token or self._peek()
        found = "the end" if token.kind == "end" else f"{shortened(token.text)!r}"
        raise BadFilter(f"expected {expected}{place_of(token.start)} of the filter, found {found}")


# --- writing -------------------------------------------------------------------------------------

_WORDS = {
    Op.STARTS_WITH: "STARTS WITH",
    Op.NOT_STARTS_WITH: "NOT STARTS WITH",
    Op.IN: "IN",
    Op.NOT_IN: "NOT IN",
    Op.IS_NULL: "IS NULL",
    Op.NOT_NULL: "IS NOT NULL",
    Op.IS_NAN: "IS NAN",
    Op.NOT_NAN: "IS NOT NAN",
}


def format_filter(expression: Expression) -> str:
    """Return the text of a filter; `parse_filter` reads it to the same meaning.

    NaN and the infinities become text, as they are written for a float column. Raises `BadFilter`
    for a filter nested too deep.

    >>> format_filter(parse_filter("not (a=1 and `b c` in ('x', 'y'))"))
    'NOT (a = 1 AND "b c" IN (\\'x\\', \\'y\\'))'
    """
    return _format(expression, 0)


def _format(expression: Expression, depth: int) -> str:
    if depth > 2 * MAX_DEPTH:  # each level may have its own NOT
        raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep")
    match expression:
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Predicate():
            return _format_predicate(expression)
        case Not(operand):
            return f"NOT ({_format(operand, depth + 1)})"
        case And(operands) | Or(operands):
            parts: list[str] = []
            for operand in operands:
                text = _format(operand, depth + 1)
                parts.append(f"({text})" if isinstance(operand, And | Or) else text)
            if not parts:
                return "TRUE" if isinstance(expression, And) else "FALSE"
            return (" AND " if isinstance(expression, And) else " OR ").join(parts)


def _format_predicate(predicate: Predicate) -> str:
    column = _format_column(predicate.column)
    op = _WORDS.get(predicate.op, str(predicate.op))
    literals = ", ".join(_format_literal(item) for item in predicate.literals)
    match predicate.op:
        case Op.IN | Op.NOT_IN:
            return f"{column} {op} ({literals})"
        case Op.IS_NULL | Op.NOT_NULL | Op.IS_NAN | Op.NOT_NAN:
            return f"{column} {op}"
        case _:
            return f"{column} {op} {literals}"


def _format_column(name: str) -> str:
    words = name.lower().split(".")
    if _BARE.fullmatch(name) and not _RESERVED.intersection(words):
        return name
    return '"' + name.replace('"', '""') + '"'


def _format_literal(literal: RawLiteral) -> str:
    match literal:
        case bool():
            return "TRUE" if literal else "FALSE"
        case bytes():
            return f"X'{literal.hex()}'"
        case str():
            return "'" + literal.replace("'", "''") + "'"
        case float() if math.isnan(literal):
            return "'NaN'"
        case float() if math.isinf(literal):
            return "'Infinity'" if literal > 0 else "'-Infinity'"
        case int() | float() | Decimal():
            return str(literal)
