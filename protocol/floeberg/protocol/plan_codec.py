"""A read plan as bytes: a small part for secrets, and a compressed part for the rest.

    kind, 1 byte: 1 for tasks that are listed, 2 for tasks that manifests name
    length of the secrets, 4 bytes | secrets, JSON:
        {"properties": {…}, "keys": [base64, …], "credentials": [{"prefixes": […], …}, …],
         "renewal": {"table": …, "token": base64}}
    length of the document, 4 bytes | document, compressed with zstd:
        CRC-32 of what follows, 4 bytes
        length of the description, 4 bytes | description, JSON | tables, see `task_codec` and
        `named_task_codec`

Numbers are big-endian, but for those in tables. Credentials are there where a catalog lent some,
each once for all its prefixes, and the renewal where it lends others later. Storage properties and
the key metadata of files are apart and are not compressed. A caller chooses what is in the filter
and sees how long the ticket is: from how well a guess compresses together with a secret, the secret
could be read letter by letter.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
from isal import isal_zlib

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.column_codec import MAX_ROWS, MalformedColumns
from floeberg.protocol.errors import FloebergError, PlanTooLarge
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.named_task_codec import can_be_named, decode_named, encode_named
from floeberg.protocol.planned_objects import as_planned
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import (
    CredentialRenewal,
    StorageConfig,
    credentials_from_json,
    credentials_to_json,
)
from floeberg.protocol.task_codec import EncodedTasks, TaskEncoder, decode_tasks, encode_tasks
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.types import Json, StructType, parse_type

KIND_TASKS, KIND_MANIFESTS = 1, 2

MAX_DOCUMENT_BYTES = 256 << 20
_SAMPLES, _SAMPLE_TASKS = 4, 128
_GATHERED_TASKS = 16_000

_LENGTH = struct.Struct(">I")
_OPTIONS = {f.name: f.default for f in fields(ReadOptions)}


_UNDECODABLE = (
    *(struct.error, KeyError, TypeError, ValueError, AttributeError, RecursionError),
    OverflowError,  # a number beyond 64 bits
    OSError,  # what pyarrow raises for bytes that are not zstd
)


class MalformedPlan(ValueError):
    """Bytes that `encode_plan` of this version did not write."""


def encode_plan(plan: ReadPlan, *, by_manifests: bool = False) -> bytes:
    """Return `plan` as bytes, the same for the same tasks; its files' metrics are left out.

    `by_manifests`, and what is raised, are `PlanEncoder`'s.
    """
    tasks = as_planned(plan.tasks)
    return PlanEncoder(plan, tasks, by_manifests=by_manifests).encode(0, len(tasks))


class PlanEncoder:
    """Encodes `plan` with runs of `tasks` for its own. What they have in common is written once.

    Tasks are listed, or named `by_manifests` where they can be (see `can_be_named`): that takes a
    few bytes a file at most, and whoever decodes it has to read the manifests again. Safe to share
    between threads.
    """

    def __init__(self, plan: ReadPlan, tasks: PlannedTasks, *, by_manifests: bool = False) -> None:
        options = {k: v for k, v in asdict(plan.options).items() if v != _OPTIONS[k]}
        common = {
            "schema_id": plan.schema_id,
            "projection": plan.projection.to_json(),
            "rebase": dict(plan.storage.rebase),
            "options": options,
        }
        metadata = plan.metadata.json_text
        self._common = b'{"metadata":' + metadata + b"," + dump_json(common)[1:]
        self._secrets = _storage_secrets(plan.storage)
        self._tasks = tasks
        self._by_manifests = by_manifests
        # many tasks take less room run by run, and runs may be encoded by several threads
        is_small = not by_manifests and len(tasks) <= _GATHERED_TASKS
        self._listing = TaskEncoder(tasks) if is_small else None

    def encode(self, first: int, stop: int) -> bytes:
        """Return the plan of the tasks from `first` up to `stop` as bytes.

        Raises `PlanTooLarge` for a plan above `MAX_DOCUMENT_BYTES`, which no worker would take.
        """
        count = stop - first
        if count > MAX_ROWS:
            raise PlanTooLarge(f"{count} tasks are too many for one ticket")
        kind, encoded = self._encoded(first, stop)
        # two objects as one: neither is empty
        description = self._common[:-1] + b"," + dump_json(encoded.described)[1:]
        content = b"".join((_LENGTH.pack(len(description)), description, encoded.tables))
        document = _LENGTH.pack(isal_zlib.crc32(content)) + content
        if len(document) > MAX_DOCUMENT_BYTES:
            raise PlanTooLarge(
                f"{count} tasks are too many for one ticket: they take {len(document)}"
                f" bytes, and {MAX_DOCUMENT_BYTES} are read"
            )
        keys = [base64.b64encode(key).decode() for key in encoded.keys]
        secrets = dump_json({**self._secrets, "keys": keys})
        return b"".join(
            (
                bytes([kind]),
                _LENGTH.pack(len(secrets)),
                secrets,
                _LENGTH.pack(len(document)),
                _zstd().compress(document, asbytes=True),
            )
        )

    def _encoded(self, first: int, stop: int) -> tuple[int, EncodedTasks]:
        if self._listing is not None:
            return KIND_TASKS, self._listing.encode(first, stop)
        tasks = self._tasks[first:stop]
        if self._by_manifests and can_be_named(tasks):
            return KIND_MANIFESTS, encode_named(tasks)
        return KIND_TASKS, encode_tasks(tasks)


def listed_bytes(tasks: PlannedTasks) -> int:
    """Return about how many bytes of tickets `tasks` take when they are listed.

    The same for the same tasks. Neighbours from a few places are encoded and stand for the rest.
    """
    sample = tasks
    if len(tasks) > _SAMPLES * _SAMPLE_TASKS:
        firsts = np.linspace(0, len(tasks) - _SAMPLE_TASKS, _SAMPLES, dtype=np.int64)
        sample = tasks.where((firsts[:, None] + np.arange(_SAMPLE_TASKS)).ravel())
    if not len(sample):
        return 0
    encoded = encode_tasks(sample)
    size = len(_zstd().compress(encoded.tables)) + sum(map(len, encoded.keys)) * 4 // 3
    return size * len(tasks) // len(sample)


def decode_plan(raw: bytes) -> ReadPlan:
    """Return the plan that `encode_plan` was given. Raises `MalformedPlan`.

    Its tasks are checked here, and made when they are looked at; those that manifests name are
    `NamedTasks`, to be resolved first.
    """
    decode = _DECODERS.get(raw[0] if raw else 0)
    if decode is None:
        raise MalformedPlan(f"plan of kind {raw[0] if raw else None}; this version reads 1 and 2")
    try:
        secrets, rest = _section(memoryview(raw)[1:])
        description, tables = _section(_decompress(rest))
        return _plan(decode, json.loads(bytes(description)), tables, json.loads(bytes(secrets)))
    except MalformedPlan:
        raise
    except MalformedColumns as exc:
        raise MalformedPlan(f"tasks that can't be decoded: {exc}") from exc
    except FloebergError as exc:
        raise MalformedPlan(f"plan of a table that can't be read: {exc}") from exc
    except _UNDECODABLE as exc:
        # the reason may quote a secret
        raise MalformedPlan(f"plan that can't be decoded: {type(exc).__name__}") from None


class _DecodeTasks(Protocol):
    def __call__(
        self, described: Json, tables: memoryview, keys: Sequence[bytes], schema: Schema, /
    ) -> Sequence[FileScanTask]: ...


_DECODERS: Mapping[int, _DecodeTasks] = {KIND_TASKS: decode_tasks, KIND_MANIFESTS: decode_named}


def _plan(decode: _DecodeTasks, described: Json, tables: memoryview, secrets: Json) -> ReadPlan:
    metadata = TableMetadata.parse(json.dumps(described["metadata"]), "the ticket's table")
    schema = metadata.schema_by_id(described["schema_id"])
    options = described["options"]
    if unknown := options.keys() - _OPTIONS.keys():
        raise MalformedPlan(f"unknown options {', '.join(sorted(unknown))}")
    keys = [base64.b64decode(key, validate=True) for key in secrets["keys"]]
    return ReadPlan(
        metadata=metadata,
        schema_id=schema.schema_id,
        projection=_projection(described["projection"]),
        tasks=decode(described, tables, keys, schema),
        storage=StorageConfig(
            dict(secrets["properties"]),
            dict(described["rebase"]),
            credentials_from_json(secrets.get("credentials", [])),
            _renewal(secrets.get("renewal")),
        ),
        options=ReadOptions(**options),
    )


def _storage_secrets(storage: StorageConfig) -> Json:
    secrets: dict[str, Json] = {"properties": dict(storage.properties)}
    if storage.credentials:
        secrets["credentials"] = credentials_to_json(storage.credentials)
    if storage.renewal is not None:
        token = base64.b64encode(storage.renewal.token).decode()
        secrets["renewal"] = {"table": storage.renewal.table, "token": token}
    return secrets


def _renewal(raw: Json) -> CredentialRenewal | None:
    if raw is None:
        return None
    return CredentialRenewal(str(raw["table"]), base64.b64decode(raw["token"], validate=True))


def _projection(raw: Json) -> Schema:
    """Parse a schema that may use an id twice: `_partition` holds ids of its own kind."""
    struct_ = parse_type({"type": "struct", "fields": raw["fields"]}, "projection")
    return Schema(cast(StructType, struct_).fields, raw["schema-id"])


def _section(raw: memoryview) -> tuple[memoryview, memoryview]:
    (size,) = _LENGTH.unpack_from(raw)
    end = _LENGTH.size + size
    if end > len(raw):
        raise MalformedPlan("plan that is cut short")
    return raw[_LENGTH.size : end], raw[end:]


def _decompress(raw: memoryview) -> memoryview:
    (size,) = _LENGTH.unpack_from(raw)
    if size > MAX_DOCUMENT_BYTES:
        raise MalformedPlan(f"plan of {size} bytes; at most {MAX_DOCUMENT_BYTES} are read")
    document = memoryview(_zstd().decompress(bytes(raw[_LENGTH.size :]), size, asbytes=True))
    (checksum,) = _LENGTH.unpack_from(document)
    content = document[_LENGTH.size :]
    if checksum != isal_zlib.crc32(content):
        raise MalformedPlan("plan whose checksum is wrong")
    return content


def _zstd() -> pa.Codec:
    # by level 3 a ticket takes twice the time and is no smaller
    return pa.Codec("zstd", compression_level=1)
