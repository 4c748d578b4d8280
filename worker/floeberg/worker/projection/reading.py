"""Read the chosen fields of a whole file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from floeberg.protocol.errors import CorruptTable
from floeberg.protocol.types import NestedField, Value
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.files.rows import StoredFile
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.resolution import Resolver, needed_leaves

_NO_CONSTANTS: Mapping[int, Value | None] = {}


def project_file(
    rows: StoredFile,
    fields: Sequence[NestedField],
    location: str,
    corrupt: type[CorruptTable],
    constants: Mapping[int, Value | None] = _NO_CONSTANTS,
) -> Iterator[list[ArrowArray]]:
    """Yield the arrays of `fields`, a chunk of the file at a time."""
    resolver = Resolver(location, constants, corrupt)
    leaves = needed_leaves(resolver.resolve(fields, rows.columns), rows.columns)
    sources = resolver.resolve(fields, rows.decoded(leaves))
    assembler = Assembler(location, corrupt)
    for chunk in rows.chunks(leaves):
        arrays = assembler.project(sources, chunk.rows)
        assembler.check_required(sources, arrays)
        yield arrays
