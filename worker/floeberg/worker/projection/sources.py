"""Where the values of a projected field come from, decided once a file.

A tree of sources has the shape of the projected type. `resolution` builds it, `assembly` follows
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from floeberg.worker.arrow import ArrowArray, ArrowType


@dataclass(frozen=True, slots=True)
class ConstantSource:
    """The same value in every row: an array of one."""

    single: ArrowArray


@dataclass(frozen=True, slots=True)
class LeafSource:
    """A stored leaf column, the `position`-th field of its parent as decoded.

    `name` is the field's dotted name, for messages; `required` says that nulls contradict the
    table.
    """

    position: int
    target: ArrowType
    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class StructSource:
    """A struct. `position` is None when the file does not hold it: then it is null in no row."""

    position: int | None
    children: tuple[Source, ...]
    target: ArrowType
    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class ListSource:
    position: int
    element: Source
    target: ArrowType
    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class MapSource:
    position: int
    key: Source
    value: Source
    target: ArrowType
    name: str
    required: bool


Source: TypeAlias = ConstantSource | LeafSource | StructSource | ListSource | MapSource
