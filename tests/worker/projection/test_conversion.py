"""What a file stores, read as what the table has."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.worker.projection.conversion import CannotConvert, convert, decode_layout

UUID = bytes(range(16))


@pytest.mark.parametrize(
    ("stored", "target", "expected"),
    [
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.array([1, None], pa.int8()), pa.int32(), [1, None]),
        (pa.array([1], pa.uint16()), pa.int32(), [1]),
        (pa.array([1.5, None], pa.float32()), pa.float64(), [1.5, None]),
        (pa.array([Decimal("1.20")], pa.decimal32(5, 2)), pa.decimal128(9, 2), [Decimal("1.20")]),
        (pa.array([Decimal("1.20")], pa.decimal256(50, 2)), pa.decimal128(9, 2), [Decimal("1.20")]),
        (pa.array(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (pa.array(["a", None], pa.string_view()), pa.string(), ["a", None]),
        (pa.array(["a", "a", None]).dictionary_encode(), pa.string(), ["a", "a", None]),
        (pa.array([b"a"], pa.binary()), pa.string(), ["a"]),
        (pa.array(["a"]), pa.binary(), [b"a"]),
        (pa.array([b"ab"], pa.large_binary()), pa.binary(2), [b"ab"]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (pa.array([3], pa.int32()), pa.date32(), [pa.scalar(3, pa.date32()).as_py()]),
        (pa.array([None, None], pa.null()), pa.string(), [None, None]),
        (pa.array([7, None]), pa.null(), [None, None]),
    ],
)
def test_reads_every_way_of_storing_a_type(
    stored: pa.Array[Any], target: pa.DataType, expected: list[Any]
) -> None:
    converted = convert(stored, target)

    assert converted.type == target
    assert converted.to_pylist() == expected


def test_wraps_and_unwraps_extension_types() -> None:
    uuids = convert(pa.array([UUID, None], pa.binary(16)), pa.uuid())

    assert uuids.type == pa.uuid()
    assert convert(uuids, pa.binary(16)).to_pylist() == [UUID, None]


@pytest.mark.parametrize(
    ("stored", "target"),
    [
        (pa.array([1]), pa.string()),
        (pa.array([1]), pa.float64()),
        (pa.array([1.0]), pa.int64()),
        (pa.array([1.0]), pa.float32()),
        (pa.array([True]), pa.int32()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([b"\xff"]), pa.string()),
        (pa.array([2**40]), pa.int32()),
        (pa.array([Decimal("1.20")], pa.decimal128(5, 2)), pa.decimal128(5, 1)),
        (pa.array([Decimal("123.45")], pa.decimal128(5, 2)), pa.decimal128(4, 2)),
        (pa.array([b"abc"]), pa.binary(2)),
        (pa.array([1], pa.date32()), pa.timestamp("us", "UTC")),
        (pa.array([200_000], pa.date32()), pa.timestamp("ns")),
        (pa.array([1]), pa.timestamp("us")),
        (pa.array([2**62], pa.timestamp("ms")), pa.timestamp("us")),
    ],
)
def test_refuses_what_has_no_reading(stored: pa.Array[Any], target: pa.DataType) -> None:
    with pytest.raises(CannotConvert):
        convert(stored, target)


@given(
    st.lists(st.none() | st.integers(-(2**40), 2**40)),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.sampled_from(["us", "ns"]),
    st.sampled_from([None, "UTC", "America/New_York"]),
    st.sampled_from([None, "UTC"]),
)
def test_times_keep_their_instant_and_round_down(
    ticks: list[int | None], unit: Any, target_unit: Any, zone: Any, target_zone: Any
) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    stored = pa.array(ticks, pa.int64()).view(pa.timestamp(unit, zone))
    scale = per_second[target_unit], per_second[unit]
    expected = [None if t is None else t * scale[0] // scale[1] for t in ticks]

    if any(e is not None and abs(e) >= 2**63 for e in expected):
        with pytest.raises(CannotConvert):
            convert(stored, pa.timestamp(target_unit, target_zone))
    else:
        converted = convert(stored, pa.timestamp(target_unit, target_zone))
        assert converted.type == pa.timestamp(target_unit, target_zone)
        assert converted.view(pa.int64()).to_pylist() == expected


def test_a_date_becomes_midnight() -> None:
    stored = pa.array([-1, 0, None], pa.date32())

    micros = convert(stored, pa.timestamp("us")).view(pa.int64())

    assert micros.to_pylist() == [-86_400_000_000, 0, None]


@pytest.mark.parametrize("stored", [pa.array([5_001], pa.time64("ns")), pa.array([5], pa.int64())])
def test_times_of_day_come_in_microseconds(stored: pa.Array[Any]) -> None:
    assert convert(stored, pa.time64("us")).view(pa.int64()).to_pylist() == [5]


def test_decodes_layouts_around_values() -> None:
    encoded = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])

    assert decode_layout(encoded).to_pylist() == ["a", "a", "b"]
    assert decode_layout(pa.array(["a"])).to_pylist() == ["a"]
