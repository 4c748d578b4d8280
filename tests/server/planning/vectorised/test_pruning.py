"""What is kept of a segment, and why, is what is kept of its files one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import FALSE, BoundExpression, BoundPredicate, Op
from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FileFormat,
    ManifestContent,
    ManifestFile,
    Metrics,
)
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Identity
from floeberg.protocol.types import (
    DateType,
    DecimalType,
    IntType,
    Json,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    Value,
)
from floeberg.server.planning.vectorised import Kept, SegmentFilter
from floeberg.server.planning.vectorised.partitions import SegmentPartitions
from tests.server.planning.vectorised.test_metrics import files, raw_bounds, typed_predicates
from tests.support import filter_strategies as filters
from tests.support.iceberg_values import primitive_types, values_of
from tests.support.plain_planner import FileFilter


def segment_of(found: list[DataFile]) -> Segment:
    entries = [ManifestEntry(EntryStatus.ADDED, None, f) for f in found]
    return pack_entries(entries, ManifestFile("m.avro", 1, 0))


def kept_one_by_one(
    bound: BoundExpression, spec: PartitionSpec, schema: Schema, found: list[DataFile]
) -> tuple[list[tuple[int, BoundExpression]], int, int]:
    """Return the kept files with their residuals, and how many each kind of pruning ruled out."""
    filter_ = FileFilter(bound, spec, schema)
    kept, by_partition, by_metrics = [], 0, 0
    for i, file in enumerate(found):
        residual = filter_.residual(file)
        if residual == FALSE:
            by_partition += 1
        elif not filter_.metrics_may_match(residual, file):
            by_metrics += 1
        else:
            kept.append((i, residual))
    return kept, by_partition, by_metrics


def as_pairs(kept: Kept) -> list[tuple[int, BoundExpression]]:
    residuals = [kept.residuals[i] for i in kept.residual_of.tolist()]
    return list(zip(kept.rows.tolist(), residuals, strict=True))


def assert_agrees(
    bound: BoundExpression, spec: PartitionSpec, schema: Schema, found: list[DataFile]
) -> None:
    kept = SegmentFilter(bound, spec, schema).kept_data_files(segment_of(found))

    plainly = kept_one_by_one(bound, spec, schema, found)
    assert (as_pairs(kept), kept.ruled_out_by_partition, kept.ruled_out_by_metrics) == plainly
    assert len(set(kept.residuals)) == len(kept.residuals)


@st.composite
def partitioned_files(draw: st.DrawFn, spec: PartitionSpec) -> DataFile:
    bounds = {
        f.field_id: raw_bounds(f.type)
        for f in filters.SCHEMA.fields
        if isinstance(f.type, PrimitiveType) and draw(st.integers(0, 5)) == 0
    }
    file = draw(files(bounds, 0))
    partition: dict[int, Value | None] = filters.partition_of(spec, draw(filters.rows()))
    if draw(st.integers(0, 20)) == 0:
        partition = {}
    return DataFile(
        file.location,
        file.format,
        file.record_count,
        file.size_bytes,
        spec.spec_id,
        partition,
        metrics=file.metrics,
    )


@given(data=st.data(), expression=filters.expressions, spec=st.sampled_from(filters.SPECS))
@settings(max_examples=100)
def test_the_same_files_are_kept_for_the_same_reasons(data, expression, spec):
    found = data.draw(st.lists(partitioned_files(spec), max_size=4))

    assert_agrees(bind(expression, filters.SCHEMA), spec, filters.SCHEMA, found)


@given(data=st.data(), type_=primitive_types)
@settings(max_examples=150)
def test_a_predicate_on_partition_values_is_true_of_the_same(data, type_):
    predicate = data.draw(typed_predicates(type_, field_id=1000))
    tuples: list[Any] = data.draw(
        st.lists(st.none() | values_of(type_), min_size=1, max_size=8).map(
            lambda found: [{1000: value} for value in found]
        )
    )
    found = [DataFile("f", FileFormat.PARQUET, 1, 1, 0, partition) for partition in tuples]

    mask = SegmentPartitions(segment_of(found)).are_true(predicate)

    assert mask.tolist() == [is_true(predicate, partition) for partition in tuples]


@pytest.mark.parametrize(
    ("type_", "literal", "stored"),
    [
        (DecimalType(9, 3), Decimal("1.205"), [Decimal("1.20"), Decimal("1.21")]),
        (LongType(), 5, [5.0, 6.5]),
        (DateType(), 5, [5, 4]),
        (StringType(), "a", [1, 2]),
    ],
)
def test_values_of_another_kind_than_the_schema_says_compare_as_plainly(type_, literal, stored):
    predicate = BoundPredicate(Op.EQ, 1000, "p", type_, (literal,))
    found = [DataFile("f", FileFormat.PARQUET, 1, 1, 0, {1000: value}) for value in stored]

    mask = SegmentPartitions(segment_of(found)).are_true(predicate)

    assert mask.tolist() == [is_true(predicate, {1000: value}) for value in stored]


SCHEMA = Schema(tuple(NestedField(i, f"c{i}", IntType()) for i in range(1, 61)))


def test_filters_of_very_many_predicates_tell_partitions_apart():
    fields = [PartitionField((i,), 1000 + i, f"p{i}", Identity()) for i in range(1, 61)]
    spec = PartitionSpec(0, tuple(fields))
    raw: Json = ["or", *(["and", [">", f"c{i}", 3], ["<", f"c{i}", 7]] for i in range(1, 61))]
    found = [
        DataFile("f", FileFormat.PARQUET, 1, 1, 0, {1000 + i: (row * i) % 11 for i in range(1, 61)})
        for row in range(50)
    ]

    assert_agrees(bind(expression_from_json(raw), SCHEMA), spec, SCHEMA, found)


def test_delete_files_are_ruled_out_by_their_partition():
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "p", Identity()),))
    deletes = [
        DeleteFile("d", Content.POSITION_DELETES, FileFormat.PARQUET, 0, 1, 0, {1000: p})
        for p in (1, None, 2, 1)
    ]
    filter_ = SegmentFilter(bind(expression_from_json(["=", "c1", 1]), SCHEMA), spec, SCHEMA)

    kept = filter_.kept_delete_files(delete_segment(deletes))

    assert kept.rows.tolist() == [0, 3]
    assert (kept.ruled_out_by_partition, kept.ruled_out_by_metrics) == (2, 0)


def delete_segment(deletes: list[DeleteFile]) -> Segment:
    manifest = ManifestFile("m.avro", 1, 0, ManifestContent.DELETES)
    return pack_entries([ManifestEntry(EntryStatus.ADDED, None, d) for d in deletes], manifest)


def bounded_delete(low: int, high: int, *ids: int) -> DeleteFile:
    """A delete that compares `ids`, whose columns 1 and 2 lie between `low` and `high`."""
    lower, upper = (dict.fromkeys((1, 2), v.to_bytes(4, "little")) for v in (low, high))
    metrics = Metrics(lower_bounds=lower, upper_bounds=upper)
    content = Content.EQUALITY_DELETES if ids else Content.POSITION_DELETES
    return DeleteFile(
        "d", content, FileFormat.PARQUET, 1, 1, 0, {}, metrics=metrics, equality_ids=ids
    )


def test_equality_deletes_are_ruled_out_by_what_they_compare():
    deletes = [
        bounded_delete(0, 4, 1),
        bounded_delete(5, 9, 1),
        # of columns that are not compared, its rows may hold anything
        bounded_delete(0, 4, 2),
        bounded_delete(0, 4, 2, 1),
        bounded_delete(0, 4),
        bounded_delete(5, 9, 2, 1),
    ]
    condition = bind(expression_from_json(["and", [">", "c1", 4], ["!=", "c3", 0]]), SCHEMA)

    kept = SegmentFilter(condition, PartitionSpec(0, ()), SCHEMA).kept_delete_files(
        delete_segment(deletes)
    )

    assert kept.rows.tolist() == [1, 2, 4, 5]
    assert (kept.ruled_out_by_partition, kept.ruled_out_by_metrics) == (0, 2)
