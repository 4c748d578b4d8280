"""What columns of statistics say is what each file's statistics say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.metrics import file_may_match
from floeberg.protocol.expressions.model import BoundExpression, BoundPredicate, Expression, Op
from floeberg.protocol.files import DataFile, FileFormat, ManifestFile, Metrics
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BinaryType,
    DateType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    ListType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)
from floeberg.server.planning.vectorised import SegmentMetrics
from tests.support import filter_strategies as filters
from tests.support.iceberg_values import primitive_types, values_of

T = TypeVar("T")

_ORDER = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN, Op.NOT_IN, Op.IS_NULL, Op.NOT_NULL]


def operators(type_: PrimitiveType) -> list[Op]:
    match type_:
        case FloatType() | DoubleType():
            return [*_ORDER, Op.IS_NAN, Op.NOT_NAN]
        case StringType() | BinaryType() | FixedType():
            return [*_ORDER, Op.STARTS_WITH, Op.NOT_STARTS_WITH]
        case _:
            return _ORDER


def literals(type_: PrimitiveType) -> st.SearchStrategy[Any]:
    """Literals as binding leaves them: no NaN, and one zero."""
    found: st.SearchStrategy[Any] = values_of(type_).filter(lambda v: v == v)
    return found.map(lambda v: v + 0.0) if isinstance(type_, FloatType | DoubleType) else found


@st.composite
def typed_predicates(draw: st.DrawFn, type_: PrimitiveType, field_id: int = 1) -> BoundPredicate:
    op = draw(st.sampled_from(operators(type_)))
    found: tuple[Any, ...] = ()
    if op in (Op.IN, Op.NOT_IN):
        several: set[Any] = set(draw(st.lists(literals(type_), min_size=1, max_size=20)))
        found = tuple(sorted(several))
    elif op not in (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN):
        found = (draw(literals(type_)),)
    return BoundPredicate(op, field_id, "c", type_, found)


def raw_bounds(type_: PrimitiveType) -> st.SearchStrategy[bytes | None]:
    """Bounds as writers leave them: of the type, of the type it was promoted from, or damaged."""
    earlier = st.one_of(*(encoded(t) for t in (IntType(), FloatType(), DateType())))
    return st.one_of(
        encoded(type_), encoded(type_), encoded(type_), st.none(), earlier, st.binary(max_size=20)
    )


def encoded(type_: PrimitiveType) -> st.SearchStrategy[bytes]:
    return values_of(type_).map(lambda value: values.to_bytes(type_, value))


_counts = st.one_of(st.none(), st.sampled_from([0, 1, 9, 10]), st.integers(-2, 12))
_record_counts = st.sampled_from([10, 10, 10, 0, 9, -1])


def by_id(field_id: int, value: T | None) -> dict[int, T]:
    return {} if value is None else {field_id: value}


@st.composite
def files(
    draw: st.DrawFn, bounds: Mapping[int, st.SearchStrategy[bytes | None]], number: int
) -> DataFile:
    maps: list[dict[int, Any]] = [{}, {}, {}, {}, {}]
    for field_id, strategy in bounds.items():
        for by_column, of in zip(maps, [_counts] * 3 + [strategy] * 2, strict=True):
            by_column.update(by_id(field_id, draw(of)))
    metrics = Metrics({}, *maps)
    return DataFile(
        f"{number}.parquet", FileFormat.PARQUET, draw(_record_counts), 1, 0, metrics=metrics
    )


def segment_of(found: list[DataFile]) -> Segment:
    entries = [ManifestEntry(EntryStatus.ADDED, None, f) for f in found]
    return pack_entries(entries, ManifestFile("m.avro", 1, 0))


def assert_agrees(
    bound: BoundExpression, schema: Schema, found: list[DataFile], may_be_imported: bool
) -> None:
    metrics = SegmentMetrics(segment_of(found), schema, may_be_imported=may_be_imported)

    assert metrics.may_match(bound).tolist() == [
        file_may_match(bound, schema, f.metrics, f.record_count, may_be_imported=may_be_imported)
        for f in found
    ]


_NESTINGS: list[Callable[[NestedField], NestedField]] = [
    lambda field: field,
    lambda field: field,
    lambda field: NestedField(50, "st", StructType((field,))),
    lambda field: NestedField(50, "l", ListType(51, StructType((field,)))),
]


@given(data=st.data(), type_=primitive_types, may_be_imported=st.booleans())
@settings(max_examples=150)
def test_every_operator_and_type_answers_as_for_one_file(data, type_, may_be_imported):
    nest = data.draw(st.sampled_from(_NESTINGS))
    schema = Schema((nest(NestedField(1, "c", type_)),))
    bounds = {1: raw_bounds(type_)}
    found = data.draw(st.lists(files(bounds, 0), min_size=1, max_size=8))

    for _ in range(4):
        predicate = data.draw(typed_predicates(type_))
        assert_agrees(predicate, schema, found, may_be_imported)


@given(data=st.data(), expression=filters.expressions)
@settings(max_examples=150)
def test_filters_over_several_columns_answer_as_for_one_file(data, expression: Expression):
    schema = filters.SCHEMA
    primitive = [f for f in schema.fields if isinstance(f.type, PrimitiveType)]
    bounds = {
        f.field_id: raw_bounds(f.type) for f in primitive if isinstance(f.type, PrimitiveType)
    }
    found = data.draw(st.lists(files(bounds, 0), min_size=1, max_size=2))

    assert_agrees(bind(expression, schema), schema, found, may_be_imported=False)


def test_a_column_that_the_schema_does_not_have_keeps_everything():
    predicate = BoundPredicate(Op.EQ, 9, "gone", IntType(), (1,))
    found = [DataFile("a", FileFormat.PARQUET, 1, 1, 0)]

    assert_agrees(predicate, Schema(()), found, may_be_imported=False)


def test_a_segment_without_files():
    bound = BoundPredicate(Op.EQ, 1, "i", IntType(), (1,))
    schema = Schema((NestedField(1, "i", IntType()),))

    assert SegmentMetrics(segment_of([]), schema).may_match(bound).tolist() == []
