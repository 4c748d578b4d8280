"""Decode manifest lists and manifests, and let entries inherit what their manifest knows.

Everything is found by field id: names changed over the years, and version 1 files lack half of the
fields. Spec: "Manifests", "Manifest Lists", "Sequence Number Inheritance", "First Row ID
Inheritance".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeVar

from floeberg.protocol.errors import CorruptDeletes, CorruptManifest, Unsupported
from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FieldSummary,
    FileFormat,
    ManifestContent,
    ManifestFile,
    Metrics,
)
from floeberg.protocol.manifests.avro import (
    AvroFile,
    Record,
    find_field,
    key,
    read_avro,
)
from floeberg.protocol.manifests.values import Convert, partition_converters
from floeberg.protocol.types import Json, Value

T = TypeVar("T")


class EntryStatus(IntEnum):
    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file of a manifest, live if nothing else is said.

    `snapshot_id` is the snapshot that added it, None where nothing says.
    """

    status: EntryStatus
    snapshot_id: int | None
    file: DataFile | DeleteFile


def read_manifest_list(raw: bytes, where: str) -> list[ManifestFile]:
    """Return the manifests that a manifest list names, in its order.

    `where` is the list's location, for messages. Raises `CorruptManifest`.
    """
    role = f"manifest list {where}"
    return [_manifest_file(_Fields(r, role)) for r in read_avro(raw, role).records()]


def describe_manifest(raw: bytes, location: str) -> ManifestFile:
    """Return what a manifest list would say of a manifest that is named in table metadata itself.

    Version 1 allows that. The facts come from the manifest's header; no count or summary is known.
    """
    file = read_avro(raw, f"manifest {location}")
    spec_id = file.text("partition-spec-id") or "0"
    if not spec_id.isdecimal():
        raise CorruptManifest(f"{file.where} states the partition spec id {spec_id!r}")
    deletes = file.text("content") == "deletes"
    content = ManifestContent.DELETES if deletes else ManifestContent.DATA
    return ManifestFile(location, len(raw), int(spec_id), content)


def read_manifest(raw: bytes, manifest: ManifestFile) -> list[ManifestEntry]:
    """Return the live entries of a manifest in file order, with what they inherit from `manifest`.

    Entries marked DELETED are history: they are left out (see `read_deleted_entries`), and take
    part in no inheritance. Raises
    `CorruptManifest` for a manifest that is cut short, cannot be decoded or contradicts the spec,
    `CorruptDeletes` for a delete file without what applying it needs, and `Unsupported` for a file
    format that is none of Iceberg's.
    """
    role = f"manifest {manifest.location}"
    file = read_avro(raw, role)
    check_header(file, manifest)
    decode = _EntryDecoder(file, manifest)
    entries = []
    for record in file.records():
        entry = decode(_Fields(record, role))
        if entry is not None:
            entries.append(entry)
    check_whole(raw, manifest, len(entries))
    return entries


def read_deleted_entries(raw: bytes, manifest: ManifestFile) -> list[ManifestEntry]:
    """Return the entries of a manifest that are marked DELETED, in file order: of these,
    `snapshot_id` is the snapshot that deleted the file.

    Their rows have no ids any more, so a first row id is None. Raises as `read_manifest` does, but
    for a manifest that is cut short, which only that can tell.
    """
    role = f"manifest {manifest.location}"
    file = read_avro(raw, role)
    check_header(file, manifest)
    decode = _EntryDecoder(file, replace(manifest, first_row_id=None), EntryStatus.DELETED)
    entries = (decode(_Fields(record, role)) for record in file.records())
    return [entry for entry in entries if entry is not None]


class _Fields:
    """The fields of one decoded record by id, checked for the type that the spec gives them."""

    __slots__ = ("_record", "where")

    def __init__(self, record: Record, where: str) -> None:
        self._record = record
        self.where = where

    def optional(self, field_id: int, type_: type[T]) -> T | None:
        value = self._record.get(key(field_id))
        if value is not None and not isinstance(value, type_):
            raise CorruptManifest(
                f"{self.where}: field {field_id} holds {value!r}, which is no {type_.__name__}"
            )
        return value

    def required(self, field_id: int, type_: type[T]) -> T:
        value = self.optional(field_id, type_)
        if value is None:
            raise CorruptManifest(f"{self.where}: the required field {field_id} is missing")
        return value

    def record(self, field_id: int) -> _Fields:
        return _Fields(self.required(field_id, dict), self.where)

    def numbers(self, field_id: int) -> tuple[int, ...]:
        numbers = tuple(self.optional(field_id, list) or ())
        if not all(type(n) is int for n in numbers):
            raise CorruptManifest(f"{self.where}: field {field_id} is not a list of numbers")
        return numbers

    def by_column(self, field_id: int, type_: type[T]) -> Mapping[int, T]:
        """Return a map from column id to value, stored as an array; empty when absent."""
        entries = self.optional(field_id, list)
        if not entries:
            return {}
        try:
            found = {e["key"]: e["value"] for e in entries if e["value"] is not None}
        except (KeyError, TypeError) as exc:
            raise CorruptManifest(f"{self.where}: field {field_id} is not a map") from exc
        if not all(type(k) is int and type(v) is type_ for k, v in found.items()):
            raise CorruptManifest(f"{self.where}: field {field_id} is not a map of its type")
        return found


