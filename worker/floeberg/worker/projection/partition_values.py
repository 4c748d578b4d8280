"""Columns whose value the partition holds, so that a file need not store them."""

from __future__ import annotations

from collections.abc import Mapping

from floeberg.protocol.files import DataFile, DeleteFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.transforms import Identity
from floeberg.protocol.types import Value


def identity_values(
    metadata: TableMetadata, file: DataFile | DeleteFile
) -> dict[int, Value | None]:
    """Return the values of `file`'s identity partition fields by the id of their source column.

    A field that the partition tuple lacks is left out; one that is null there is None.
    Spec: "Column Projection".
    """
    partition: Mapping[int, Value | None] = file.partition
    if not partition:
        return {}
    return {
        field.source_id: partition[field.field_id]
        for field in metadata.spec_by_id(file.spec_id).fields
        if isinstance(field.transform, Identity) and field.field_id in partition
    }
