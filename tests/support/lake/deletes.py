"""The content of a position delete file.

Spec: "Position Delete Files".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from tests.support.lake.files import FileLayout, rows_to_arrow, write_parquet, write_rows
from tests.support.lake.manifests import Metrics
from tests.support.lake.schemas import FILE_PATH_ID, POS_ID, Json

ROW_ID_IN_DELETES = 2147483544

Delete: TypeAlias = tuple[str, int, Mapping[str, Any] | None]
"""A data file's location, a position in it, and the deleted row's values where they are stored."""


def write_positions(
    path: Path,
    deletes: Sequence[Delete],
    row_schema: Json | None,
    path_type: pa.DataType | None,
    layout: FileLayout,
) -> tuple[int, Metrics, tuple[int, ...]]:
    """Write deletes in the order given; return their number, metrics and split offsets.

    With `path_type` the locations are of that Arrow type (Parquet only), and have no bounds.
    """
    fields: list[Json] = [
        {"id": FILE_PATH_ID, "name": "file_path", "required": True, "type": "string"},
        {"id": POS_ID, "name": "pos", "required": True, "type": "long"},
    ]
    if row_schema is not None:
        struct = {"type": "struct", "fields": row_schema["fields"]}
        fields.append({"id": ROW_ID_IN_DELETES, "name": "row", "required": True, "type": struct})
    schema = {"type": "struct", "fields": fields}
    rows = [{"file_path": location, "pos": pos, "row": row} for location, pos, row in deletes]
    if path_type is None:
        if layout.metrics == "full":
            # bounds of whole locations, so that a planner can tell which data file is meant
            layout = replace(layout, metrics="truncate(100000)")
        return write_rows(path, schema, rows, layout)
    table = rows_to_arrow(schema, rows)
    column = table["file_path"].cast(path_type)
    table = table.set_column(0, table.schema.field(0).with_type(path_type), column)
    return write_parquet(path, table, {"fields": fields[1:]}, layout)
