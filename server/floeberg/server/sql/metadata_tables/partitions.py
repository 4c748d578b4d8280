"""`partitions`: a row a partition of a snapshot, its files counted.

Files of several specs are in one partition where their values are the same, those that a spec has
not being null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema, arrow_type
from floeberg.protocol.errors import CorruptManifest
from floeberg.protocol.files import Content
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s, Mask
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import StructType
from floeberg.server.sql.metadata_tables.files import partition_columns
from floeberg.server.sql.metadata_tables.readable_metrics import struct_of
from floeberg.server.sql.metadata_tables.values import ArrowArray

_NEVER = np.iinfo(np.int64).min


def partitions_table(
    segments: Iterable[Segment],
    metadata: TableMetadata,
    schema: Schema,
    columns: Collection[str] | None,
) -> pa.Table:
    """Return the partitions of the files in `segments`, in the order in which they come first.

    `schema` is that of the table, and `columns` what is asked for of it, in its order. The youngest
    snapshot, of those that are still known, that wrote any of its files says when a partition was
    last updated; its spec is that of such a file.

    Raises `CorruptManifest` for a partition value that its type does not hold.
    """
    type_ = next((f.type for f in schema.fields if f.name == "partition"), StructType(()))
    assert isinstance(type_, StructType)
    committed_at = {snap.snapshot_id: snap.timestamp_ms for snap in metadata.snapshots}
    # one that has no row gives the columns their types
    tuples: list[list[ArrowArray]] = [[pa.array([], arrow_type(f.type)) for f in type_.fields]]
    files = [_Files(*(np.zeros(0, dtype=np.int64) for _ in range(6)))]
    for segment in segments:
        try:
            tuples.append(partition_columns(segment, type_, slice(0, len(segment))))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as exc:
            raise CorruptManifest(
                f"manifest {segment.location}: a partition value is none of its type: {exc}"
            ) from exc
        files.append(_Files.of(segment, committed_at))
    values = [pa.concat_arrays(parts) for parts in zip(*tuples, strict=True)]
    all_files = _Files.concatenated(files)
    group, firsts = _grouped(values, len(all_files))
    counted = all_files.counted(group, len(firsts))
    fields = [f for f in schema.fields if columns is None or f.name in columns]
    arrays = [
        struct_of([column.take(pa.array(firsts)) for column in values], type_)
        if field.name == "partition"
        else counted[field.name].cast(arrow_type(field.type))
        for field in fields
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(Schema(tuple(fields))))


def _grouped(values: Sequence[ArrowArray], rows: int) -> tuple[Int64s, Int64s]:
    """Return the number of each row's group, and the first row of each: rows are of one group that
    have the same in all columns. Groups count in the order in which they come first."""
    group = np.zeros(rows, dtype=np.int64)
    for column in values:
        plain: Any = column.storage if isinstance(column, pa.ExtensionArray) else column
        if pa.types.is_null(plain.type):
            continue
        codes = plain.dictionary_encode(null_encoding="encode").indices.to_numpy()
        # at most as many as there are rows: their product would soon be more than 64 bits hold
        _, group = np.unique(group * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    _, firsts, group = np.unique(group, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[group], firsts[order]


@dataclass(frozen=True, slots=True)
class _Files:
    """What there is to count of files, a number a file. `committed_at` is in milliseconds, `_NEVER`
    where the snapshot is not known."""

    content: Int64s
    records: Int64s
    sizes: Int64s
    spec_ids: Int64s
    snapshot_ids: Int64s
    committed_at: Int64s

    def __len__(self) -> int:
        return len(self.content)

    @classmethod
    def of(cls, segment: Segment, committed_at: Mapping[int, int]) -> _Files:
        snapshots = segment.numbers(s.SNAPSHOT_ID)
        ids = _values(segment, s.SNAPSHOT_ID)
        distinct, places = np.unique(ids, return_inverse=True)
        times = np.array([committed_at.get(i, _NEVER) for i in distinct.tolist()], dtype=np.int64)
        when = times[places]
        if snapshots is not None and snapshots.valid is not None:
            when = np.where(snapshots.valid, when, _NEVER)
        return cls(
            _values(segment, s.CONTENT),
            _values(segment, s.RECORD_COUNT),
            _values(segment, s.SIZE_BYTES),
            np.full(len(segment), segment.spec_id, dtype=np.int64),
            ids,
            when,
        )

    @classmethod
    def concatenated(cls, files: Sequence[_Files]) -> _Files:
        return cls(
            np.concatenate([f.content for f in files]),
            np.concatenate([f.records for f in files]),
            np.concatenate([f.sizes for f in files]),
            np.concatenate([f.spec_ids for f in files]),
            np.concatenate([f.snapshot_ids for f in files]),
            np.concatenate([f.committed_at for f in files]),
        )

    def counted(self, group: Int64s, groups: int) -> dict[str, ArrowArray]:
        """Return the columns that count, with a number a group."""
        order = np.lexsort((self.spec_ids, self.committed_at, group))
        # the last file of each group; every group has one
        last = order[np.cumsum(np.bincount(group, minlength=groups)) - 1]
        committed_at = self.committed_at[last]
        is_unknown = committed_at == _NEVER
        of = {content: self.content == int(content) for content in Content}

        def total(values: Int64s, rows: Mask) -> ArrowArray:
            sums = np.zeros(groups, dtype=np.int64)
            np.add.at(sums, group[rows], values[rows])
            return pa.array(sums)

        ones = np.ones(len(self), dtype=np.int64)
        data, positions, equals = (of[content] for content in Content)
        return {
            "spec_id": pa.array(self.spec_ids[last]),
            "record_count": total(self.records, data),
            "file_count": total(ones, data),
            "total_data_file_size_in_bytes": total(self.sizes, data),
            "position_delete_record_count": total(self.records, positions),
            "position_delete_file_count": total(ones, positions),
            "equality_delete_record_count": total(self.records, equals),
            "equality_delete_file_count": total(ones, equals),
            "last_updated_at": pa.array(
                np.where(is_unknown, 0, committed_at) * 1000, mask=is_unknown
            ),
            "last_updated_snapshot_id": pa.array(self.snapshot_ids[last], mask=is_unknown),
        }


def _values(segment: Segment, field_id: int) -> Int64s:
    column = segment.numbers(field_id)
    if column is None:
        return np.zeros(len(segment), dtype=np.int64)
    return column.values.astype(np.int64)
