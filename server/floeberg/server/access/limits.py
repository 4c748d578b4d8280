"""How much one query may take, and how many go on at once, by whose they are.

    [[limit]]
    principals = ["analyst-*"]
    rows = 1_000_000
    bytes = 50_000_000_000
    tasks = 10_000
    seconds = 600
    queries = 4

A limit is for the principals that one of its patterns fits; the first that fits decides. What it
does not say is as the coordinator's configuration has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from floeberg.protocol.bodies import validate_body
from floeberg.protocol.errors import BadCommand, BadConfig


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may take; None is as much as it likes.

    `rows` are those of its answer, `bytes` those of the data files that it reads (whole files, or
    their ranges that tasks cover, whatever the columns), `tasks` those that it is planned into, and
    `seconds` go by from its plan to its last batch. `queries` of the principal may go on at once.
    """

    rows: int | None = None
    bytes: int | None = None
    tasks: int | None = None
    seconds: float | None = None
    queries: int | None = None


UNLIMITED = Limits()

Count = Annotated[int, Field(ge=0, strict=True)]


class _Limit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    principals: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    rows: Count | None = None
    bytes: Count | None = None
    tasks: Count | None = None
    seconds: Annotated[float, Field(gt=0)] | None = None
    queries: Annotated[int, Field(ge=1, strict=True)] | None = None


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One limit of a file; what `limits` does not say is None."""

    principals: tuple[str, ...]
    limits: Limits

    @classmethod
    def parse(cls, raw: dict[str, object], number: int) -> LimitRule:
        """Raises `BadConfig`, which names the limit by its number."""
        try:
            limit = validate_body(_Limit, raw, f"limit {number}")
        except BadCommand as exc:
            raise BadConfig(str(exc)) from exc
        said = Limits(limit.rows, limit.bytes, limit.tasks, limit.seconds, limit.queries)
        return cls(limit.principals, said)

    def fits(self, principal: str) -> bool:
        return any(fnmatchcase(principal, pattern) for pattern in self.principals)


def limits_of(rules: Sequence[LimitRule], principal: str, default: Limits) -> Limits:
    """Return the limits of a principal's queries.

    >>> rules = [LimitRule(("bot-*",), Limits(rows=10))]
    >>> limits_of(rules, "bot-1", Limits(rows=500, tasks=7))
    Limits(rows=10, bytes=None, tasks=7, seconds=None, queries=None)
    """
    said = next((rule.limits for rule in rules if rule.fits(principal)), UNLIMITED)
    return replace(
        default,
        rows=default.rows if said.rows is None else said.rows,
        bytes=default.bytes if said.bytes is None else said.bytes,
        tasks=default.tasks if said.tasks is None else said.tasks,
        seconds=default.seconds if said.seconds is None else said.seconds,
        queries=default.queries if said.queries is None else said.queries,
    )
