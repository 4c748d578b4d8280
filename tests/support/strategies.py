"""Hypothesis strategies for Iceberg's types, schemas and table metadata, as JSON and as values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from floeberg.protocol.schema import Schema
from floeberg.protocol.types import Json

INT64 = st.integers(-(2**63), 2**63 - 1)
POSITIVE_INT64 = st.integers(1, 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="."), min_size=1, max_size=8
)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | INT64 | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
UNKNOWN_KEYS = st.dictionaries(st.sampled_from(["x", "x-vendor", "from_later"]), JSON, max_size=2)
"""Keys that no version of the spec has, with values of any shape."""

PRIMITIVES = st.one_of(
    st.sampled_from(
        [
            *("boolean", "int", "long", "float", "double", "date", "time"),
            *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"),
            *("string", "uuid", "binary", "unknown", "variant", "geometry", "geography"),
        ]
    ),
    st.integers(1, 64).map("fixed[{}]".format),
    st.tuples(st.integers(1, 38), st.integers(0, 38))
    .filter(lambda t: t[1] <= t[0])
    .map(lambda t: f"decimal({t[0]}, {t[1]})"),
    st.sampled_from(
        ["geometry(srid:3857)", "geometry(projjson:wgs)", "geography(EPSG:4326, karney)"]
    ),
)


class _Ids:
    """Numbers the fields of one schema."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last


def _types_json(draw: st.DrawFn, ids: _Ids, depth: int) -> Json:
    kinds = ["primitive"] * 3 + (["struct", "list", "map"] if depth > 0 else [])
    match draw(st.sampled_from(kinds)):
        case "struct":
            return {"type": "struct", "fields": _fields_json(draw, ids, depth - 1)}
        case "list":
            element_id, element = ids.next(), _types_json(draw, ids, depth - 1)
            return {
                "type": "list",
                "element-id": element_id,
                "element": element,
                "element-required": _required(draw, element),
                **draw(UNKNOWN_KEYS),
            }
        case "map":
            key_id, value_id = ids.next(), ids.next()
            value = _types_json(draw, ids, depth - 1)
            return {
                "type": "map",
                "key-id": key_id,
                "key": draw(PRIMITIVES.filter(lambda t: t != "unknown")),
                "value-id": value_id,
                "value": value,
                "value-required": _required(draw, value),
                **draw(UNKNOWN_KEYS),
            }
        case _:
            return draw(PRIMITIVES)


def _required(draw: st.DrawFn, type_: Json) -> bool:
    # by the spec, a column of unknown type is optional
    return type_ != "unknown" and draw(st.booleans())


def _fields_json(draw: st.DrawFn, ids: _Ids, depth: int, least: int = 0) -> Json:
    names = draw(st.lists(NAMES, min_size=least, max_size=4, unique=True))
    fields: list[dict[str, Any]] = []
    for name in names:
        field_id, type_ = ids.next(), _types_json(draw, ids, depth)
        field = {
            "id": field_id,
            "name": name,
            "required": _required(draw, type_),
            "type": type_,
            **draw(UNKNOWN_KEYS),
        }
        if draw(st.booleans()):
            field["doc"] = draw(TEXT)
        if field["type"] == "long" and draw(st.booleans()):
            field |= {"initial-default": draw(INT64), "write-default": draw(INT64)}
        fields.append(field)
    return fields


@st.composite
def schemas_json(draw: st.DrawFn, schema_id: int = 0) -> Json:
    """Draw the JSON of a schema with at least one column, nested up to three levels."""
    return {
        "type": "struct",
        "schema-id": schema_id,
        "fields": _fields_json(draw, _Ids(), depth=3, least=1),
        **draw(UNKNOWN_KEYS),
    }


def schemas() -> st.SearchStrategy[Schema]:
    """Draw a schema with at least one column, nested up to three levels."""
    return schemas_json().map(Schema.from_json)


TRANSFORMS = st.sampled_from(
    ["identity", "year", "month", "day", "hour", "void", "bucket[16]", "truncate[4]", "zorder[2]"]
)


@st.composite
def _specs_json(draw: st.DrawFn, spec_id: int, sources: list[int]) -> Json:
    return {
        "spec-id": spec_id,
        "fields": [
            {
                "source-id": source,
                "field-id": 1000 + 10 * spec_id + i,
                "name": f"p{spec_id}_{i}",
                "transform": draw(TRANSFORMS),
                **draw(UNKNOWN_KEYS),
            }
            for i, source in enumerate(draw(st.lists(st.sampled_from(sources), max_size=2)))
        ],
        **draw(UNKNOWN_KEYS),
    }


