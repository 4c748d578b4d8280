from __future__ import annotations

import contextlib
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol import values
from floeberg.protocol.types import GeographyType, GeometryType
from floeberg.protocol.well_known_text import from_binary, to_binary

numbers = st.floats(allow_nan=False).map(lambda n: repr(n).removesuffix(".0"))


@st.composite
def geometries(draw: st.DrawFn, depth: int = 2) -> str:
    dimensions = draw(st.sampled_from(["", " Z", " M", " ZM"]))
    width = 2 + len(dimensions.strip())

    def coordinate() -> str:
        return " ".join(draw(numbers) for _ in range(width))

    def listed(item, least: int = 1) -> str:  # type: ignore[no-untyped-def]
        return f"({', '.join(item() for _ in range(draw(st.integers(least, 3))))})"

    def line() -> str:
        return listed(coordinate)

    def rings() -> str:
        return listed(line)

    kinds = {
        "POINT": lambda: f"({coordinate()})",
        "LINESTRING": line,
        "POLYGON": rings,
        "MULTIPOINT": lambda: listed(lambda: f"({coordinate()})"),
        "MULTILINESTRING": lambda: listed(line),
        "MULTIPOLYGON": lambda: listed(rings),
    }
    if depth:
        kinds["GEOMETRYCOLLECTION"] = lambda: listed(lambda: draw(geometries(depth - 1)))
    kind = draw(st.sampled_from(list(kinds)))
    body = "EMPTY" if draw(st.integers(0, 9)) == 0 else kinds[kind]()
    return f"{kind}{dimensions} {body}"


@given(geometries())
def test_every_geometry_round_trips(text: str):
    assert from_binary(to_binary(text)) == text


@given(geometries(), st.data())
def test_binary_that_was_cut_is_refused(text: str, data: st.DataObject):
    raw = to_binary(text)

    with pytest.raises(ValueError, match=r"."):
        from_binary(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises(ValueError, match="after the end"):
        from_binary(raw + b"\x00")


@given(st.binary(max_size=40) | st.text("POINTLSEZM() ,.0123-", max_size=20))
def test_noise_is_a_geometry_or_a_value_error(noise: bytes | str):
    with contextlib.suppress(ValueError):
        _ = from_binary(noise) if isinstance(noise, bytes) else to_binary(noise)


def test_the_layout_is_the_standards():
    assert to_binary("POINT (30 10)") == struct.pack("<BI2d", 1, 1, 30, 10)
    assert to_binary("POINT ZM (1 2 3 4)") == struct.pack("<BI4d", 1, 3001, 1, 2, 3, 4)
    assert to_binary("LINESTRING (1 2, 3 4)") == struct.pack("<BII4d", 1, 2, 2, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (struct.pack(">BI2d", 0, 1, 30, 10), "POINT (30 10)"),
        (struct.pack("<BI2d", 1, 1, math.nan, math.nan), "POINT EMPTY"),
        (struct.pack("<BI3d", 1, 0x8000_0001, 1, 2, 3), "POINT Z (1 2 3)"),
        (struct.pack("<BI3d", 1, 0x4000_0001, 1, 2, 3), "POINT M (1 2 3)"),
        (struct.pack("<BII2d", 1, 0x2000_0001, 4326, 1, 2), "POINT (1 2)"),
    ],
)
def test_other_writers_binary_is_read(raw: bytes, text: str):
    assert from_binary(raw) == text


def test_other_writers_text_is_read():
    assert to_binary("multipoint(1 2,3 4)") == to_binary("MULTIPOINT ((1 2), (3 4))")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CIRCLE (1 2)",
        "POINT",
        "POINT (1)",
        "POINT (1 2 3)",
        "POINT (1 2, 3 4)",
        "POINT (1 2) x",
        "POINT (1 2",
        "POINT (a b)",
        "LINESTRING ()",
        "POLYGON (1 2)",
        "POINT (1 2); drop",
        "GEOMETRYCOLLECTION (" * 100,
    ],
)
def test_text_that_is_no_geometry_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        to_binary(text)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x02\x01\x00\x00\x00",
        struct.pack("<BI", 1, 9),
        struct.pack("<BI", 1, 4001),
        struct.pack("<BII", 1, 2, 2**32 - 1),
        struct.pack("<BII", 1, 4, 1) + struct.pack("<BII", 1, 2, 0),
        struct.pack("<BII", 1, 7, 1) * 100,
    ],
)
def test_binary_that_is_no_geometry_is_refused(raw: bytes):
    with pytest.raises(ValueError, match=r"."):
        from_binary(raw)


def test_a_geometrys_json_is_its_text():
    raw = to_binary("POINT (30 10)")

    assert values.to_json(GeometryType(), raw) == "POINT (30 10)"
    assert values.from_json(GeographyType(), "POINT (30 10)") == raw
