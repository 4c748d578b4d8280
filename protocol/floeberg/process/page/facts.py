"""The parts of a page that coordinator and worker have alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from floeberg.process.page.formats import amount, count
from floeberg.process.page.html import Html
from floeberg.process.page.parts import Column, code, ratio, table
from floeberg.protocol.status import CacheEntry


def caches_table(caches: Sequence[CacheEntry]) -> Html:
    return table(
        "Caches",
        [
            Column("cache"),
            Column("hits", is_number=True),
            Column("misses", is_number=True),
            Column("hit rate", is_number=True),
            Column("size", is_number=True),
        ],
        (
            (
                c.name,
                count(c.hits),
                count(c.misses),
                ratio(c.hits, c.hits + c.misses),
                "" if c.size_bytes is None else amount(c.size_bytes),
            )
            for c in caches
        ),
        empty="There are none.",
    )


def errors_table(errors: Mapping[str, int]) -> Html:
    return table(
        "Failed calls by code",
        [Column("code"), Column("calls", is_number=True)],
        ((code(name), count(number)) for name, number in errors.items()),
        empty="No call has failed since the start.",
    )