@st.composite
def _sort_orders_json(draw: st.DrawFn, order_id: int, sources: list[int]) -> Json:
    return {
        "order-id": order_id,
        "fields": [
            {
                "transform": draw(TRANSFORMS),
                "source-id": source,
                "direction": draw(st.sampled_from(["asc", "desc"])),
                "null-order": draw(st.sampled_from(["nulls-first", "nulls-last"])),
                **draw(UNKNOWN_KEYS),
            }
            for source in draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2))
        ],
        **draw(UNKNOWN_KEYS),
    }


@st.composite
def _snapshots_json(draw: st.DrawFn, snapshot_id: int, version: int) -> Json:
    snapshot: dict[str, Json] = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": draw(POSITIVE_INT64),
        "summary": {"operation": draw(st.sampled_from(["append", "delete"])), "total": "1"},
        **draw(UNKNOWN_KEYS),
    }
    if version == 1 and draw(st.booleans()):
        snapshot["manifests"] = draw(st.lists(TEXT, max_size=2))
    else:
        snapshot["manifest-list"] = draw(TEXT)
    if version > 1:
        snapshot["sequence-number"] = draw(POSITIVE_INT64)
    if version > 2:
        snapshot |= {"first-row-id": draw(POSITIVE_INT64), "added-rows": 3, "key-id": draw(TEXT)}
    if draw(st.booleans()):
        snapshot["parent-snapshot-id"] = draw(POSITIVE_INT64)
    if draw(st.booleans()):
        snapshot["schema-id"] = 0
    return snapshot


@st.composite
def metadata_json(draw: st.DrawFn) -> dict[str, Json]:
    """Draw consistent table metadata of version 1 to 3, with unknown keys on every level."""
    version = draw(st.integers(1, 3))
    schemas = [draw(schemas_json(i)) for i in range(draw(st.integers(1, 2)))]
    sources = [f["id"] for f in schemas[-1]["fields"]]
    specs = [draw(_specs_json(i, sources)) for i in range(draw(st.integers(1, 2)))]
    ids = draw(st.lists(POSITIVE_INT64, max_size=3, unique=True))
    out: dict[str, Json] = {
        "format-version": version,
        "table-uuid": draw(st.uuids().map(str)),
        "location": draw(TEXT),
        "last-updated-ms": draw(POSITIVE_INT64),
        "last-column-id": 99,
        "schemas": schemas,
        "current-schema-id": len(schemas) - 1,
        "partition-specs": specs,
        "default-spec-id": len(specs) - 1,
        "last-partition-id": 1020,
        "properties": draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        "sort-orders": [{"order-id": 0, "fields": []}, draw(_sort_orders_json(1, sources))],
        "default-sort-order-id": 1,
        "snapshots": [draw(_snapshots_json(i, version)) for i in ids],
        "snapshot-log": [
            {"timestamp-ms": n, "snapshot-id": i, **draw(UNKNOWN_KEYS)} for n, i in enumerate(ids)
        ],
        "metadata-log": [{"timestamp-ms": 7, "metadata-file": draw(TEXT), **draw(UNKNOWN_KEYS)}],
        **draw(UNKNOWN_KEYS),
    }
    if ids:
        out["current-snapshot-id"] = ids[-1]
        out["refs"] = {
            "main": {"snapshot-id": ids[-1], "type": "branch", **draw(UNKNOWN_KEYS)},
            draw(NAMES.filter(lambda n: n != "main")): {
                "snapshot-id": ids[0],
                "type": "tag",
                "max-ref-age-ms": draw(POSITIVE_INT64),
            },
        }
        out["statistics"] = [_statistics_json(ids[0]) | draw(UNKNOWN_KEYS)]
        out["partition-statistics"] = [
            {"snapshot-id": ids[0], "statistics-path": "ps", "file-size-in-bytes": 5}
        ]
    if version == 1:
        out |= {"schema": schemas[-1], "partition-spec": specs[-1]["fields"]}
    else:
        out["last-sequence-number"] = draw(POSITIVE_INT64)
    if version == 3:
        out["next-row-id"] = draw(POSITIVE_INT64)
        out["encryption-keys"] = [
            {"key-id": "k", "encrypted-key-metadata": "c2VjcmV0", **draw(UNKNOWN_KEYS)}
        ]
    return out


def _statistics_json(snapshot_id: int) -> dict[str, Json]:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": "s.puffin",
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 4,
        "blob-metadata": [
            {
                "type": "apache-datasketches-theta-v1",
                "snapshot-id": snapshot_id,
                "sequence-number": 1,
                "fields": [1],
                "properties": {"ndv": "3"},
            }
        ],
    }


def metadata_bytes() -> st.SearchStrategy[bytes]:
    """Draw the content of a metadata file."""
    return metadata_json().map(lambda raw: json.dumps(raw).encode())
