"""Data files and delete files, as a manifest describes them.

Spec: "Data File Fields".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from floeberg.protocol.types import Value


class FileFormat(StrEnum):
    PARQUET = "parquet"
    AVRO = "avro"
    ORC = "orc"
    PUFFIN = "puffin"


class Content(IntEnum):
    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class Metrics:
    """Statistics by field id. A count or bound that is absent is unknown, not zero.

    Bounds are Appendix D's binary form of the type that the column had when the file was written.
    """

    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


NO_METRICS = Metrics()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows.

    `location` is the path as the manifest spells it: opaque, never decoded. `partition` maps a
    partition field's id to its value (None is null) under spec `spec_id`. `data_sequence_number`
    and `first_row_id` are after inheritance; `first_row_id` is None where rows have no ids (tables
    before v3).
    """

    location: str
    format: FileFormat
    record_count: int
    size_bytes: int
    spec_id: int
    partition: Mapping[int, Value | None] = field(default_factory=dict)
    data_sequence_number: int = 0
    file_sequence_number: int | None = None
    first_row_id: int | None = None
    split_offsets: tuple[int, ...] = ()
    sort_order_id: int | None = None
    key_metadata: bytes | None = None
    metrics: Metrics = NO_METRICS


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A position delete file, an equality delete file, or a deletion vector inside a Puffin file.

    A deletion vector has format PUFFIN, content POSITION_DELETES, and `content_offset` and
    `content_size_bytes`: the blob's place. `equality_ids` are the ids of the columns that an
    equality delete compares.
    """

    location: str
    content: Content
    format: FileFormat
    record_count: int
    size_bytes: int
    spec_id: int
    partition: Mapping[int, Value | None] = field(default_factory=dict)
    data_sequence_number: int = 0
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_bytes: int | None = None
    key_metadata: bytes | None = None
    metrics: Metrics = NO_METRICS

    @property
    def is_deletion_vector(self) -> bool:
        return self.format is FileFormat.PUFFIN


class ManifestContent(IntEnum):
    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """What a manifest list knows of one partition field over all files of a manifest.

    `contains_nan` is None where it is unknown. Bounds are Appendix D's binary form, None where
    absent.
    """

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One line of a manifest list (spec: "Manifest Lists"). A count that is None is unknown.

    `partitions` has one summary a field of the spec `spec_id`, in order; empty when the list has
    none.
    """

    location: str
    length: int
    spec_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] = ()
    first_row_id: int | None = None
    key_metadata: bytes | None = None
