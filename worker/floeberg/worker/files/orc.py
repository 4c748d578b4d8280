"""ORC files: stripes and columns, through pyarrow.

Spec: Appendix A, "ORC".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import cache, partial
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, Unsupported
from floeberg.protocol.name_mapping import NameMapping
from floeberg.worker.arrow import ArrowField, Rows
from floeberg.worker.files.decoding import decoding
from floeberg.worker.files.ranges import RangeFile
from floeberg.worker.files.rows import (
    MAX_CHUNK_ROWS,
    NOTHING_LATER,
    WHOLE_FILE,
    Chunk,
    Later,
    MayMatch,
    Share,
)
from floeberg.worker.files.stored import StoredField, stored_fields

_FIELD_ID = b"iceberg.id"
_FIRST_STRIPE = 3
"""Where the first stripe starts: after the letters ORC."""

_OUT_OF_RANGE = "out of range for nanosecond"
"""What pyarrow says of a timestamp that it can't hold; it reads them in nanoseconds only."""


class OrcRows:
    """An open ORC file; implements `StoredFile`.

    pyarrow doesn't tell where a stripe lies, so the whole file belongs to the share that holds its
    beginning. Nothing is pruned below a top-level column, and a stripe is decoded at once.
    """

    def __init__(
        self,
        source: RangeFile,
        location: str,
        *,
        mapping: NameMapping | None = None,
        corrupt: type[CorruptTable] = CorruptDataFile,
    ) -> None:
        self._location = location
        self._corrupt = corrupt
        self._source = source
        with decoding(location, corrupt):
            self._file = orc.ORCFile(source.for_arrow())
            self.columns = stored_fields(self._file.schema, _field_id, mapping)

    @property
    def num_rows(self) -> int:
        return self._file.nrows

    def decoded(self, leaves: Set[int]) -> tuple[StoredField, ...]:
        return tuple(column for column in self.columns if not leaves.isdisjoint(column.leaves))

    def chunks(
        self,
        leaves: Set[int],
        share: Share = WHOLE_FILE,
        may_match: MayMatch | None = None,
        later: Later = NOTHING_LATER,
    ) -> Iterator[Chunk]:
        if not share.holds(_FIRST_STRIPE):
            return
        next_row = 0
        for stripe in range(self._file.nstripes):
            rows = self._stripe(stripe, leaves)
            later_rows = cache(partial(self._stripe, stripe, later.leaves))
            for start in range(0, len(rows), MAX_CHUNK_ROWS):
                part = rows.slice(start, MAX_CHUNK_ROWS)
                first_row, next_row = next_row, next_row + len(part)
                skipped = max(share.from_row - first_row, 0)
                if skipped < len(part):
                    yield Chunk(
                        first_row + skipped,
                        part.slice(skipped),
                        next_row == self.num_rows,
                        partial(_part, later_rows, start + skipped, len(part) - skipped),
                    )

    def _stripe(self, stripe: int, leaves: Set[int]) -> Rows:
        wanted = [i for i, c in enumerate(self.columns) if not leaves.isdisjoint(c.leaves)]
        with decoding(self._location, self._corrupt):
            # no column at all would lose the number of rows
            columns: Any = wanted or [0]  # numbers, where the stubs know names only
            try:
                batch = self._file.read_stripe(stripe, columns=columns)
            except pa.ArrowInvalid as exc:
                if _OUT_OF_RANGE not in str(exc):
                    raise
                raise Unsupported(
                    f"{self._location} holds times before 1677-09-21 or after 2262-04-11, which"
                    " are not read from ORC"
                ) from exc
            return Rows(batch.columns if wanted else (), batch.num_rows)

    @property
    def unread_bytes(self) -> int:
        return self._source.unread_bytes

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> OrcRows:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _part(rows: Callable[[], Rows], start: int, length: int) -> Iterator[Rows]:
    yield rows().slice(start, length)


def _field_id(field: ArrowField) -> int | None:
    raw = (field.metadata or {}).get(_FIELD_ID)
    return int(raw) if raw is not None else None
