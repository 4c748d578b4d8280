"""`manifests`: a row a manifest of a snapshot, as its manifest list tells of it.

Spec: "Manifest Lists".
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.civil_time import format_date
from floeberg.protocol.files import FieldSummary, ManifestContent, ManifestFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.transforms import Hour, Month, Transform, Year
from floeberg.protocol.types import BinaryType, FixedType, Type, Value
from floeberg.protocol.values import from_bytes, to_json
from floeberg.server.sql.metadata_tables.schemas import MANIFESTS


def manifests_table(manifests: Sequence[ManifestFile], metadata: TableMetadata) -> pa.Table:
    """Return the manifests in the order of the list; a count that it leaves out is null."""
    columns: dict[int, list[tuple[Transform, Type]]] = {}
    for spec_id in {manifest.spec_id for manifest in manifests}:
        spec = metadata.spec_by_id(spec_id)
        types = metadata.partition_type(spec).fields
        columns[spec_id] = [
            (field.transform, typed.type) for field, typed in zip(spec.fields, types, strict=True)
        ]
    rows = [_row(manifest, columns[manifest.spec_id]) for manifest in manifests]
    return pa.Table.from_pylist(rows, schema=arrow_schema(MANIFESTS))


def _row(manifest: ManifestFile, columns: Sequence[tuple[Transform, Type]]) -> dict[str, object]:
    counts = {
        "added": manifest.added_files_count,
        "existing": manifest.existing_files_count,
        "deleted": manifest.deleted_files_count,
    }
    is_data = manifest.content is ManifestContent.DATA
    return {
        "content": int(manifest.content),
        "path": manifest.location,
        "length": manifest.length,
        "partition_spec_id": manifest.spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        **{f"{k}_data_files_count": v if is_data else 0 for k, v in counts.items()},
        **{f"{k}_delete_files_count": 0 if is_data else v for k, v in counts.items()},
        "partition_summaries": [
            {
                "contains_null": summary.contains_null,
                "contains_nan": summary.contains_nan,
                "lower_bound": _text(summary.lower_bound, *column),
                "upper_bound": _text(summary.upper_bound, *column),
            }
            # a list may have more summaries than the spec has fields, or fewer
            for summary, column in zip(manifest.partitions, columns, strict=False)
            if isinstance(summary, FieldSummary)
        ],
    }


def _text(bound: bytes | None, transform: Transform, type_: Type) -> str | None:
    """Return a bound of a partition field for people, None for one that is no such value."""
    if bound is None:
        return None
    try:
        return partition_text(transform, type_, from_bytes(type_, bound))
    except ValueError:
        return None


def partition_text(transform: Transform, type_: Type, value: Value) -> str:
    """Return a partition's value as people write it.

    Raises ValueError for a value that the type does not hold.

    >>> from floeberg.protocol.types import IntType
    >>> partition_text(Hour(), IntType(), 420_000), partition_text(Month(), IntType(), -1)
    ('2017-11-30-00', '1969-12')
    """
    match transform, value:
        case Year(), int():
            return f"{1970 + value:04}"
        case Month(), int():
            return f"{1970 + value // 12:04}-{value % 12 + 1:02}"
        case Hour(), int():
            return f"{format_date(value // 24)}-{value % 24:02}"
        case _, bytes() if isinstance(type_, BinaryType | FixedType):
            return base64.b64encode(value).decode()
        case _, bool():
            return "true" if value else "false"
        case _:
            return str(to_json(type_, value))
