"""Who may read what: rules in a file, of which the first that fits decides.

    [[rule]]
    principals = ["ann", "team-*"]
    tables = ["prod.sales.*"]
    rows = "region = 'eu'"
    mask = ["email", "address.street"]
    hide = ["ssn"]

A rule fits where one of its patterns is the caller's and one is the table's. Where none fits, or
the one that does says `deny = true`, the table isn't there for that caller. The file may hold
limits of queries as well, see `limits`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from floeberg.protocol.bodies import validate_body
from floeberg.protocol.errors import BadCommand, BadConfig, BadFilter
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.model import TRUE, Expression
from floeberg.server.access.limits import LimitRule, Limits, limits_of


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller may read of a table: the rows of which `rows` is true, without the columns
    `hidden`, and with null in the columns `masked`. Columns are dotted names."""

    rows: Expression = TRUE
    masked: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def is_restricted(self) -> bool:
        return self != FULL


FULL = Access()


def _table_pattern(text: str) -> str:
    if not text or not all(text.split(".")):
        raise ValueError(f"{text!r} is no pattern of a table such as 'catalog.namespace.*'")
    return text


def _text(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


_Texts = Annotated[tuple[Annotated[str, AfterValidator(_text)], ...], Field(min_length=1)]
_Tables = Annotated[tuple[Annotated[str, AfterValidator(_table_pattern)], ...], Field(min_length=1)]
_Columns = tuple[Annotated[str, AfterValidator(_text)], ...]


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    principals: _Texts
    tables: _Tables
    deny: Annotated[bool, Field(strict=True)] = False
    rows: str | None = None
    mask: _Columns = ()
    hide: _Columns = ()


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: tuple[dict[str, object], ...] = ()
    limit: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `access` is None where it denies."""

    principals: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]
    access: Access | None

    def fits(self, principal: str, table: tuple[str, ...]) -> bool:
        return any(fnmatchcase(principal, pattern) for pattern in self.principals) and any(
            _names(pattern, table) for pattern in self.tables
        )


@dataclass(frozen=True, slots=True)
class Policies:
    """Rules and limits in their order."""

    rules: tuple[Rule, ...]
    limits: tuple[LimitRule, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Policies:
        """Raises `BadConfig`, which names the rule by its number."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as exc:
            raise BadConfig(f"it is not TOML: {exc}") from exc
        try:
            listed = validate_body(_File, document, "the file")
        except BadCommand as exc:
            raise BadConfig(str(exc)) from exc
        return cls(
            tuple(_rule(raw, number) for number, raw in enumerate(listed.rule, start=1)),
            tuple(LimitRule.parse(raw, number) for number, raw in enumerate(listed.limit, start=1)),
        )

    def limits_of(self, principal: str, default: Limits) -> Limits:
        """Return what queries of `principal` may take; `default` has what no limit says."""
        return limits_of(self.limits, principal, default)

    def access(self, principal: str, catalog: str, identifier: Sequence[str]) -> Access | None:
        """Return what `principal` may read of a table, None where it isn't there for them."""
        table = (catalog, *identifier)
        for rule in self.rules:
            if rule.fits(principal, table):
                return rule.access
        return None


def _rule(raw: dict[str, object], number: int) -> Rule:
    try:
        rule = validate_body(_Rule, raw, f"rule {number}")
        rows = TRUE if rule.rows is None else as_expression(rule.rows)
    except (BadCommand, BadFilter) as exc:
        what = f"rule {number}: rows: {exc}" if isinstance(exc, BadFilter) else str(exc)
        raise BadConfig(what) from exc
    if rule.deny and (rule.rows is not None or rule.mask or rule.hide):
        raise BadConfig(f"rule {number}: a rule that denies has no rows, mask or hide")
    tables = tuple(tuple(pattern.casefold().split(".")) for pattern in rule.tables)
    return Rule(rule.principals, tables, None if rule.deny else Access(rows, rule.mask, rule.hide))


def _names(pattern: tuple[str, ...], table: tuple[str, ...]) -> bool:
    """Say whether a pattern names a table, part by part: a `*` at its end is for any number of
    parts, but for one at least.

    Case counts for nothing: there are catalogs for which it doesn't, and a rule that denies must
    not be passed by another spelling.

    >>> _names(("prod", "hr", "*"), ("prod", "HR", "pay", "2024"))
    True
    """
    *head, last = pattern
    parts = [part.casefold() for part in table]
    if last == "*":
        if len(parts) < len(pattern):
            return False
        parts = parts[: len(head)]
    else:
        head.append(last)
        if len(parts) != len(head):
            return False
    return all(fnmatchcase(part, wanted) for part, wanted in zip(parts, head, strict=True))
