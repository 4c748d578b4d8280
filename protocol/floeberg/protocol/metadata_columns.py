"""Columns that every table has without declaring them: where a row is stored, and its lineage.

Their ids are reserved, and so are their names unless a table has a column so called.
Spec: "Reserved Field IDs", "Partition Statistics" (for the unified partition type).
"""

from __future__ import annotations

from floeberg.protocol.errors import Unsupported
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.partitioning import PartitionField
from floeberg.protocol.transforms import Void
from floeberg.protocol.types import (
    BooleanType,
    IntType,
    LongType,
    NestedField,
    StringType,
    StructType,
    Type,
)

FILE = NestedField(
    2147483646,
    "_file",
    StringType(),
    required=True,
    doc="path of the file that stores the row",
)
POS = NestedField(
    2147483645,
    "_pos",
    LongType(),
    required=True,
    doc="place of the row in its file, from 0",
)
DELETED = NestedField(
    2147483644,
    "_deleted",
    BooleanType(),
    required=True,
    doc="whether the row has been deleted",
)
SPEC_ID = NestedField(
    2147483643,
    "_spec_id",
    IntType(),
    required=True,
    doc="partition spec of the row's file",
)
PARTITION_ID = 2147483642
PARTITION_NAME = "_partition"
ROW_ID = NestedField(2147483540, "_row_id", LongType(), doc="the row's id for as long as it lives")
LAST_UPDATED_SEQUENCE_NUMBER = NestedField(
    2147483539,
    "_last_updated_sequence_number",
    LongType(),
    doc="sequence number of the commit that last changed the row",
)

DELETE_FILE_PATH_ID = 2147483546
"""Field id of `file_path` in a position delete file."""
DELETE_POS_ID = 2147483545
"""Field id of `pos` in a position delete file."""

PLAIN_COLUMNS = (FILE, POS, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
_BY_NAME = {f.name: f for f in PLAIN_COLUMNS}


def metadata_column(name: str, metadata: TableMetadata) -> NestedField | None:
    """Return the metadata column called exactly `name`, or None."""
    return partition_column(metadata) if name == PARTITION_NAME else _BY_NAME.get(name)


def partition_column(metadata: TableMetadata) -> NestedField:
    """Return `_partition`: a struct over the fields of all the table's specs, by field id.

    A field has the name that it has in the newest spec. Where two fields have one name (one was
    dropped, then another added) the later id is appended, since rows could not be told by name
    otherwise. Raises `Unsupported` when two specs mean different things by one id, which old v1
    tables may.
    """
    merged: dict[int, tuple[PartitionField, Type]] = {}
    names: dict[int, str] = {}
    for spec in sorted(metadata.partition_specs, key=lambda s: s.spec_id):
        types = metadata.partition_type(spec).fields
        for field, typed in zip(spec.fields, types, strict=True):
            # v1 renames a dropped field when its name is used again
            names[field.field_id] = field.name
            known = merged.get(field.field_id)
            if known is None or isinstance(known[0].transform, Void):
                merged[field.field_id] = (field, typed.type)
            elif isinstance(field.transform, Void):
                continue
            elif (known[0].source_ids, known[0].transform) == (
                field.source_ids,
                field.transform,
            ):
                merged[field.field_id] = (field, typed.type)
            else:
                raise Unsupported(
                    f"{PARTITION_NAME}: the table's specs use partition field id {field.field_id}"
                    f" both for {known[0].name!r} and for {field.name!r}"
                )
    taken: set[str] = set()
    fields = []
    for field_id, (_, type_) in sorted(merged.items()):
        name = names[field_id]
        if name in taken:
            name = f"{name}_{field_id}"
        taken.add(name)
        fields.append(NestedField(field_id, name, type_))
    return NestedField(
        PARTITION_ID,
        PARTITION_NAME,
        StructType(tuple(fields)),
        doc="partition of the row's file",
    )