def _manifest_file(r: _Fields) -> ManifestFile:
    content = ManifestContent(1 if r.optional(517, int) == 1 else 0)
    summaries = r.optional(507, list) or ()
    sequence_number = r.optional(515, int) or 0
    min_sequence_number = r.optional(516, int) or 0
    if min_sequence_number > sequence_number:
        # deletes go by these numbers: believing the wrong one would bring deleted rows back
        raise CorruptManifest(
            f"{r.where}: a manifest of sequence number {sequence_number} has files of"
            f" {min_sequence_number} and later"
        )
    return ManifestFile(
        location=r.required(500, str),
        length=r.required(501, int),
        spec_id=r.required(502, int),
        content=content,
        sequence_number=sequence_number,
        min_sequence_number=min_sequence_number,
        added_snapshot_id=r.optional(503, int),
        added_files_count=r.optional(504, int),
        existing_files_count=r.optional(505, int),
        deleted_files_count=r.optional(506, int),
        added_rows_count=r.optional(512, int),
        existing_rows_count=r.optional(513, int),
        deleted_rows_count=r.optional(514, int),
        partitions=tuple(_summary(_Fields(s, r.where)) for s in summaries),
        first_row_id=r.optional(520, int) if content is ManifestContent.DATA else None,
        key_metadata=r.optional(519, bytes),
    )


def check_header(file: AvroFile, manifest: ManifestFile) -> None:
    """Refuse a manifest whose header contradicts what the manifest list says of it: by the wrong
    spec or content, deletes would not find their data files.
    """
    stated = (
        ("partition-spec-id", str(manifest.spec_id)),
        ("content", "deletes" if manifest.content is ManifestContent.DELETES else "data"),
    )
    for name, listed in stated:
        found = file.text(name)
        if found is not None and found != listed:
            raise CorruptManifest(
                f"{file.where} states {name} {found!r}, and the manifest list {listed!r}"
            )


def check_whole(raw: bytes, manifest: ManifestFile, live_entries: int) -> None:
    """Refuse a manifest that was cut between two blocks, which Avro itself takes for the end.

    A file shorter than the manifest list says is believed only where the list's counts bear it out:
    some writers state a wrong length.
    """
    added, existing = manifest.added_files_count, manifest.existing_files_count
    counts_agree = added is not None and existing is not None and added + existing == live_entries
    if len(raw) >= manifest.length or counts_agree:
        return
    raise CorruptManifest(
        f"manifest {manifest.location} has {len(raw)} bytes and {live_entries} live files, and the"
        f" manifest list says {manifest.length} bytes"
    )


def _summary(r: _Fields) -> FieldSummary:
    return FieldSummary(
        contains_null=r.required(509, bool),
        contains_nan=r.optional(518, bool),
        lower_bound=r.optional(510, bytes),
        upper_bound=r.optional(511, bytes),
    )


def sequence_rules(file: AvroFile) -> tuple[bool, bool]:
    """Return whether a manifest's entries can state a sequence number, and whether it says that it
    is of version 1 (whose entries have the number 0)."""
    has_sequence = find_field(file.schema, 3) is not None
    return has_sequence, not has_sequence and file.text("format-version") == "1"


def partition_schema(file: AvroFile) -> Json:
    """Return the writer's schema of partition tuples, None where it has none."""
    data_file = find_field(file.schema, 2)
    partition = find_field(data_file["type"], 102) if data_file else None
    return partition["type"] if partition else None


