"""From the bytes of a metadata file, of any version, to one JSON object in the form of v2 and v3.

Format v1 had one `schema` and one `partition-spec` without ids, and no sort orders; v1 tables
that were written later carry both forms. Spec: "Table Metadata Fields", Appendix C, Appendix E,
Appendix F.
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TypeAlias

from floeberg.protocol.errors import CorruptMetadata, UnsupportedVersion
from floeberg.protocol.partitioning import FIRST_PARTITION_FIELD_ID
from floeberg.protocol.types import Json

JsonObject: TypeAlias = dict[str, Json]

SUPPORTED_VERSIONS = (1, 2, 3)
NO_SNAPSHOT = -1
GZIP_MAGIC = b"\x1f\x8b"
_SURROGATES = (r"\ud", r"\uD")  # as JSON escapes them


def read_json(raw: bytes | str, where: str) -> JsonObject:
    """Return the JSON object that `raw` holds, decompressed where it begins like a gzip file.

    Raises `CorruptMetadata`, naming `where`, for damaged or truncated bytes.
    """
    if isinstance(raw, bytes) and raw.startswith(GZIP_MAGIC):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as exc:
            raise CorruptMetadata(f"{where} is not a whole gzip file: {exc}") from exc
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
        parsed = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise CorruptMetadata(f"{where} is not valid JSON, it may be truncated: {exc}") from exc
    if any(begin in text for begin in _SURROGATES):
        _check_text(parsed, where)
    if not isinstance(parsed, dict):
        raise CorruptMetadata(f"{where} is not table metadata: it holds no JSON object")
    return parsed


def _check_text(parsed: Json, where: str) -> None:
    """Refuse half a surrogate pair, which JSON can spell and no text holds: it could be neither
    shown nor sent.
    """
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise CorruptMetadata(f"{where} is not valid JSON: a text in it is no Unicode") from exc


def check_version(raw: JsonObject, where: str) -> None:
    """Raise `UnsupportedVersion` for a format version that floeberg does not read."""
    if "format-version" not in raw:
        raise CorruptMetadata(f"{where} is not table metadata: it has no format-version")
    version = raw["format-version"]
    if type(version) is not int or version not in SUPPORTED_VERSIONS:
        raise UnsupportedVersion(version, where)


def current_form(raw: JsonObject, where: str) -> JsonObject:
    """Return `raw` with the lists that v2 requires, made from what an older writer put there."""
    for key in ("schemas", "partition-specs", "sort-orders"):
        _check_objects(raw, key, where)
    out = dict(raw)
    schema, fields = out.pop("schema", None), out.pop("partition-spec", None)
    if not out.get("schemas"):
        if schema is None:
            raise CorruptMetadata(f"{where} has neither 'schemas' nor 'schema'")
        out["schemas"] = [schema]
        out["current-schema-id"] = _id(schema, "schema-id")
    elif out.get("current-schema-id") is None:
        if schema is None:
            raise CorruptMetadata(f"{where} has 'schemas' without 'current-schema-id'")
        out["current-schema-id"] = _id(schema, "schema-id")
    if not out.get("partition-specs"):
        if fields is None:
            raise CorruptMetadata(f"{where} has neither 'partition-specs' nor 'partition-spec'")
        spec_id = out.get("default-spec-id") or 0
        out["partition-specs"] = [{"spec-id": spec_id, "fields": fields}]
        out["default-spec-id"] = spec_id
    elif out.get("default-spec-id") is None:
        if out["format-version"] > 1:
            raise CorruptMetadata(f"{where} has 'partition-specs' without 'default-spec-id'")
        out["default-spec-id"] = max(_id(spec, "spec-id") for spec in out["partition-specs"])
    if not out.get("sort-orders"):
        out["sort-orders"] = [{"order-id": 0, "fields": []}]
        out["default-sort-order-id"] = 0
    if out.get("last-partition-id") is None:
        out["last-partition-id"] = _last_partition_id(out["partition-specs"])
    if out.get("current-snapshot-id") == NO_SNAPSHOT:
        out["current-snapshot-id"] = None
    return out


def with_v1_forms(out: JsonObject) -> JsonObject:
    """Return metadata of format version 1 as v1 readers expect it: the singular forms too."""
    current = next(s for s in out["schemas"] if s["schema-id"] == out["current-schema-id"])
    spec = next(s for s in out["partition-specs"] if s["spec-id"] == out["default-spec-id"])
    return {**out, "schema": current, "partition-spec": spec["fields"]}


def _check_objects(raw: JsonObject, key: str, where: str) -> None:
    found = raw.get(key)
    if found is None:
        return
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise CorruptMetadata(f"{where}: {key!r} is not a list of objects")


def _id(raw: Json, key: str) -> int:
    """Return an id that is 0 where an old writer gave none; wrong kinds are reported later."""
    value = raw.get(key, 0) if isinstance(raw, dict) else 0
    return value if isinstance(value, int) else 0


def _last_partition_id(specs: Json) -> int:
    last = FIRST_PARTITION_FIELD_ID - 1
    for spec in specs:
        # v1 gave no ids: a spec's fields count from 1000
        fields = spec.get("fields")
        for i, field in enumerate(fields if isinstance(fields, list) else ()):
            given = _id(field, "field-id")
            last = max(last, given or FIRST_PARTITION_FIELD_ID + i)
    return last
