"""Geometries as well-known binary, which files store, and as well-known text, which JSON shows.

Both in their ISO forms, with coordinates XY, XYZ, XYM or XYZM. Binary with the older flags for Z, M
and a reference system is read too; a reference system in it is dropped, for the column's type has
one. Spec: Appendix G.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

_Coordinate: TypeAlias = tuple[float, ...]
_T = TypeVar("_T")

_POINT, _LINE, _POLYGON, _MULTIPOINT, _MULTILINE, _MULTIPOLYGON, _COLLECTION = range(1, 8)
_NAMES = {
    _POINT: "POINT",
    _LINE: "LINESTRING",
    _POLYGON: "POLYGON",
    _MULTIPOINT: "MULTIPOINT",
    _MULTILINE: "MULTILINESTRING",
    _MULTIPOLYGON: "MULTIPOLYGON",
    _COLLECTION: "GEOMETRYCOLLECTION",
}
_KINDS = {name: kind for kind, name in _NAMES.items()}
_MEMBERS = {_MULTIPOINT: _POINT, _MULTILINE: _LINE, _MULTIPOLYGON: _POLYGON}
_DIMENSIONS = ("", "Z", "M", "ZM")  # by the thousands of the ISO type code

_OLD_Z, _OLD_M, _OLD_REFERENCE = 0x8000_0000, 0x4000_0000, 0x2000_0000
_MAX_DEPTH = 32
_TOKEN = re.compile(r"\s*([-+]?[A-Za-z]+|[-+0-9.][-+0-9.eE]*|[(),])")


@dataclass(frozen=True, slots=True)
class _Geometry:
    """`lines` are a polygon's rings, a line string's only line, or a point's line of one; of a
    multi geometry or collection there are `parts` instead."""

    kind: int
    dimensions: str
    lines: tuple[tuple[_Coordinate, ...], ...] = ()
    parts: tuple[_Geometry, ...] = ()


def from_binary(raw: bytes) -> str:
    """Return the well-known text of well-known binary; ValueError when it is none.

    >>> from_binary(to_binary("point z(1 2.50 -3)"))
    'POINT Z (1 2.5 -3)'
    """
    reader = _Binary(raw)
    geometry = reader.geometry(0)
    if reader.place != len(raw):
        raise ValueError(f"{len(raw) - reader.place} bytes after the end of the geometry")
    return _text(geometry)


def to_binary(text: str) -> bytes:
    """Return the little-endian well-known binary of well-known text; ValueError when it is none."""
    reader = _Text(text)
    geometry = reader.geometry(0)
    reader.expect("")
    return _binary(geometry)


# --- binary --------------------------------------------------------------------------------------


class _Binary:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.place = 0

    def geometry(self, depth: int) -> _Geometry:
        if depth > _MAX_DEPTH:
            raise ValueError("geometries nested too deep")
        order = {0: ">", 1: "<"}.get(self._integer("B"))
        if order is None:
            raise ValueError("a geometry's byte order is neither 0 nor 1")
        code = self._integer(order + "I")
        if code & _OLD_REFERENCE:
            self._integer(order + "I")
        thousands, kind = divmod(code & 0x0FFF_FFFF, 1000)
        thousands |= bool(code & _OLD_Z) | bool(code & _OLD_M) << 1
        if thousands >= len(_DIMENSIONS) or kind not in _NAMES:
            raise ValueError(f"{code} is not the code of a geometry")
        dimensions = _DIMENSIONS[thousands]
        point = f"{order}{2 + len(dimensions)}d"

        def coordinate() -> _Coordinate:
            return self._unpack(point)

        def line() -> tuple[_Coordinate, ...]:
            return self._several(order, coordinate)

        match kind:
            case 1:  # a point without coordinates is all NaN
                only = coordinate()
                empty = all(math.isnan(number) for number in only)
                return _Geometry(kind, dimensions, () if empty else ((only,),))
            case 2:
                found = line()
                return _Geometry(kind, dimensions, (found,) if found else ())
            case 3:
                return _Geometry(kind, dimensions, self._several(order, line))
            case _:
                parts = self._several(order, lambda: self.geometry(depth + 1))
                if any(p.kind != _MEMBERS.get(kind, p.kind) for p in parts):
                    raise ValueError(f"a {_NAMES[kind]} with a part of another kind")
                return _Geometry(kind, dimensions, parts=parts)

    def _several(self, order: str, read: Callable[[], _T]) -> tuple[_T, ...]:
        items: list[_T] = []
        for _ in range(self._integer(order + "I")):  # a false count ends at the last byte
            items.append(read())
        return tuple(items)

    def _integer(self, layout: str) -> int:
        return int(self._unpack(layout)[0])

    def _unpack(self, layout: str) -> tuple[float, ...]:
        try:
            found = struct.unpack_from(layout, self._raw, self.place)
        except struct.error as exc:
            raise ValueError("a geometry's bytes end early") from exc
        self.place += struct.calcsize(layout)
        return found


def _binary(geometry: _Geometry) -> bytes:
    code = geometry.kind + 1000 * _DIMENSIONS.index(geometry.dimensions)
    out = [struct.pack("<BI", 1, code)]
    width = 2 + len(geometry.dimensions)
    lines = geometry.lines
    match geometry.kind:
        case 1:
            only = lines[0][0] if lines else (math.nan,) * width
            out.append(struct.pack(f"<{width}d", *only))
        case 2:
            out.append(_binary_line(lines[0] if lines else ()))
        case 3:
            out.append(struct.pack("<I", len(lines)))
            out.extend(_binary_line(line) for line in lines)
        case _:
            out.append(struct.pack("<I", len(geometry.parts)))
            out.extend(_binary(part) for part in geometry.parts)
    return b"".join(out)


def _binary_line(line: tuple[_Coordinate, ...]) -> bytes:
    return struct.pack("<I", len(line)) + b"".join(struct.pack(f"<{len(c)}d", *c) for c in line)


# --- text ----------------------------------------------------------------------------------------


def _text(geometry: _Geometry) -> str:
    head = f"{_NAMES[geometry.kind]} {geometry.dimensions}".rstrip()
    return f"{head} {_body(geometry)}"


def _body(geometry: _Geometry) -> str:
    if not geometry.lines and not geometry.parts:
        return "EMPTY"
    match geometry.kind:
        case 1 | 2:
            return _text_line(geometry.lines[0])
        case 3:
            return f"({', '.join(_text_line(line) for line in geometry.lines)})"
        case 7:
            return f"({', '.join(_text(part) for part in geometry.parts)})"
        case _:
            return f"({', '.join(_body(part) for part in geometry.parts)})"


def _text_line(line: tuple[_Coordinate, ...]) -> str:
    if not line:
        return "EMPTY"
    return f"({', '.join(' '.join(map(_number, coordinate)) for coordinate in line)})"


def _number(number: float) -> str:
    return repr(number).removesuffix(".0")


class _Text:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._next = ""
        self._advance()

    def geometry(self, depth: int) -> _Geometry:
        if depth > _MAX_DEPTH:
            raise ValueError("geometries nested too deep")
        kind = _KINDS.get(self._next)
        if kind is None:
            raise ValueError(f"{self._next!r} is not a kind of geometry")
        self._advance()
        dimensions = self._next if self._next in _DIMENSIONS[1:] else ""
        if dimensions:
            self._advance()
        return self._content(kind, dimensions, depth)

    def expect(self, token: str) -> None:
        if self._next != token:
            expected = repr(token) if token else "the end"
            raise ValueError(f"expected {expected} of the geometry, found {self._next!r}")
        if token:
            self._advance()

    def _content(self, kind: int, dimensions: str, depth: int) -> _Geometry:
        if self._next == "EMPTY":
            self._advance()
            return _Geometry(kind, dimensions)
        width = 2 + len(dimensions)

        def line() -> tuple[_Coordinate, ...]:
            if self._next == "EMPTY":
                self._advance()
                return ()
            return self._list(lambda: self._coordinate(width))

        match kind:
            case 1 | 2:
                found = line()
                if kind == _POINT and len(found) != 1:
                    raise ValueError("a point has one coordinate")
                return _Geometry(kind, dimensions, (found,))
            case 3:
                return _Geometry(kind, dimensions, self._list(line))
            case 7:
                return _Geometry(
                    kind, dimensions, parts=self._list(lambda: self.geometry(depth + 1))
                )
            case _:
                member = _MEMBERS[kind]

                def part() -> _Geometry:
                    if member == _POINT and self._next not in ("(", "EMPTY"):  # the older spelling
                        return _Geometry(_POINT, dimensions, ((self._coordinate(width),),))
                    return self._content(member, dimensions, depth)

                return _Geometry(kind, dimensions, parts=self._list(part))

    def _list(self, read: Callable[[], _T]) -> tuple[_T, ...]:
        self.expect("(")
        items = [read()]
        while self._next == ",":
            self._advance()
            items.append(read())
        self.expect(")")
        return tuple(items)

    def _coordinate(self, width: int) -> _Coordinate:
        numbers: list[float] = []
        while self._next not in ("", "(", ")", ","):
            numbers.append(float(self._next))  # ValueError is what the caller expects
            self._advance()
        if len(numbers) != width:
            raise ValueError(f"a coordinate of {len(numbers)} numbers where {width} were expected")
        return tuple(numbers)

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            if self._text[self._place :].strip():
                raise ValueError(f"{self._text[self._place :][:20]!r} is no part of a geometry")
            self._next = ""
            return
        self._place = match.end()
        self._next = match[1].upper()
