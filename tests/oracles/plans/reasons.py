"""Why a peer's plan differs: each reason takes away the parts of a difference that it explains."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.oracles.plans import Delete, PlanDifference
from tests.oracles.scans import Filter, Scan, operations

PLANNERS = ("java", "pyiceberg")
_NEGATIONS = {"!=", "not-in", "not-starts-with", "not-nan", "not-null"}


@dataclass(frozen=True)
class Reason:
    """Why a peer's plan differs in some of the `parts` of a difference, given the scan."""

    planners: tuple[str, ...]
    reason: str
    parts: tuple[str, ...]
    fits: Callable[[Scan], bool] = lambda scan: True
    deletes: Callable[[Delete], bool] = lambda delete: True
    """Of differences in deletes, the ones that it explains."""
    tables: tuple[str, ...] = ()
    """The only tables where it may be the reason; any, if there are none here."""
    by_chance: bool = False
    """Whether it depends on names that a writer draws, so that some runs need it and some not."""


def _negates(scan: Scan) -> bool:
    return "not" in repr(scan.filter) or bool(_NEGATIONS.intersection(operations(scan.filter)))


def _compares(is_such: Callable[[Any], bool]) -> Callable[[Scan], bool]:
    return lambda scan: any(map(is_such, _literals(scan.filter)))


def _literals(filter_: Filter | None) -> Iterator[Any]:
    for argument in (filter_ or ())[1:]:
        match argument:
            case tuple():
                yield from _literals(argument)
            case list():
                yield from argument
            case _:
                yield argument


REASONS = (
    # ours is tighter
    Reason(
        PLANNERS,
        "files whose values are all null, or all the literal, are kept there for !=, NOT IN and the"
        " like, and deletes of such rows; nothing in them can match here"
        " (docs/decisions/0002-three-valued-filters.md)",
        ("fewer_files", "fewer_deletes"),
        _negates,
        lambda delete: delete.is_equality,
    ),
    Reason(
        PLANNERS,
        "a file of which all values are NaN is kept there for less and greater",
        ("fewer_files",),
        tables=("corpus.stats_counts", "corpus.stats_truncate2"),
    ),
    # theirs is tighter, and loses rows
    Reason(
        PLANNERS,
        "an infinite literal is beyond every float there, and prunes the infinity away",
        ("more_files",),
        _compares(lambda v: v in (float("inf"), float("-inf"))),
    ),
    Reason(
        PLANNERS,
        "-0.0 is less than 0.0 there; its equal here",
        ("more_files", "fewer_files"),
        _compares(lambda v: isinstance(v, float) and v == 0),
        ("spark.identity_floats",),
    ),
    Reason(
        PLANNERS,
        "truncating the least integer overflows there, and prunes rows away",
        ("more_files",),
        tables=("spark.truncate",),
    ),
    Reason(
        PLANNERS,
        "uuids compare as two signed longs in Java, which writes such bounds; here they are bytes"
        " (spec, Appendix D), and bounds of either order are believed",
        ("more_files", "fewer_files"),
        _compares(lambda v: isinstance(v, uuid.UUID)),
        ("java.types_parquet", "java.partitions", "fixtures.partitions_nanos"),
    ),
    Reason(
        ("java",),
        "a position delete of many files applies to its whole partition there; here the bounds on"
        " its paths leave files out",
        ("fewer_deletes",),
        deletes=lambda delete: not delete.is_equality,
        by_chance=True,
    ),
    Reason(
        ("pyiceberg",),
        "which data file a delete names is not looked at there, and so it is taken for others of"
        " the partition as well",
        ("fewer_deletes",),
        deletes=lambda delete: not delete.is_equality,
    ),
    Reason(
        PLANNERS,
        "a null partition is the least of all values there; here it tells that nothing matches",
        ("fewer_files",),
        tables=("random",),
    ),
    # theirs is tighter
    Reason(
        PLANNERS,
        "position deletes that hold the rows themselves are left out there when the statistics of"
        " these rule the filter out",
        ("more_deletes",),
        lambda scan: scan.filter is not None,
        tables=("fixtures.positions_with_rows", "corpus.mixed_formats"),
    ),
    Reason(
        ("java",),
        "ORC counts no values below a null struct, which Java takes for nulls only; here counts are"
        " believed when they count all rows",
        ("more_files",),
        tables=("spark.schema_evolution_orc", "java.defaults_orc"),
    ),
    Reason(
        ("pyiceberg",),
        "no uuid is equal to that of a partition there",
        ("more_files",),
        tables=("corpus.part_identity",),
    ),
    Reason(
        ("pyiceberg",),
        "data files without rows are left out there, whatever is asked for",
        ("more_files",),
        tables=("corpus.empty_files", "corpus.ghost_empty"),
    ),
    Reason(
        PLANNERS,
        "the import wrote bounds that contradict each other, which are believed there",
        ("more_files",),
        tables=("corpus.legacy_parquet",),
    ),
)


def explained(
    title: str, planner: str, scan: Scan, found: PlanDifference
) -> tuple[PlanDifference, list[str]]:
    """Return what is left of a difference, and the reasons that took something away."""
    reasons = []
    for reason in REASONS:
        fits = not reason.tables or title in reason.tables
        if planner not in reason.planners or not fits or not reason.fits(scan):
            continue
        left = _without(found, reason)
        if left != found:
            reasons.append(reason.reason)
        found = left
    return found, reasons


def _without(found: PlanDifference, reason: Reason) -> PlanDifference:
    kept = {
        part: frozenset(
            item
            for item in getattr(found, part)
            if part.endswith("_deletes") and not reason.deletes(item[1])
        )
        for part in reason.parts
    }
    return replace(found, **kept)
