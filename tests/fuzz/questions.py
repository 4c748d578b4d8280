"""Random questions about a table that exists: literals come from near its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.fuzz.cases import Both, Filter, Not, Question, Test
from tests.fuzz.names import columns_by_id
from tests.fuzz.values import literal, prefix
from tests.support.filters import at
from tests.support.plain import Json, Plain, Row
from tests.support.reference import PlainScan

METADATA_COLUMNS = (
    "_file",
    "_pos",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
)
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ONLY_NULL_TESTS = ("unknown", "variant", "geometry", "geography")


@dataclass(frozen=True)
class Column:
    """A field that a filter may be about, and its values in the table."""

    field_id: int
    type: Json
    values: Sequence[Plain]


def random_snapshot(rng: Random, metadata: Json) -> tuple[str, str | int] | None:
    """Return a choice of a snapshot that the table has, most often the current one."""
    if rng.random() < 0.6:
        return None
    choices: list[tuple[str, str | int]] = [("ref", name) for name in metadata.get("refs", {})]
    choices += [("snapshot", i) for i in range(len(metadata.get("snapshots", ())))]
    choices += [("as_of", i) for i in range(len(metadata.get("snapshot-log", ())))]
    return rng.choice(choices) if choices else None


def random_question(
    rng: Random,
    snapshot: tuple[str, str | int] | None,
    scan: PlainScan,
    rows: Sequence[Row],
    checks: Sequence[str],
) -> Question:
    letters = rng.choice(("exact", "exact", "exact", "upper", "lower"))
    named = columns_by_id(scan.schema, letters)
    columns = [
        Column(c.field_id, c.type, [at(row, c.path) for row in rows])
        for c in named.values()
        if c.in_structs
    ]
    filter_: Filter | None = None
    if columns and rng.random() < 0.8:
        filter_ = random_filter(rng, columns, depth=rng.choice((0, 0, 1, 1, 2, 3)))
    return Question(
        snapshot,
        filter_,
        _random_select(rng, list(named)),
        letters,
        as_text=rng.random() < 0.3,
        split_size=rng.choice((None, None, 0, 1, 100, 400, 1 << 20)),
        batch_size=rng.choice((None, None, 1, 2, 3)),
        num_workers=rng.choice((1, 1, 1, 2, 4)),
        overlap_io=rng.random() < 0.5,
        prune=rng.random() < 0.85,
        also=tuple(check for check in checks if rng.random() < 0.2),
    )


def _random_select(rng: Random, ids: Sequence[int]) -> tuple[int | str, ...] | None:
    roll = rng.random()
    if roll < 0.35:
        return None
    if roll < 0.4:
        return ()
    chosen: list[int | str] = []
    chosen += rng.sample(list(ids), min(len(ids), rng.choice((0, 1, 1, 2, 3))))
    chosen += rng.sample(METADATA_COLUMNS, rng.choice((0, 0, 1, 2, 6)))
    rng.shuffle(chosen)
    return tuple(chosen)


def random_filter(rng: Random, columns: Sequence[Column], depth: int) -> Filter:
    if not depth:
        return _random_test(rng, rng.choice(columns))
    if rng.random() < 0.3:
        return Not(random_filter(rng, columns, depth - 1))
    parts = (
        random_filter(rng, columns, rng.randrange(depth)) for _ in range(rng.choice((2, 2, 3)))
    )
    return Both(rng.choice(("and", "or")), tuple(parts))


def _random_test(rng: Random, column: Column) -> Test:
    type_ = column.type
    nulls = ("is-null", "not-null")
    if not isinstance(type_, str) or type_.startswith(_ONLY_NULL_TESTS):
        return Test(rng.choice(nulls), column.field_id)
    kinds = ["compare"] * 4 + ["set", "set", "null"]
    if type_ in ("float", "double"):
        kinds += ["nan"]
    if type_ in ("string", "binary"):
        kinds += ["prefix", "prefix"]
    match rng.choice(kinds):
        case "compare":
            op = rng.choice(_COMPARISONS)
            return Test(op, column.field_id, literal(rng, type_, column.values))
        case "set":
            size = rng.choice((1, 2, 3, 6))
            literals = tuple(literal(rng, type_, column.values) for _ in range(size))
            return Test(rng.choice(("in", "not-in")), column.field_id, literals)
        case "null":
            return Test(rng.choice(nulls), column.field_id)
        case "nan":
            return Test(rng.choice(("is-nan", "not-nan")), column.field_id)
        case _:
            op = rng.choice(("starts-with", "not-starts-with"))
            return Test(op, column.field_id, prefix(rng, type_, column.values))
