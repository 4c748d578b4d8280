"""Find the deletes that apply to a data file.

The spec's scope rules, in short: a position delete or vector applies to files that are not younger
than it, an equality delete to files that are older; both within their partition, except that an
equality delete under an unpartitioned spec is global, and a vector names its one file. Where there
is a vector, position deletes are left out: it holds them all. Spec: "Scan Planning".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import Content, DataFile, DeleteFile
from floeberg.protocol.metadata_columns import DELETE_FILE_PATH_ID
from floeberg.protocol.partitioning import PartitionSpec
from tests.support.plain_planner.partition_keys import PartitionKey, partition_key


class _Indexed(NamedTuple):
    order: int
    file: DeleteFile
    partition: PartitionKey


class DeleteIndex:
    """The live delete files of a snapshot, in the order of its manifests."""

    def __init__(self) -> None:
        self._vectors: dict[str, _Indexed] = {}
        self._positions_of: dict[str, list[_Indexed]] = defaultdict(list)
        self._positions_in: dict[PartitionKey, list[_Indexed]] = defaultdict(list)
        self._equality_in: dict[PartitionKey, list[_Indexed]] = defaultdict(list)
        self._equality_global: list[_Indexed] = []
        self._count = 0

    def add(self, files: Iterable[DeleteFile], spec: PartitionSpec) -> None:
        """Take in delete files written under `spec`.

        Raises `CorruptDeletes` for a second vector of one data file.
        """
        for file in files:
            indexed = _Indexed(self._count, file, partition_key(spec, file.partition))
            self._count += 1
            path = file.referenced_data_file
            if file.content is Content.EQUALITY_DELETES:
                self._add_equality(indexed, spec)
            elif not file.is_deletion_vector:
                by_place = self._positions_in[indexed.partition]
                (by_place if path is None else self._positions_of[path]).append(indexed)
            elif path is not None:
                self._add_vector(indexed, path)

    def _add_equality(self, indexed: _Indexed, spec: PartitionSpec) -> None:
        if spec.is_unpartitioned:
            self._equality_global.append(indexed)
        else:
            self._equality_in[indexed.partition].append(indexed)

    def _add_vector(self, indexed: _Indexed, path: str) -> None:
        first = self._vectors.setdefault(path, indexed)
        if first is not indexed:
            raise CorruptDeletes(
                f"data file {path} has two deletion vectors, in {first.file.location} and"
                f" {indexed.file.location}; a snapshot may have one"
            )

    def applying_to(self, data: DataFile, partition: PartitionKey) -> tuple[DeleteFile, ...]:
        """Return the deletes of a data file, in the order of the snapshot's manifests.

        Raises `CorruptDeletes` when a delete that names this very file does not fit it: leaving it
        out would bring deleted rows back.
        """
        if self._count == 0:
            return ()
        number = data.data_sequence_number
        found = [
            d
            for group in (self._equality_global, self._equality_in.get(partition, ()))
            for d in group
            if number < d.file.data_sequence_number
        ]
        vector = self._vectors.get(data.location)
        if vector is not None:
            _check_fits(vector, data, partition)
            if number > vector.file.data_sequence_number:
                raise CorruptDeletes(
                    f"data file {data.location} has sequence number {number}, and its deletion"
                    f" vector in {vector.file.location} the older"
                    f" {vector.file.data_sequence_number}"
                )
            found.append(vector)
        else:
            found.extend(self._positions(data, partition))
        found.sort()
        return tuple(d.file for d in found)

    def _positions(self, data: DataFile, partition: PartitionKey) -> Iterable[_Indexed]:
        for d in self._positions_of.get(data.location, ()):
            if data.data_sequence_number <= d.file.data_sequence_number:
                _check_fits(d, data, partition)
                yield d
        for d in self._positions_in.get(partition, ()):
            if data.data_sequence_number <= d.file.data_sequence_number and _may_name(
                d.file, data.location
            ):
                yield d


def _check_fits(delete: _Indexed, data: DataFile, partition: PartitionKey) -> None:
    if delete.partition != partition:
        raise CorruptDeletes(
            f"delete file {delete.file.location} names data file {data.location}, which is in"
            " another partition"
        )


def _may_name(delete: DeleteFile, location: str) -> bool:
    """Say whether a position delete file may name a data file, by its bounds on the paths.

    Keeps the delete on any doubt: bounds that are absent, not text or the wrong way round.
    """
    lower = _text(delete.metrics.lower_bounds.get(DELETE_FILE_PATH_ID))
    upper = _text(delete.metrics.upper_bounds.get(DELETE_FILE_PATH_ID))
    if lower is None or upper is None or lower > upper:
        return True
    # an upper bound may have been cut without being rounded up
    return lower <= location and (location <= upper or location.startswith(upper))


def _text(bound: bytes | None) -> str | None:
    if bound is None:
        return None
    try:
        return bound.decode()
    except UnicodeDecodeError:
        return None
