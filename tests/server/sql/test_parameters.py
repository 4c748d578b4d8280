"""The values of parameters, of the types that clients bind."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

import pyarrow as pa
import pytest

from floeberg.protocol.errors import UnsupportedSql
from floeberg.server.sql.parameters import value_of

_NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
)


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
