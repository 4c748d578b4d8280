"""Positional deletes: which rows of a data file are gone, by their place in it.

Positions count the file's rows from zero, before any filter.
Spec: "Position Delete Files".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import DeleteFile
from floeberg.protocol.metadata_columns import DELETE_FILE_PATH_ID, DELETE_POS_ID
from floeberg.protocol.name_mapping import MappedField, NameMapping
from floeberg.protocol.storage import Storage
from floeberg.protocol.types import LongType, NestedField, StringType
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.files.opening import open_rows
from floeberg.worker.projection.reading import project_file

_FIELDS = (
    NestedField(DELETE_FILE_PATH_ID, "file_path", StringType(), required=True),
    NestedField(DELETE_POS_ID, "pos", LongType(), required=True),
)
# some writers leave the ids out
_BY_NAME = NameMapping(tuple(MappedField((f.name,), f.field_id) for f in _FIELDS))

Positions = npt.NDArray[np.int64]
NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """The contents of one position delete file: for each data file's location, sorted distinct
    positions.
    """

    by_location: Mapping[str, Positions]

    def of(self, location: str) -> Positions:
        return self.by_location.get(location, NO_POSITIONS)

    @property
    def size_bytes(self) -> int:
        return sum(p.nbytes + len(location) + 200 for location, p in self.by_location.items())


def load_position_deletes(storage: Storage, file: DeleteFile, verify_crc: bool) -> PositionDeletes:
    """Read a position delete file of any format.

    Raises `CorruptDeletes` when it cannot be decoded or holds a null, `MissingFile` when it is
    gone.
    """
    parts: dict[str, list[Positions]] = {}
    with open_rows(
        storage, file, mapping=_BY_NAME, verify_crc=verify_crc, corrupt=CorruptDeletes
    ) as rows:
        for locations, positions in project_file(rows, _FIELDS, file.location, CorruptDeletes):
            for location, part in split_by_location(locations, positions):
                parts.setdefault(location, []).append(part)
    return PositionDeletes({location: union(p) for location, p in parts.items()})


def split_by_location(
    locations: ArrowArray, positions: ArrowArray
) -> Iterator[tuple[str, Positions]]:
    """Yield each distinct location with the positions beside it, in any order."""
    encoded = locations.dictionary_encode()
    codes = encoded.indices.to_numpy()
    values = positions.to_numpy()
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], values
        return
    order = np.argsort(codes, kind="stable")
    borders = np.searchsorted(codes[order], np.arange(len(names) + 1))
    for code, name in enumerate(names):
        yield name, values[order[borders[code] : borders[code + 1]]]


def union(parts: list[Positions]) -> Positions:
    """Return the sorted distinct positions of all `parts`."""
    found = [part for part in parts if len(part)]
    if not found:
        return NO_POSITIONS
    joined = found[0] if len(found) == 1 else np.concatenate(found)
    if not _is_increasing(joined):
        # not `np.unique`, which hashes integers first
        joined = np.sort(joined)
        joined = joined[np.concatenate([[True], joined[1:] != joined[:-1]])]
    return joined


def _is_increasing(values: Positions) -> bool:
    return bool((values[1:] > values[:-1]).all())


def are_all_deleted(first_row: int, num_rows: int, deleted: Positions) -> bool:
    """Say whether each of `num_rows` rows from `first_row` on is deleted.

    `deleted` is sorted and distinct, and may reach beyond the rows.
    """
    if len(deleted) < num_rows:
        return False
    start, stop = deleted.searchsorted((first_row, first_row + num_rows))
    return bool(stop - start == num_rows)


def keep_mask(first_row: int, num_rows: int, deleted: Positions) -> npt.NDArray[np.bool_] | None:
    """Return which of `num_rows` rows from `first_row` on are not deleted; None when all stay.

    `deleted` is sorted and distinct, and may reach beyond the rows.
    """
    start, stop = deleted.searchsorted((first_row, first_row + num_rows))
    if start == stop:
        return None
    keep = np.ones(num_rows, dtype=np.bool_)
    keep[deleted[start:stop] - first_row] = False
    return keep
