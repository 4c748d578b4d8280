"""All the deletes of a task, loaded and ready to apply.

A deletion vector takes the place of every position delete file for its data file. Which deletes
apply to which file was decided in planning.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import Content, DeleteFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import Storage
from floeberg.protocol.tasks import FileScanTask
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.deletes.cache import DeleteCache
from floeberg.worker.deletes.equality import KeySet
from floeberg.worker.deletes.positions import (
    NO_POSITIONS,
    Positions,
    load_position_deletes,
    union,
)
from floeberg.worker.deletes.vectors import load_deletion_vector
from floeberg.worker.files.opening import open_rows
from floeberg.worker.files.stored import walk
from floeberg.worker.projection.flat import FlatField
from floeberg.worker.projection.partition_values import identity_values
from floeberg.worker.projection.reading import project_file


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


@dataclass(frozen=True, slots=True)
class _KeyColumns:
    """The key columns of one equality delete file."""

    columns: tuple[ArrowArray, ...]

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for column in self.columns)


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
        cache: DeleteCache,
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
            if file.content is Content.EQUALITY_DELETES:
                by_keys.setdefault(file.equality_ids, []).append(file)
            else:
                positional.append(file)
        return TaskDeletes(
            self._positions(task.data_file.location, positional),
            tuple(self._equality(ids, files) for ids, files in by_keys.items()),
        )

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
        key = ("vector", *self._file_key(file), file.content_offset, file.content_size_bytes)
        return self._cache.get(
            key, lambda: load_deletion_vector(self._storage, file, self._verify_crc)
        ).positions

    def _position_file(self, file: DeleteFile, location: str) -> Positions:
        return self._cache.get(
            ("positions", *self._file_key(file)),
            lambda: load_position_deletes(self._storage, file, self._verify_crc),
        ).of(location)

    def _equality(
        self, equality_ids: tuple[int, ...], files: Sequence[DeleteFile]
    ) -> EqualityDeletes:
        if not equality_ids:
            raise CorruptDeletes(
                f"the equality delete file {files[0].location} names no key columns"
            )
        fields = tuple(self._key_field(field_id, files[0]) for field_id in equality_ids)
        identity = tuple((f.column.field_id, str(f.field.type)) for f in fields)
        key = ("keys", identity, equality_ids, *(self._file_key(file) for file in files))
        keys = self._cache.get(key, lambda: self._key_set(files, fields, identity))
        return EqualityDeletes(fields, keys)

    def _key_set(
        self, files: Sequence[DeleteFile], fields: tuple[FlatField, ...], identity: Hashable
    ) -> KeySet:
        loaded = [self._cached_key_columns(file, fields, identity) for file in files]
        return KeySet(
            [pa.concat_arrays([part.columns[i] for part in loaded]) for i in range(len(fields))]
        )

    def _cached_key_columns(
        self, file: DeleteFile, fields: tuple[FlatField, ...], identity: Hashable
    ) -> _KeyColumns:
        key = ("key columns", identity, *self._file_key(file))
        return self._cache.get(key, lambda: self._key_columns(file, fields))

    def _key_columns(self, file: DeleteFile, fields: tuple[FlatField, ...]) -> _KeyColumns:
        constants = identity_values(self._metadata, file)
        columns = [field.column for field in fields]
        parts: list[list[ArrowArray]] = [
            [pa.array([], arrow_type(field.field.type))] for field in fields
        ]
        with open_rows(
            self._storage, file, verify_crc=self._verify_crc, corrupt=CorruptDeletes
        ) as rows:
            stored = {column.field_id for column in walk(rows.columns)} | constants.keys()
            for field in fields:
                if field.field.field_id not in stored:
                    raise CorruptDeletes(
                        f"the equality delete file {file.location} lacks its key column"
                        f" {field.field.name!r} (id {field.field.field_id})"
                    )
            for arrays in project_file(rows, columns, file.location, CorruptDeletes, constants):
                for part, flat, array in zip(parts, fields, arrays, strict=True):
                    part.append(flat.flatten(array))
        return _KeyColumns(tuple(pa.concat_arrays(part) for part in parts))

    def _key_field(self, field_id: int, file: DeleteFile) -> FlatField:
        newest_first = sorted(self._metadata.schemas, key=lambda s: s.schema_id, reverse=True)
        for schema in (self._schema, *newest_first):
            if schema.find(field_id) is not None:
                return FlatField.of(schema, field_id)
        raise CorruptDeletes(
            f"the equality delete file {file.location} compares field {field_id},"
            " which no schema of the table has"
        )

    def _file_key(self, file: DeleteFile) -> tuple[Hashable, ...]:
        return (self._storage_id, file.location, file.size_bytes)
