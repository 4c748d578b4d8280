"""Bind fields to a file, and read the chosen fields of a whole file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from floeberg.protocol.errors import CorruptTable
from floeberg.protocol.types import NestedField, Value
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.files.rows import StoredFile
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.resolution import Resolver, needed_leaves
from floeberg.worker.projection.sources import Source

_NO_CONSTANTS: Mapping[int, Value | None] = {}


def bind(
    groups: Sequence[Sequence[NestedField]], resolver: Resolver, rows: StoredFile
) -> tuple[Set[int], list[tuple[Source, ...]]]:
    """Resolve several groups of fields against one file.

    Return the leaves to decode for all of them, and each group's sources in what is then decoded.
    """
    leaves: set[int] = set()
    for fields in groups:
        leaves |= needed_leaves(resolver.resolve(fields, rows.columns), rows.columns)
    decoded = rows.decoded(leaves)
    return leaves, [resolver.resolve(fields, decoded) for fields in groups]


def project_file(
    rows: StoredFile,
    fields: Sequence[NestedField],
    location: str,
    corrupt: type[CorruptTable],
    constants: Mapping[int, Value | None] = _NO_CONSTANTS,
) -> Iterator[list[ArrowArray]]:
    """Yield the arrays of `fields`, a chunk of the file at a time."""
    resolver = Resolver(location, constants, corrupt)
    leaves, [sources] = bind([fields], resolver, rows)
    assembler = Assembler(location, corrupt)
    for chunk in rows.chunks(leaves):
        arrays = assembler.project(sources, chunk.rows)
        assembler.check_required(sources, arrays)
        yield arrays
