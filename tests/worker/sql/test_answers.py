from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from floeberg.protocol.errors import InternalError, SqlFailed
from floeberg.worker.sql.answers import Answer

SOME = UUID("01234567-89ab-cdef-0123-456789abcdef")


def cast(array: Any, type_: pa.DataType, *, nullable: bool = True) -> pa.RecordBatch:
    schema = pa.schema([pa.field("told", type_, nullable)])
    [batch] = Answer(schema, 1 << 20).batches(pa.record_batch([array], names=["found"]))
    batch.validate(full=True)
    assert batch.schema.equals(schema, check_metadata=True)
    return batch


@pytest.mark.parametrize(
    ("found", "type_", "expected"),
    [
        (pa.array([Decimal(3), None], pa.decimal128(38, 0)), pa.int64(), [3, None]),
        (pa.array([Decimal("1.2")]), pa.decimal128(38, 4), [Decimal("1.2000")]),
        (pa.array([b"ab", None]), pa.binary(2), [b"ab", None]),
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.nulls(2), pa.string(), [None, None]),
        (pa.nulls(1), pa.uuid(), [None]),
        (pa.array([1.5]), pa.float32(), [1.5]),
        (pa.array([str(SOME), None]), pa.uuid(), [SOME, None]),
        (pa.array([[str(SOME)], None, [None]]), pa.list_(pa.uuid()), [[SOME], None, [None]]),
        (
            pa.array([{"u": str(SOME)}, None]),
            pa.struct([pa.field("u", pa.uuid(), metadata={"PARQUET:field_id": "3"})]),
            [{"u": SOME}, None],
        ),
        (
            pa.array([[("k", str(SOME))], None], pa.map_(pa.string(), pa.string())),
            pa.map_(pa.string(), pa.uuid()),
            [[("k", SOME)], None],
        ),
        (
            pa.array([[{"a": 1}]]),
            pa.list_(pa.field("element", pa.struct([pa.field("a", pa.int32())]), False)),
            [[{"a": 1}]],
        ),
        (
            pa.array([[{"x": 1}, None], None]),
            pa.list_(pa.struct([pa.field("x", pa.int32(), False)])),
            [[{"x": 1}, None], None],
        ),
        (
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            pa.map_(pa.string(), pa.field("value", pa.int32(), False)),
            [[("k", 1)]],
        ),
    ],
)
def test_values_come_in_the_told_type(found: Any, type_: pa.DataType, expected: list[Any]) -> None:
    assert cast(found, type_)["told"].to_pylist() == expected


def test_lists_of_one_size_are_cast_as_others_are() -> None:
    rows = [["x", "x"], [str(SOME), None], None, [None, str(SOME)]]
    found = pa.array(rows, pa.list_(pa.string(), 2))

    told = cast(found.slice(1), pa.list_(pa.uuid(), 2))["told"]

    assert told.to_pylist() == [[SOME, None], None, [None, SOME]]


def test_times_keep_their_instant_in_another_zone() -> None:
    found = pa.array([1_700_000_000_000_000], pa.timestamp("us", "Asia/Tokyo"))

    told = cast(found, pa.timestamp("us", "UTC"))["told"]

    assert told.cast(pa.int64()).to_pylist() == [1_700_000_000_000_000]


def test_parts_of_batches_are_cast_as_whole_ones_are() -> None:
    found = pa.array([[str(SOME)], None, [], [None, str(SOME)], ["x"]]).slice(1, 3)

    assert cast(found, pa.list_(pa.uuid()))["told"].to_pylist() == [None, [], [None, SOME]]


@pytest.mark.parametrize(
    ("found", "type_"),
    [
        (pa.array([Decimal(10) ** 30], pa.decimal128(38, 0)), pa.int64()),
        (pa.array([1 << 40]), pa.int32()),
        (pa.array(["no uuid"]), pa.uuid()),
        (pa.array([b"abc"]), pa.binary(2)),
        (pa.array([1001], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([0.5]), pa.int64()),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(found: Any, type_: pa.DataType) -> None:
    with pytest.raises(SqlFailed, match="column 'told': a value does not fit"):
        cast(found, type_)


def test_a_null_where_none_was_told_is_an_error() -> None:
    told = pa.field("x", pa.int32(), False)
    with pytest.raises(SqlFailed, match="'told' was told to have no null"):
        cast(pa.array([1, None]), pa.int64(), nullable=False)
    for found, type_ in (
        (pa.array([{"x": None}]), pa.struct([told])),
        (pa.array([[1, None]]), pa.list_(told)),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())), pa.map_("string", told)),
    ):
        with pytest.raises(SqlFailed, match="was told to have no null"):
            cast(found, type_)


def test_other_columns_than_were_told_are_our_fault() -> None:
    with pytest.raises(InternalError, match="2 columns, and 1 were told"):
        list(
            Answer(pa.schema([("a", pa.int64())]), 1).batches(pa.record_batch({"a": [1], "b": [2]}))
        )
    for found, type_ in (
        (pa.array([True]), pa.date32()),
        (pa.array([1]), pa.uuid()),
        (pa.array([1]), pa.list_(pa.int64())),
        (pa.array([{"a": 1}]), pa.struct([])),
    ):
        with pytest.raises(InternalError, match="came as"):
            cast(found, type_)


def test_batches_are_of_about_the_size_that_was_asked_for() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    rows = pa.record_batch([pa.array(range(10_000)), pa.array(["x" * 92] * 10_000)], schema=schema)

    batches = list(Answer(schema, 100_000).batches(rows))

    assert pa.Table.from_batches(batches).equals(pa.Table.from_batches([rows]))
    assert 8 <= len(batches) <= 16
    assert Answer(schema, 1 << 21).rows_at_once == (1 << 21) // 40
    assert Answer(schema, 1).rows_at_once == 2048
