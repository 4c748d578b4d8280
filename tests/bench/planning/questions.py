"""The filters that plans are timed with, each time with other literals."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import TypeAlias

from tests.bench.planning.tables import DAYS, FIRST_DAY

Conjunct: TypeAlias = tuple[str, str, int | float | str]
"""An operator, a column and a literal, times and decimals as text."""
Filter: TypeAlias = list[Conjunct]
"""All of them must hold; none asks for every file."""


def _no_filter(_: random.Random) -> Filter:
    return []


def _partitions(r: random.Random) -> Filter:
    """30 days, one account and so one bucket, and an amount that no partition tells."""
    first = date(1970, 1, 1) + timedelta(FIRST_DAY + r.randrange(DAYS - 30))
    return [
        (">=", "occurred_at", f"{first}T00:00:00+00:00"),
        ("<", "occurred_at", f"{first + timedelta(30)}T00:00:00+00:00"),
        ("=", "account_id", r.randrange(10**6, 8 * 10**7)),
        (">", "amount", f"{r.randrange(45_000, 55_000)}.50"),
    ]


def _metrics(r: random.Random) -> Filter:
    """Three columns that no partition is made of: about one file in five is left."""
    return [
        ("<", "quantity", r.randrange(5_000, 6_500)),
        (">", "price", round(r.uniform(350, 480), 3)),
        (">=", "product", f"prod-{r.randrange(13 * 10**9, 15 * 10**9):011}"),
    ]


QUESTIONS: Mapping[str, Callable[[random.Random], Filter]] = {
    "none": _no_filter,
    "part": _partitions,
    "metrics": _metrics,
}
