"""The values of parameters, of the types that clients bind."""

from __future__ import annotations

from datetime import datetime, time
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from floeberg.protocol.errors import UnsupportedSql
from floeberg.server.sql.parameters import literal_of, value_of

_NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
)


def _raw(type_: Any, units: int) -> pa.Scalar[Any]:
    """Return a value that pyarrow would not make, and that others may send."""
    data = units.to_bytes(type_.bit_width // 8, "little", signed=True)
    return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(data)])[0]


def _repeated(values: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1]), values)


_NANOSECOND = pa.array([1001], pa.timestamp("ns"))
_ONE_ROW = pa.array([0], pa.int8())


@pytest.mark.parametrize(
    "scalar",
    [
        pa.scalar(-(2**62), pa.timestamp("us")),
        pa.scalar(2**62, pa.timestamp("us", "UTC")),
        pa.scalar(2**62, pa.timestamp("s")),
        pa.scalar(2**62, pa.duration("s")),
        pa.scalar(1001, pa.timestamp("ns")),
        pa.scalar(1001, pa.time64("ns")),
        pa.scalar(0, pa.timestamp("us", "Mars/Olympus")),
        _NOT_UTF8[0],
        _raw(pa.time32("s"), 86_400),
        _raw(pa.time32("ms"), -1),
        _raw(pa.time64("us"), 86_400_000_000),
        _raw(pa.time64("ns"), 86_400_000_000_000),
        _raw(pa.date64(), -5),
        _raw(pa.date32(), 10**7),
        _NANOSECOND.dictionary_encode()[0],
        _repeated(_NANOSECOND)[0],
        pa.UnionArray.from_sparse(_ONE_ROW, [_NANOSECOND])[0],
        pa.ExtensionArray.from_storage(pa.opaque(pa.int8(), "x", "y"), _ONE_ROW)[0],
    ],
    ids=lambda scalar: str(scalar.type),
)
def test_a_value_that_can_not_be_had_whole_is_refused(scalar: pa.Scalar[Any]) -> None:
    with pytest.raises(UnsupportedSql, match="send"):
        value_of(scalar)


def test_nanoseconds_that_are_whole_microseconds_are_taken() -> None:
    assert value_of(pa.scalar(2000, pa.timestamp("ns"))) == datetime(1970, 1, 1, 0, 0, 0, 2)
    assert value_of(pa.scalar(2000, pa.time64("ns"))) == time(0, 0, 0, 2)
    assert value_of(pa.scalar(None, pa.timestamp("ns"))) is None


def test_a_value_of_a_dictionary_is_the_one_it_holds() -> None:
    words = pa.array(["eu", None, "eu"])
    a_null = pa.DictionaryArray.from_arrays(_ONE_ROW, pa.array([None], pa.string()))

    assert [value_of(word) for word in words.dictionary_encode()] == ["eu", None, "eu"]
    assert value_of(a_null[0]) is None
    assert value_of(_repeated(words.slice(0, 1))[0]) == "eu"


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (Decimal("-1.2345678901234567890123456789012345678"), "DECIMAL(38,37)"),
        (Decimal("1e-38"), "DECIMAL(38,38)"),
        (Decimal(10**38 - 1), "HUGEINT"),
        (Decimal("9" * 37 + ".5"), "DECIMAL(38,1)"),
    ],
)
def test_a_decimal_keeps_its_digits(value: Decimal, type_: str) -> None:
    sql = literal_of(value_of(pa.scalar(value))).sql("duckdb")

    found = duckdb.connect().execute(f"SELECT {sql}, typeof({sql})").fetchall()
    assert found == [(value, type_)]


@pytest.mark.parametrize("value", [Decimal(10**38), Decimal("1e-39"), Decimal("9" * 37 + ".55")])
def test_a_number_of_more_digits_than_a_decimal_has_is_refused(value: Decimal) -> None:
    with pytest.raises(UnsupportedSql, match="38 digits"):
        literal_of(value)
