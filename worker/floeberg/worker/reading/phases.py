"""Decide what to decode of a file when: first the columns that tell which rows are kept, then, only
where some are, the other columns of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from floeberg.protocol.types import NestedField
from floeberg.worker.arrow import ArrowArray, Rows
from floeberg.worker.files.rows import Chunk, StoredFile
from floeberg.worker.files.stored import StoredField, walk
from floeberg.worker.projection.resolution import Resolver, needed_leaves
from floeberg.worker.projection.sources import Source


@dataclass(frozen=True, slots=True)
class Phases:
    """The leaves to decode of all rows, and those to decode later, of rows that may be kept.

    `filter_sources` count the columns that are decoded first. `output_sources` count those that are
    decoded later, and after them the `shared` ones: places of first columns that the answer needs
    too.
    """

    first: Set[int]
    later: Set[int]
    shared: tuple[int, ...]
    filter_sources: tuple[Source, ...]
    output_sources: tuple[Source, ...]

    @classmethod
    def of(
        cls,
        filter_fields: Sequence[NestedField],
        output_fields: Sequence[NestedField],
        resolver: Resolver,
        rows: StoredFile,
        *,
        at_once: bool,
    ) -> Phases:
        """Share the work out; nothing is left for later when it is to be done `at_once`, when no
        field says which rows are kept, or when the answer needs no column beside those that do.

        A column of the answer is decoded once, unless the filter needs only parts of it: then the
        answer's parts are decoded again, with the other columns.
        """
        first = needed_leaves(resolver.resolve(filter_fields, rows.columns), rows.columns)
        output = needed_leaves(resolver.resolve(output_fields, rows.columns), rows.columns)
        later: set[int] = set()
        if filter_fields and not at_once:
            known = _leaves(rows.decoded(first))
            for column in rows.columns:
                wanted = output & set(column.leaves)
                if not wanted <= known:
                    later |= wanted
        first |= output - later
        decoded, decoded_later = rows.decoded(first), rows.decoded(later)
        shared = tuple(
            place
            for place, column in enumerate(decoded)
            if not output.isdisjoint(column.leaves) and later.isdisjoint(column.leaves)
        )
        in_output = (*decoded_later, *(decoded[place] for place in shared))
        return cls(
            first,
            later,
            shared,
            resolver.resolve(filter_fields, decoded),
            resolver.resolve(output_fields, in_output),
        )

    def output_chunks(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the rows of `chunk`, in order, with the columns that `output_sources` count."""
        if not self.later:
            yield Chunk(chunk.first_row, self._output_rows(chunk.rows, []), chunk.is_last)
            return
        start, length = 0, len(chunk.rows)
        for later in chunk.later_rows():
            first_row, first = chunk.first_row + start, chunk.rows.slice(start, len(later))
            start += len(later)
            rows = self._output_rows(first, later.columns)
            yield Chunk(first_row, rows, chunk.is_last and start == length)

    def _output_rows(self, first: Rows, later: Sequence[ArrowArray]) -> Rows:
        columns = first.columns
        return Rows([*later, *(columns[place] for place in self.shared)], first.num_rows)


def _leaves(columns: Sequence[StoredField]) -> Set[int]:
    return {leaf for field in walk(columns) if not field.children for leaf in field.leaves}
