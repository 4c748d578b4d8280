"""Columns that tell where a row is stored and how old it is, for the rows that are kept.

Spec: "Reserved Field IDs", "Row Lineage".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.files import DataFile
from floeberg.protocol.metadata_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_ID,
    POS,
    ROW_ID,
    SPEC_ID,
)
from floeberg.protocol.types import NestedField
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.projection.constants import array_of, repeat

_STORED = {ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id}
_IDS = _STORED | {
    FILE.field_id,
    POS.field_id,
    DELETED.field_id,
    SPEC_ID.field_id,
    PARTITION_ID,
}


def is_metadata_column(field: NestedField) -> bool:
    return field.field_id in _IDS


def stored_part(field: NestedField) -> NestedField | None:
    """Return what of the metadata column `field` a file may store: its own values for rows moved
    from another file.
    """
    return replace(field, required=False) if field.field_id in _STORED else None


@dataclass(frozen=True, slots=True)
class MetadataColumns:
    """Makes the metadata columns of one data file of a table of `format_version`."""

    file: DataFile
    format_version: int

    def array(
        self, field: NestedField, positions: npt.NDArray[np.int64], stored: ArrowArray | None
    ) -> ArrowArray:
        """Return `field` for the rows at `positions`; `stored` are the values of `stored_part`."""
        length = len(positions)
        match field.field_id:
            case FILE.field_id:
                return self._same(field, self.file.location, length)
            case POS.field_id:
                return pa.array(positions)
            case DELETED.field_id:
                return self._same(field, False, length)
            case SPEC_ID.field_id:
                return self._same(field, self.file.spec_id, length)
            case ROW_ID.field_id:
                return self._row_ids(positions, stored)
            case LAST_UPDATED_SEQUENCE_NUMBER.field_id:
                return self._last_updated(length, stored)
            case _:
                return self._same(field, dict(self.file.partition), length)

    def _same(self, field: NestedField, value: object, length: int) -> ArrowArray:
        return repeat(array_of([value], field.type, arrow_type(field.type)), length)

    def _row_ids(self, positions: npt.NDArray[np.int64], stored: ArrowArray | None) -> ArrowArray:
        """A file without a first row id has rows without ids, even if it stores some."""
        first = self.file.first_row_id
        if first is None or self.format_version < 3:
            return pa.nulls(len(positions), pa.int64())
        inherited = pa.array(positions + first)
        return inherited if stored is None else pc.coalesce(stored, inherited)

    def _last_updated(self, length: int, stored: ArrowArray | None) -> ArrowArray:
        if self.file.first_row_id is None or self.format_version < 3:
            return pa.nulls(length, pa.int64())
        inherited = pa.array(np.full(length, self.file.data_sequence_number, dtype=np.int64))
        return inherited if stored is None else pc.coalesce(stored, inherited)
