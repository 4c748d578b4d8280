"""Rows that the writers share: ordinary values, nulls, and the ends of each type's range."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC


def every_type(*, far_times: bool = True) -> pa.Table:
    """Return twelve rows with a column of every type that Spark, PyIceberg and DuckDB share.

    far_times: with the first and the last time that Spark knows, which 64 bits can't count in ns.
    """
    nan, inf = float("nan"), float("inf")
    _ = None
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "id": (pa.int64(), list(range(12))),
        "b": (pa.bool_(), [True, False, _, True, False, True, _, False, True, True, False, _]),
        "i": (
            pa.int32(),
            [0, 1, -1, 2**31 - 1, -(2**31), _, 7, 7, 42, -42, 1000, _],
        ),
        "l": (
            pa.int64(),
            [0, 1, -1, 2**63 - 1, -(2**63), _, 7, 7, 42, -42, 1000, _],
        ),
        "f": (pa.float32(), [0.0, -0.0, 1.5, nan, inf, -inf, _, -1.5, 2.0, nan, 0.25, _]),
        "d": (pa.float64(), [0.0, -0.0, 1.5, nan, inf, -inf, _, -1.5, 2.0, nan, 0.1, _]),
        "dec9": (pa.decimal128(9, 2), _decimals("0.00 1.50 -1.50 9999999.99 -9999999.99", 12)),
        "dec18": (pa.decimal128(18, 4), _decimals("0.0000 1.5000 -1.5000 99999999999999.9999", 12)),
        "dec38": (
            pa.decimal128(38, 10),
            _decimals("0 1.5 -1.5 9999999999999999999999999999.9999999999 -0.0000000001", 12),
        ),
        "day": (
            pa.date32(),
            [
                *(dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), _),
                *(dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 4), _),
                *(dt.date(2024, 3, 1), dt.date(1900, 1, 1), dt.date(2024, 2, 29), _),
            ],
        ),
        "ts": (pa.timestamp("us"), _times(None, far_times)),
        "tz": (pa.timestamp("us", "UTC"), _times(UTC, far_times)),
        "s": (
            pa.string(),
            ["", "a", "ab", "abc", "ä€😀", _, "A", "a" * 40, "zz", "'\\\"", "abd", _],
        ),
        "bin": (
            pa.binary(),
            [
                b"",
                b"\x00",
                b"\xff\xff",
                b"abc",
                b"\x80",
                _,
                b"a" * 40,
                b"abd",
                b"\x01",
                b"z",
                b"",
                _,
            ],
        ),
        "st": (
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
            [
                *({"x": 1, "y": "a"}, {"x": _, "y": "b"}, {"x": 2, "y": _}, {"x": _, "y": _}),
                *(_, {"x": 3, "y": "c"}, {"x": 4, "y": "d"}, _, {"x": 1, "y": "a"}),
                *({"x": 9, "y": ""}, _, {"x": 0, "y": "z"}),
            ],
        ),
        "ls": (
            pa.list_(pa.int64()),
            [[1, 2], [], _, [_], [3, _, 5], [1], _, [], [0], [7, 7], [-1], [2]],
        ),
        "mp": (
            pa.map_(pa.string(), pa.int32()),
            [
                *([("a", 1)], [], _, [("b", _)], [("a", 1), ("b", 2)], _),
                *([("c", 3)], [], [("d", 4)], [("e", 5)], _, [("f", 6)]),
            ],
        ),
        "deep": (
            pa.list_(pa.struct([("k", pa.string()), ("v", pa.list_(pa.float64()))])),
            [
                *(
                    [{"k": "a", "v": [1.0, _]}],
                    [],
                    _,
                    [_],
                    [{"k": _, "v": _}],
                    [{"k": "", "v": []}],
                ),
                *([{"k": "a", "v": [nan]}, {"k": "b", "v": [-0.0]}], _, [], _, [_, _], []),
            ],
        ),
    }
    return pa.table({name: pa.array(values, type_) for name, (type_, values) in columns.items()})


def _decimals(texts: str, count: int) -> list[Decimal | None]:
    """Return `count` decimals: those in `texts` and null, in turns."""
    values: list[Decimal | None] = [Decimal(t) for t in texts.split()]
    values.append(None)
    return [values[i % len(values)] for i in range(count)]


def _times(zone: dt.tzinfo | None, far: bool) -> list[dt.datetime | None]:
    first, last = (1, 9999) if far else (1700, 2200)

    def at(*parts: int) -> dt.datetime:
        return dt.datetime(*parts, tzinfo=zone)  # type: ignore[arg-type,misc]  # ints, then zone

    return [
        *(at(1970, 1, 1), at(1969, 12, 31, 23, 59, 59, 999999), at(2024, 2, 29, 12), None),
        *(at(first, 1, 1), at(last, 12, 31, 23, 59, 59, 999999), at(1900, 6, 1, 5, 4, 3, 2), None),
        *(at(2024, 2, 29, 12), at(1969, 1, 1), at(2024, 3, 1, 0, 0, 0, 1), None),
    ]


def people(first: int, last: int) -> pa.Table:
    """Return rows with ids `first` to `last` - 1: a name, an age with nulls, a region of three."""
    ids = list(range(first, last))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"n{i:03}" for i in ids], pa.string()),
            "age": pa.array([None if i % 5 == 4 else i % 30 for i in ids], pa.int32()),
            "region": pa.array([(None, "eu", "us")[i % 3] for i in ids], pa.string()),
        }
    )
