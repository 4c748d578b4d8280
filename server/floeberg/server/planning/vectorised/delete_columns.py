"""What an index asks of all deletes of a plan, as columns through all their segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.metadata_columns import DELETE_FILE_PATH_ID
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.planned import DeleteFiles
from floeberg.server.planning.vectorised.lookups import StringLookup
from floeberg.server.planning.vectorised.ordered import Mask, as_binary
from floeberg.server.planning.vectorised.partition_codes import PartitionCodes
from floeberg.server.planning.vectorised.path_ranges import path_range


class DeleteColumns:
    """Columns of all `deletes`, in the order of their numbers.

    `contents`, `formats` (places in `FORMATS`) and `sequences` are the manifests' own. `paths` are
    the data files that deletes name, and `path_ids` which of them each names, -1 for none.
    """

    def __init__(self, deletes: DeleteFiles) -> None:
        self._parts = deletes.parts
        self.contents = deletes.column(s.CONTENT)
        self.formats = deletes.column(s.FORMAT)
        self.sequences = deletes.column(s.SEQUENCE_NUMBER)
        self.path_ids = np.full(len(deletes), -1, dtype=np.int64)
        named: list[Int64s] = []
        texts: list[Any] = [pa.array([], pa.binary())]
        for first, segment, rows in self._numbered():
            column = segment.strings(s.REFERENCED_DATA_FILE)
            if column is None:
                continue
            have = (
                np.arange(len(rows)) if column.valid is None else np.flatnonzero(column.valid[rows])
            )
            named.append(first + have)
            texts.append(as_binary(column).take(pa.array(rows[have])))
        encoded: Any = pc.dictionary_encode(pa.concat_arrays(texts))
        self.paths = StringLookup(encoded.dictionary)
        if named:
            self.path_ids[np.concatenate(named)] = encoded.indices.to_numpy()

    def _numbered(self) -> Iterator[tuple[int, Segment, Int64s]]:
        first = 0
        for segment, rows in self._parts:
            yield first, segment, rows
            first += len(rows)

    def path_ranges(self, chosen: Mask) -> dict[int, tuple[bytes, bytes]]:
        """Return what bounds on paths leave, of those of the `chosen` deletes that have them."""
        ranges: dict[int, tuple[bytes, bytes]] = {}
        for first, segment, rows in self._numbered():
            places = np.flatnonzero(chosen[first : first + len(rows)])
            lowers = segment.bounds(s.LOWER_BOUNDS, DELETE_FILE_PATH_ID)
            uppers = segment.bounds(s.UPPER_BOUNDS, DELETE_FILE_PATH_ID)
            if lowers is None or uppers is None or not len(places):
                continue
            at = rows[places]
            pairs = zip(lowers.to_list(at), uppers.to_list(at), strict=True)
            for place, pair in zip(places.tolist(), pairs, strict=True):
                found = path_range(*pair)
                if found is not None:
                    ranges[first + place] = found
        return ranges


class DeletePartitions:
    """The partitions of all `deletes`, numbered through all specs.

    `codes` has each delete's; `are_global` says which are under an unpartitioned spec.
    """

    def __init__(self, deletes: DeleteFiles, specs: Callable[[int], PartitionSpec]) -> None:
        self.codes = np.zeros(len(deletes), dtype=np.int64)
        self.are_global = np.zeros(len(deletes), dtype=np.bool_)
        self._by_spec: dict[int, tuple[int, PartitionCodes]] = {}
        firsts = np.cumsum([0, *(len(rows) for _, rows in deletes.parts)]).tolist()
        count = 0
        for spec_id in dict.fromkeys(segment.spec_id for segment, _ in deletes.parts):
            spec = specs(spec_id)
            within = [
                i for i, (segment, _) in enumerate(deletes.parts) if segment.spec_id == spec_id
            ]
            found = PartitionCodes(spec, [deletes.parts[i] for i in within])
            numbers = np.concatenate([np.arange(firsts[i], firsts[i + 1]) for i in within])
            self.codes[numbers] = count + found.codes
            self.are_global[numbers] = spec.is_unpartitioned
            self._by_spec[spec_id] = count, found
            count += found.count

    def find(self, segment: Segment, rows: Int64s) -> Int64s:
        """Return the number of the partition that each of `rows` is in, -1 for none of them."""
        first, codes = self._by_spec.get(segment.spec_id, (0, None))
        if codes is None:
            return np.full(len(rows), -1)
        found = codes.find(segment, rows)
        return np.where(found >= 0, found + first, -1)
