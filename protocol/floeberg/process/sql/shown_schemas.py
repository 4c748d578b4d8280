"""The schema of an input as DuckDB gets it, where a statement is bound and where it is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.suggestions import quoted

NO_COLUMN = "no_column"
"""What stands for the columns of an input without any, and no statement may name."""


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """Return `schema` as DuckDB gets it: without metadata, by which it would take a variant or a
    geometry for types that it may lack; it sees their bytes. There is at least one column, since a
    table of DuckDB must have one.

    Raises `UnsupportedSql` for columns that differ in case alone: DuckDB would give one of them
    another name.
    """
    _check_names(schema.names)
    fields = [pa.field(field.name, _plain(field.type), field.nullable) for field in schema]
    return pa.schema(fields or [pa.field(NO_COLUMN, pa.null())])


def _check_names(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise UnsupportedSql(
                f"columns {quoted(other)} and {quoted(name)} differ in case alone, which SQL does"
                " not tell apart; read the table by a scan"
            )


def _plain(type_: Any) -> pa.DataType:
    """Return a type whose fields have no metadata."""
    if isinstance(type_, pa.BaseExtensionType) or not pa.types.is_nested(type_):
        return type_
    if pa.types.is_struct(type_):
        return pa.struct([_plain_field(type_.field(at)) for at in range(type_.num_fields)])
    if pa.types.is_map(type_):
        # the stubs don't know that fields are taken for types
        key: Any = _plain_field(type_.key_field)
        item: Any = _plain_field(type_.item_field)
        return pa.map_(key, item)
    if pa.types.is_large_list(type_):
        return pa.large_list(_plain_field(type_.value_field))
    if pa.types.is_list(type_):
        return pa.list_(_plain_field(type_.value_field))
    return type_  # Iceberg has no other


def _plain_field(field: Any) -> pa.Field[Any]:
    return pa.field(field.name, _plain(field.type), field.nullable)