class _EntryDecoder:
    """Turns the records of one manifest into entries.

    It carries the row id that is next to be given out, so records go through it in file order.
    Those that are not of one of the statuses `wanted` are None.
    """

    def __init__(self, file: AvroFile, manifest: ManifestFile, *wanted: EntryStatus) -> None:
        self._wanted = wanted or (EntryStatus.EXISTING, EntryStatus.ADDED)
        self._where = file.where
        self._manifest = manifest
        self._has_sequence, self._is_v1 = sequence_rules(file)
        self._next_row_id = manifest.first_row_id
        self._partition = _partition_reader(file)

    def __call__(self, r: _Fields) -> ManifestEntry | None:
        status = _enum(EntryStatus, r.required(0, int), self._where)
        if status not in self._wanted:
            return None
        snapshot_id = r.optional(1, int)
        if snapshot_id is None:
            snapshot_id = self._manifest.added_snapshot_id
        inner = r.record(2)
        location = inner.required(100, str)
        sequence = self._inherited(r.optional(3, int), status)
        if sequence is None:
            raise CorruptManifest(
                f"{self._where}: {location} is marked {status.name} and has no sequence number"
            )
        content = _enum(Content, inner.optional(134, int) or 0, self._where)
        if (content is Content.DATA) != (self._manifest.content is ManifestContent.DATA):
            kind = self._manifest.content.name.lower()
            raise CorruptManifest(
                f"{self._where} is a manifest of {kind} and holds {content.name} {location}"
            )
        if content is Content.DATA:
            file_sequence = self._inherited(r.optional(4, int), status)
            data = self._data_file(inner, location, sequence, file_sequence)
            return ManifestEntry(status, snapshot_id, data)
        deletes = self._delete_file(inner, location, sequence, content)
        return ManifestEntry(status, snapshot_id, deletes)

    def _inherited(self, own: int | None, status: EntryStatus) -> int | None:
        """Return a sequence number after inheritance; None where the entry had to state it."""
        if own is not None:
            return own
        if self._is_v1:
            return 0
        if status is EntryStatus.ADDED:
            return self._manifest.sequence_number
        # version 1 has no numbers; its oldest manifests do not even state their version
        is_old = self._manifest.sequence_number == 0 or not self._has_sequence
        return 0 if is_old else None

    def _data_file(
        self, r: _Fields, location: str, sequence: int, file_sequence: int | None
    ) -> DataFile:
        record_count = r.required(103, int)
        return DataFile(
            location=location,
            format=_file_format(r.required(101, str), location),
            record_count=record_count,
            size_bytes=r.required(104, int),
            spec_id=self._manifest.spec_id,
            partition=self._partition(r),
            data_sequence_number=sequence,
            file_sequence_number=file_sequence,
            first_row_id=self._first_row_id(r.optional(142, int), record_count),
            split_offsets=r.numbers(132),
            sort_order_id=r.optional(140, int),
            key_metadata=r.optional(131, bytes),
            metrics=_metrics(r),
        )

    def _first_row_id(self, own: int | None, record_count: int) -> int | None:
        """Return the file's own id, else the next of the manifest's; None when that has none.

        The manifest list of a snapshot from before v3 assigns no ids, and then no row has one.
        """
        if self._next_row_id is None or own is not None:
            return None if self._next_row_id is None else own
        assigned = self._next_row_id
        self._next_row_id += max(record_count, 0)
        return assigned

    def _delete_file(
        self, r: _Fields, location: str, sequence: int, content: Content
    ) -> DeleteFile:
        deletes = DeleteFile(
            location=location,
            content=content,
            format=_file_format(r.required(101, str), location),
            record_count=r.required(103, int),
            size_bytes=r.required(104, int),
            spec_id=self._manifest.spec_id,
            partition=self._partition(r),
            data_sequence_number=sequence,
            equality_ids=r.numbers(135),
            referenced_data_file=r.optional(143, str),
            content_offset=r.optional(144, int),
            content_size_bytes=r.optional(145, int),
            key_metadata=r.optional(131, bytes),
            metrics=_metrics(r),
        )
        if content is Content.EQUALITY_DELETES and not deletes.equality_ids:
            raise CorruptDeletes(
                f"{self._where}: equality delete file {location} names no column to compare"
            )
        if deletes.is_deletion_vector and None in (
            deletes.referenced_data_file,
            deletes.content_offset,
            deletes.content_size_bytes,
        ):
            raise CorruptDeletes(
                f"{self._where}: deletion vector in {location} lacks its data file, offset or size"
            )
        return deletes


def _partition_reader(
    file: AvroFile,
) -> Callable[[_Fields], Mapping[int, Value | None]]:
    """Return what reads the partition tuple of an entry's file, by partition field id."""
    try:
        converters = tuple(partition_converters(partition_schema(file)).items())
    except ValueError as exc:
        raise CorruptManifest(f"{file.where} cannot be decoded: {exc}") from exc

    def read(r: _Fields) -> Mapping[int, Value | None]:
        record = r.optional(102, dict)
        if not record:
            return {}
        try:
            return {i: _converted(convert, record[key(i)]) for i, convert in converters}
        except (ValueError, TypeError) as exc:
            raise CorruptManifest(f"{file.where}: a partition value is malformed: {exc}") from exc

    return read


def _converted(convert: Convert | None, raw: Any) -> Value | None:
    if raw is None or convert is None:
        value: Value | None = raw
        return value
    return convert(raw)


def _metrics(r: _Fields) -> Metrics:
    return Metrics(
        column_sizes=r.by_column(108, int),
        value_counts=r.by_column(109, int),
        null_value_counts=r.by_column(110, int),
        nan_value_counts=r.by_column(137, int),
        lower_bounds=r.by_column(125, bytes),
        upper_bounds=r.by_column(128, bytes),
    )


E_ = TypeVar("E_", bound=IntEnum)


def _enum(kind: type[E_], number: int, where: str) -> E_:
    try:
        return kind(number)
    except ValueError as exc:
        raise CorruptManifest(f"{where}: {number} is no {kind.__name__}") from exc


def _file_format(name: str, location: str) -> FileFormat:
    try:
        return FileFormat(name.lower())
    except ValueError as exc:
        raise Unsupported(f"{location} has the file format {name!r}") from exc
