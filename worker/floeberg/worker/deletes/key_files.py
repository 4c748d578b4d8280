"""Read the key columns of equality delete files, in the table's types.

A key column may have been renamed or promoted since, or dropped from the schema that is read: it is
looked up in the table's other schemas then.
Spec: "Equality Delete Files".
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from floeberg.protocol.arrow import arrow_type
from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import DeleteFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import Storage
from floeberg.protocol.types import StructType, is_nested
from floeberg.worker.arrow import ArrowArray
from floeberg.worker.files.opening import open_rows
from floeberg.worker.files.rows import StoredFile
from floeberg.worker.files.stored import walk
from floeberg.worker.projection.flat import FlatField
from floeberg.worker.projection.partition_values import identity_values
from floeberg.worker.projection.reading import project_file


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The key columns of one file, or of several together."""

    columns: tuple[ArrowArray, ...]

    @property
    def size_bytes(self) -> int:
        return sum(column.nbytes for column in self.columns)


def key_fields(metadata: TableMetadata, schema: Schema, file: DeleteFile) -> tuple[FlatField, ...]:
    """Return the fields that `file` compares; `schema` is the one that is read.

    Raises `CorruptDeletes` when there is none, or one that no schema of the table has or that has
    many values in a row.
    """
    if not file.equality_ids:
        raise CorruptDeletes(f"the equality delete file {file.location} names no key columns")
    return tuple(_key_field(i, metadata, schema, file) for i in file.equality_ids)


def _key_field(
    field_id: int, metadata: TableMetadata, schema: Schema, file: DeleteFile
) -> FlatField:
    if schema.find(field_id) is not None:
        return _flat_field(field_id, schema, file)
    for other in sorted(metadata.schemas, key=lambda s: s.schema_id, reverse=True):
        if other.find(field_id) is not None:
            # dropped since: later files lack it, even if it was required
            return _flat_field(field_id, other, file).as_optional()
    raise CorruptDeletes(
        f"the equality delete file {file.location} compares field {field_id},"
        " which no schema of the table has"
    )


def _flat_field(field_id: int, schema: Schema, file: DeleteFile) -> FlatField:
    path = [schema.find(i) for i in schema.path(field_id)]
    types = [field.type for field in path if field is not None]
    if is_nested(types[-1]) or not all(isinstance(t, StructType) for t in types[:-1]):
        raise CorruptDeletes(
            f"the equality delete file {file.location} compares {schema.name_of(field_id)!r}"
            f" (id {field_id}), which is not one value a row: it is nested, or below a list or map"
        )
    return FlatField.of(schema, field_id)


def load_key_columns(
    storage: Storage,
    metadata: TableMetadata,
    file: DeleteFile,
    fields: Sequence[FlatField],
    verify_crc: bool,
) -> KeyColumns:
    """Read the columns of `fields` out of an equality delete file of any format.

    Raises `CorruptDeletes` when the file cannot be decoded or lacks one, and `MissingFile`.
    """
    constants = identity_values(metadata, file)
    columns = [field.as_optional().column for field in fields]
    parts: list[list[ArrowArray]] = [
        [pa.array([], arrow_type(field.field.type))] for field in fields
    ]
    with open_rows(
        storage,
        file,
        mapping=metadata.name_mapping(),
        verify_crc=verify_crc,
        corrupt=CorruptDeletes,
    ) as rows:
        _check_stored(file, rows, fields, constants.keys())
        for arrays in project_file(rows, columns, file.location, CorruptDeletes, constants):
            for part, flat, array in zip(parts, fields, arrays, strict=True):
                part.append(flat.flatten(array))
    return KeyColumns(tuple(pa.concat_arrays(part) for part in parts))


def _check_stored(
    file: DeleteFile, rows: StoredFile, fields: Sequence[FlatField], known: Set[int]
) -> None:
    """Refuse a file without a key column: as null it would delete rows that it does not mean."""
    stored = {column.field_id for column in walk(rows.columns)}
    for field in (flat.field for flat in fields):
        if field.field_id not in stored and field.field_id not in known:
            raise CorruptDeletes(
                f"the equality delete file {file.location} lacks its key column"
                f" {field.name!r} (id {field.field_id})"
            )


def join_keys(parts: Sequence[KeyColumns]) -> KeyColumns:
    """Return the keys of all parts, of the same fields, as one."""
    columns = zip(*(part.columns for part in parts), strict=True)
    return KeyColumns(tuple(pa.concat_arrays(column) for column in columns))
