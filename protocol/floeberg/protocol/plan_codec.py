"""A read plan as bytes: a small part for secrets, and a compressed part for the rest.

    kind, 1 byte: 1
    length of the secrets, 4 bytes | secrets, JSON: {"properties": {…}, "keys": [base64, …]}
    length of the document, 4 bytes | document, JSON compressed with zstd

Numbers are big-endian. Storage properties and the key metadata of files are apart and are not
compressed. A caller chooses what is in the filter and sees how long the ticket is: from how well a
guess compresses together with a secret, the secret could be read letter by letter.
"""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import asdict, fields
from typing import cast

import pyarrow as pa

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import FloebergError, Unsupported
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.task_codec import MalformedTasks, decode_tasks, encode_tasks
from floeberg.protocol.types import Json, StructType, parse_type

KIND_TASKS = 1
"""A plan that lists its tasks. Other kinds may describe them in another way."""

MAX_DOCUMENT_BYTES = 256 << 20

_LENGTH = struct.Struct(">I")
_OPTIONS = {f.name: f.default for f in fields(ReadOptions)}


_UNDECODABLE = (
    *(struct.error, KeyError, TypeError, ValueError, AttributeError, RecursionError),
    OSError,  # what pyarrow raises for bytes that are not zstd
)


class MalformedPlan(ValueError):
    """Bytes that `encode_plan` of this version did not write."""


def encode_plan(plan: ReadPlan) -> bytes:
    """Return `plan` as bytes, the same for equal plans; its files' metrics are left out.

    Raises `Unsupported` for a plan above `MAX_DOCUMENT_BYTES`, which no worker would take.
    """
    tasks, keys = encode_tasks(plan.tasks)
    options = {k: v for k, v in asdict(plan.options).items() if v != _OPTIONS[k]}
    document = dump_json(
        {
            "metadata": plan.metadata.to_json(),
            "schema_id": plan.schema_id,
            "projection": plan.projection.to_json(),
            "rebase": dict(plan.storage.rebase),
            "options": options,
            "tasks": tasks,
        }
    )
    if len(document) > MAX_DOCUMENT_BYTES:
        raise Unsupported(
            f"{len(plan.tasks)} tasks are too many for one ticket: they take {len(document)} bytes,"
            f" and {MAX_DOCUMENT_BYTES} are read"
        )
    secrets = dump_json(
        {
            "properties": dict(plan.storage.properties),
            "keys": [base64.b64encode(key).decode() for key in keys],
        }
    )
    return b"".join(
        (
            bytes([KIND_TASKS]),
            _LENGTH.pack(len(secrets)),
            secrets,
            _LENGTH.pack(len(document)),
            _zstd().compress(document, asbytes=True),
        )
    )


def decode_plan(raw: bytes) -> ReadPlan:
    """Return the plan that `encode_plan` was given. Raises `MalformedPlan`."""
    if raw[:1] != bytes([KIND_TASKS]):
        raise MalformedPlan(f"plan of kind {raw[0] if raw else None}; this version reads 1")
    try:
        secrets, rest = _section(raw[1:])
        document = json.loads(_decompress(rest))
        return _plan(document, json.loads(secrets))
    except MalformedPlan:
        raise
    except MalformedTasks as exc:
        raise MalformedPlan(str(exc)) from exc
    except FloebergError as exc:
        raise MalformedPlan(f"plan of a table that can't be read: {exc}") from exc
    except _UNDECODABLE as exc:
        # the reason may quote a secret
        raise MalformedPlan(f"plan that can't be decoded: {type(exc).__name__}") from None


def _plan(document: Json, secrets: Json) -> ReadPlan:
    metadata = TableMetadata.parse(json.dumps(document["metadata"]), "the ticket's table")
    schema = metadata.schema_by_id(document["schema_id"])
    options = document["options"]
    if unknown := options.keys() - _OPTIONS.keys():
        raise MalformedPlan(f"unknown options {', '.join(sorted(unknown))}")
    keys = [base64.b64decode(key, validate=True) for key in secrets["keys"]]
    return ReadPlan(
        metadata=metadata,
        schema_id=schema.schema_id,
        projection=_projection(document["projection"]),
        tasks=decode_tasks(document["tasks"], keys, schema),
        storage=StorageConfig(dict(secrets["properties"]), dict(document["rebase"])),
        options=ReadOptions(**options),
    )


def _projection(raw: Json) -> Schema:
    """Parse a schema that may use an id twice: `_partition` holds ids of its own kind."""
    struct_ = parse_type({"type": "struct", "fields": raw["fields"]}, "projection")
    return Schema(cast(StructType, struct_).fields, raw["schema-id"])


def _section(raw: bytes) -> tuple[bytes, bytes]:
    (size,) = _LENGTH.unpack_from(raw)
    end = _LENGTH.size + size
    if end > len(raw):
        raise MalformedPlan("plan that is cut short")
    return raw[_LENGTH.size : end], raw[end:]


def _decompress(raw: bytes) -> bytes:
    (size,) = _LENGTH.unpack_from(raw)
    if size > MAX_DOCUMENT_BYTES:
        raise MalformedPlan(f"plan of {size} bytes; at most {MAX_DOCUMENT_BYTES} are read")
    return _zstd().decompress(raw[_LENGTH.size :], size, asbytes=True)


def _zstd() -> pa.Codec:
    return pa.Codec("zstd", compression_level=3)
