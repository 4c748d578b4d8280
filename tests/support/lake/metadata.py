"""Table metadata as JSON: how it starts, where it stands, and how it changes.

Spec: "Table Metadata", "File System Tables".
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.lake import schemas
from tests.support.lake.partitions import spec_fields
from tests.support.lake.schemas import Json


def first_metadata(
    format_version: int,
    location: str,
    schema: Json,
    spec: Sequence[Json],
    properties: Mapping[str, str],
    now: int,
) -> Json:
    """Return the metadata of a table without snapshots; its UUID comes from its location."""
    fields = spec_fields(schema, spec)
    metadata: Json = {
        "format-version": format_version,
        "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, location)),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": now,
        "last-column-id": schemas.highest_id(schema),
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "last-partition-id": max((f["field-id"] for f in fields), default=999),
        "properties": dict(properties),
        "current-snapshot-id": -1,
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    if format_version >= 2:
        metadata["refs"] = {}
    if format_version >= 3:
        metadata["next-row-id"] = 0
        metadata["current-snapshot-id"] = None
    return metadata


def current_schema(metadata: Json) -> Json:
    wanted = metadata["current-schema-id"]
    return next(s for s in metadata["schemas"] if s["schema-id"] == wanted)


def with_v1_forms(metadata: Json) -> Json:
    """Return v1's metadata with the current schema and spec in their old places too."""
    wanted = metadata["default-spec-id"]
    spec = next(s for s in metadata["partition-specs"] if s["spec-id"] == wanted)
    out = {**metadata, "schema": current_schema(metadata), "partition-spec": spec["fields"]}
    del out["last-sequence-number"]
    return out


def add_schema(metadata: Json, schema: Json) -> int:
    """Make `schema` the current one, in place; return its id."""
    schema_id = 1 + max(int(s["schema-id"]) for s in metadata["schemas"])
    metadata["schemas"].append({**schema, "type": "struct", "schema-id": schema_id})
    metadata["current-schema-id"] = schema_id
    metadata["last-column-id"] = max(metadata["last-column-id"], schemas.highest_id(schema))
    return schema_id


def add_spec(metadata: Json, fields: Sequence[Json]) -> int:
    """Add a partition spec in place, not as the default; return its id."""
    known = {
        (f.get("source-id"), f["transform"]): f["field-id"]
        for s in metadata["partition-specs"]
        for f in s["fields"]
    }
    new: list[Json] = []
    for given in fields:
        next_id = metadata["last-partition-id"] + 1
        (field,) = spec_fields(current_schema(metadata), [given], next_id)
        if not isinstance(given, dict):
            field["field-id"] = known.get((field["source-id"], field["transform"]), next_id)
        metadata["last-partition-id"] = max(metadata["last-partition-id"], field["field-id"])
        new.append(field)
    spec_id = 1 + max(int(s["spec-id"]) for s in metadata["partition-specs"])
    metadata["partition-specs"].append({"spec-id": spec_id, "fields": new})
    return spec_id


def point(metadata: Json, name: str, kind: str, snapshot_id: int, now: int) -> None:
    """Point a ref at a snapshot, in place; `main` moves the current snapshot as well."""
    if name == "main":
        metadata["current-snapshot-id"] = snapshot_id
        log = metadata.setdefault("snapshot-log", [])
        log.append({"timestamp-ms": now, "snapshot-id": snapshot_id})
        if metadata["format-version"] == 1:
            return
    old = metadata.setdefault("refs", {}).get(name, {})
    metadata["refs"][name] = {**old, "snapshot-id": snapshot_id, "type": kind}


def current_metadata(directory: Path) -> Path:
    """Return the metadata file that the version hint names, else that of the highest version."""
    folder = directory / "metadata"
    hint = folder / "version-hint.text"
    files = [p for p in folder.iterdir() if re.search(r"\.metadata\.json(\.gz)?$", p.name)]
    if hint.exists():
        wanted = int(hint.read_text())
        files = [p for p in files if version_of(p) == wanted]
    return max(files, key=lambda p: (version_of(p), p.name))


def version_of(path: Path) -> int:
    match = re.match(r"v?(\d+)", path.name)
    assert match is not None, f"{path.name} is no metadata file's name"
    return int(match[1])
