"""All the deletes of a task, loaded and ready to apply.

A deletion vector takes the place of every position delete file for its data file. Which deletes
apply to which file was decided in planning.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from floeberg.process.storage.abandonable import Leavable
from floeberg.process.storage.ranges import Range
from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import Content, DeleteFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.name_mapping import PROPERTY as NAME_MAPPING
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.worker.cache import LoadingCache
from floeberg.worker.deletes.equality import KeySet
from floeberg.worker.deletes.key_files import KeyColumns, join_keys, key_fields, load_key_columns
from floeberg.worker.deletes.matched import MatchedRows, Matching
from floeberg.worker.deletes.positions import (
    NO_POSITIONS,
    Positions,
    load_position_deletes,
    union,
)
from floeberg.worker.deletes.vectors import load_deletion_vector, vector_range
from floeberg.worker.files.opening import first_range
from floeberg.worker.projection.flat import FlatField


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """Deleted keys over `fields`, the columns of the table that they compare."""

    fields: tuple[FlatField, ...]
    keys: KeySet


@dataclass(frozen=True, slots=True)
class TaskDeletes:
    """What to delete from one data file: sorted distinct positions, and rows with equal keys."""

    positions: Positions = field(default_factory=lambda: NO_POSITIONS)
    equality: tuple[EqualityDeletes, ...] = ()
    matching: Matching | None = None
    """Takes what `equality` matches, where that is not known yet."""


class DeleteLoader:
    """Loads the deletes of one table's tasks through a cache that other tables share.

    `storage_id` tells apart storages in which one location may mean different files. `schema` is
    the schema that is read; a key that it no longer has is looked up in the table's other schemas.
    """

    def __init__(
        self,
        storage: Storage,
        storage_id: Hashable,
        metadata: TableMetadata,
        schema: Schema,
        cache: LoadingCache,
        verify_crc: bool,
    ) -> None:
        self._storage = storage
        self._storage_id = storage_id
        self._metadata = metadata
        self._schema = schema
        self._cache = cache
        self._verify_crc = verify_crc

    def load(self, task: FileScanTask) -> TaskDeletes:
        """Return the task's deletes. Raises `CorruptDeletes`, `MissingFile` and `Unsupported`."""
        by_keys: dict[tuple[int, ...], list[DeleteFile]] = {}
        positional: list[DeleteFile] = []
        for file in task.delete_files:
            if _is_positional(file):
                positional.append(file)
            else:
                by_keys.setdefault(file.equality_ids, []).append(file)
        positions = self._positions(task.data_file.location, positional)
        if not by_keys:
            return TaskDeletes(positions)
        key = self._matched_key(task)
        known = self._cache.find(key)
        if isinstance(known, MatchedRows):
            return TaskDeletes(union([positions, known.positions]))
        equality = tuple(self._equality(files) for files in by_keys.values())
        matching = Matching(task.data_file.record_count, lambda found: self._keep(key, found))
        return TaskDeletes(positions, equality, matching)

    def first_ranges(self, task: FileScanTask) -> list[tuple[str, Range]]:
        """Return what loading the task's deletes fetches before all else, of files that are not in
        the cache; raises nothing."""
        has_vector = any(file.is_deletion_vector for file in task.delete_files)
        are_matched = self._cache.holds(self._matched_key(task))
        found: list[tuple[str, Range]] = []
        for file in task.delete_files:
            is_replaced = has_vector and _is_positional(file) and not file.is_deletion_vector
            if is_replaced or (are_matched and not _is_positional(file)) or self._is_kept(file):
                continue
            part = vector_range(file) if file.is_deletion_vector else first_range(file)
            if part is not None:
                found.append((file.location, part))
        return found

    def _is_kept(self, file: DeleteFile) -> bool:
        if file.is_deletion_vector:
            return self._cache.holds(self._vector_key(file))
        if _is_positional(file):
            return self._cache.holds(self._positions_key(file))
        try:
            types = _types(key_fields(self._metadata, self._schema, file))
        except CorruptDeletes:
            return True  # nor is it loaded
        return self._cache.holds(self._columns_key(file, types))

    def _positions(self, location: str, files: Sequence[DeleteFile]) -> Positions:
        vectors = [file for file in files if file.is_deletion_vector]
        if len(vectors) > 1:
            raise CorruptDeletes(
                f"{location} has {len(vectors)} deletion vectors, in"
                f" {' and '.join(v.location for v in vectors)}; the spec allows one"
            )
        if vectors:
            return self._vector(location, vectors[0])
        return union([self._position_file(file, location) for file in files])

    def _vector(self, location: str, file: DeleteFile) -> Positions:
        if file.referenced_data_file not in (None, location):
            raise CorruptDeletes(
                f"a deletion vector of {file.referenced_data_file} in {file.location}"
                f" was planned for {location}"
            )
        return self._cache.get(
            self._vector_key(file),
            lambda: load_deletion_vector(self._storage, file, self._verify_crc),
            self._check,
        ).positions

    def _position_file(self, file: DeleteFile, location: str) -> Positions:
        return self._cache.get(
            self._positions_key(file),
            lambda: load_position_deletes(self._storage, file, self._verify_crc),
            self._check,
        ).of(location)

    def _equality(self, files: Sequence[DeleteFile]) -> EqualityDeletes:
        """Return the keys of files that all compare the same fields."""
        fields = key_fields(self._metadata, self._schema, files[0])
        types = _types(fields)
        key = ("keys", types, *(self._file_key(file) for file in files))
        return EqualityDeletes(
            fields, self._cache.get(key, lambda: self._key_set(files, fields, types), self._check)
        )

    def _key_set(
        self, files: Sequence[DeleteFile], fields: Sequence[FlatField], types: Hashable
    ) -> KeySet:
        parts = [self._key_columns(file, fields, types) for file in files]
        return KeySet(join_keys(parts).columns)

    def _key_columns(
        self, file: DeleteFile, fields: Sequence[FlatField], types: Hashable
    ) -> KeyColumns:
        return self._cache.get(
            self._columns_key(file, types),
            lambda: load_key_columns(self._storage, self._metadata, file, fields, self._verify_crc),
            self._check,
        )

    def _check(self) -> None:
        if isinstance(self._storage, Leavable):
            self._storage.check()

    def _keep(self, key: Hashable, found: MatchedRows) -> None:
        self._cache.get(key, lambda: found)

    def _matched_key(self, task: FileScanTask) -> Hashable:
        """Return what decides which rows of the task's file its equality deletes match: the bytes
        of all the files, and what the table says of columns that they lack."""
        file = task.data_file
        table = (self._metadata.table_uuid, self._schema.schema_id)
        mapping = self._metadata.properties.get(NAME_MAPPING)
        deletes = [f for f in task.delete_files if not _is_positional(f)]
        keys = tuple((f.equality_ids, *self._file_key(f)) for f in deletes)
        return ("matched", self._storage_id, table, mapping, file.location, file.size_bytes, keys)

    def _vector_key(self, file: DeleteFile) -> Hashable:
        return ("vector", *self._file_key(file), file.content_offset, file.content_size_bytes)

    def _positions_key(self, file: DeleteFile) -> Hashable:
        return ("positions", *self._file_key(file))

    def _columns_key(self, file: DeleteFile, types: Hashable) -> Hashable:
        return ("key columns", types, *self._file_key(file))

    def _file_key(self, file: DeleteFile) -> tuple[Hashable, ...]:
        return (self._storage_id, file.location, file.size_bytes)


def _is_positional(file: DeleteFile) -> bool:
    return file.content is not Content.EQUALITY_DELETES


def _types(fields: Sequence[FlatField]) -> Hashable:
    """What is kept is in the table's types, which may differ from one schema to another."""
    return tuple((flat.field.field_id, str(flat.field.type)) for flat in fields)
