"""Manifests of data files put together by hand: any bounds, any number of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from floeberg.protocol.files import ManifestFile
from tests.support.avro_container import container


def manifest_with(
    bounds: Callable[[int], Mapping[int, bytes]],
    entries: int,
    per_block: int = 1000,
    status: Callable[[int], int] = lambda i: 1,
    path: Callable[[int], str] = lambda i: f"s3://b/{i}.parquet",
    codec: str = "null",
) -> tuple[bytes, ManifestFile]:
    """Return a manifest of data files with lower bounds."""
    entry = {"type": "record", "name": "b", "fields": [_of(126, "int"), _of(127, "bytes")]}
    file = [_of(100, "string"), _of(101, "string"), _of(103, "long"), _of(104, "long")]
    file.append(_of(125, {"type": "array", "logicalType": "map", "items": entry}))
    data_file = {"type": "record", "name": "f", "fields": file}
    schema = {"type": "record", "name": "e", "fields": [_of(0, "int"), _of(2, data_file)]}
    records = [
        {
            "n0": status(i),
            "n2": {
                "n100": path(i),
                "n101": "PARQUET",
                "n103": i,
                "n104": i,
                "n125": [{"n126": k, "n127": v} for k, v in bounds(i).items()],
            },
        }
        for i in range(entries)
    ]
    raw = container(schema, records, codec=codec, records_per_block=per_block)
    return raw, ManifestFile("s3://b/m.avro", len(raw), 0, sequence_number=3)


def _of(field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": f"n{field_id}", "type": type_, "field-id": field_id}
