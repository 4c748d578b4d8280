"""Read an Avro object container: header, blocks of any codec, records keyed by Iceberg field id.

This is the only place that knows how manifests are encoded. Records come back as dictionaries whose
keys name field ids (`key(100)` for the file path), whatever the fields were called by the version
that wrote the file, and with plain numbers and bytes for every logical type. Containers are taken
apart here rather than by fastavro, which decodes the records: so every codec is read without
another package, a file cut at a block's border is told from a whole one, and a faster decoder of
records finds the same blocks. Spec: Appendix A, "Avro"; the Avro specification, "Object Container
Files".
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType

from floeberg.protocol.avro_codecs import CODECS, DeflatedBlocks
from floeberg.protocol.errors import CorruptManifest, Unsupported
from floeberg.protocol.types import Json

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

# What decoding damaged bytes raises, from the layers below: short reads, impossible unions and
# text, lengths that do not fit, schemas that are none.
_DAMAGE = (
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    StopIteration,
    OSError,
    zlib.error,
    lzma.LZMAError,
    pa.ArrowException,
    SchemaParseException,
    UnknownType,
)

Record = dict[str, Any]
"""A record as decoded: values by `key(field id)`. Parsed at once into types of our own."""


def key(field_id: int) -> str:
    """Return the name under which a record holds the field with `field_id`."""
    return f"f{field_id}"


Inflated: TypeAlias = bytes | bytearray


class InOrder(Protocol):
    def __call__(
        self, calls: Sequence[Callable[[], Inflated]], /
    ) -> Generator[Inflated, None, None]:
        """Yield what each call returns, or raise what it raises, in order; calls may be made early
        and by other threads. Who closes it wants no more of them."""
        ...


def in_turn(calls: Sequence[Callable[[], Inflated]]) -> Generator[Inflated, None, None]:
    """Make each call when its turn comes."""
    for call in calls:
        yield call()


@dataclass(frozen=True)
class AvroFile:
    """A container that was taken apart: its header, and blocks that are inflated when asked for.

    `schema_text` is the writer's schema as the header has it. `packed` are the number of records of
    each block and its bytes as they are stored.
    """

    where: str
    metadata: Mapping[str, bytes]
    schema_text: bytes
    packed: tuple[tuple[int, bytes], ...]
    inflate: Callable[[bytes], Inflated]

    def text(self, name: str) -> str | None:
        """Return a value of the header as text, or None when the header lacks it."""
        raw = self.metadata.get(name)
        return None if raw is None else raw.decode("utf-8", errors="replace")

    @property
    def count(self) -> int:
        """The number of records that the blocks say they have."""
        return sum(count for count, _ in self.packed)

    @property
    def schema(self) -> Json:
        """The writer's schema. Raises `CorruptManifest` when it is none."""
        return self._schemas[0]

    @property
    def named(self) -> Json:
        """The schema with fields named by id, types by number, and no logical types.

        Raises `CorruptManifest` as `schema` does.
        """
        return self._schemas[1]

    @cached_property
    def _schemas(self) -> tuple[Json, Json]:
        with self._named_in_errors():
            schema = json.loads(self.schema_text)
            return schema, _by_field_id(schema)

    def blocks(self, in_order: InOrder = in_turn) -> Generator[tuple[int, Inflated], None, None]:
        """Yield the number of records and the inflated bytes of each block, in order.

        `in_order` makes the calls that inflate them. Raises `CorruptManifest`.
        """
        calls = [partial(self._inflated, data) for _, data in self.packed]
        with closing(in_order(calls)) as inflated:
            for (count, _), data in zip(self.packed, inflated, strict=True):
                yield count, data

    def _inflated(self, data: bytes) -> Inflated:
        with self._named_in_errors():
            return self.inflate(data)

    def records(self) -> Iterator[Record]:
        """Decode every record in order. Raises `CorruptManifest` at the first that cannot be."""
        with self._named_in_errors():
            layout = parse_schema(self.named)
        for count, data in self.blocks():
            stream = BytesIO(data)
            with self._named_in_errors():
                for _ in range(count):
                    yield schemaless_reader(stream, layout, None)  # type: ignore[misc]
                if stream.tell() != len(data):
                    raise ValueError(f"a block holds more than its {count} records")

    @contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as exc:
            raise CorruptManifest(f"{self.where} cannot be decoded: {_reason(exc)}") from exc


def read_avro(raw: bytes, where: str) -> AvroFile:
    """Take a container apart.

    `where` names the file and its role in messages. Raises `CorruptManifest` when `raw` is not a
    whole Avro container and `Unsupported` for a codec that the Avro specification does not name.
    """
    try:
        if raw[:4] != _MAGIC:
            raise ValueError(
                "the file is empty" if not raw else "it does not start as an Avro file does"
            )
        reader = _Bytes(raw, 4)
        metadata = _read_header(reader)
        sync = reader.take(_SYNC_BYTES)
        schema_text = metadata["avro.schema"]
        codec = metadata.get("avro.codec", b"null").decode()
        inflate = DeflatedBlocks() if codec == "deflate" else CODECS.get(codec)
        if inflate is None:
            raise Unsupported(f"{where} is compressed with {codec!r}, which is no codec of Avro's")
        packed = []
        while not reader.at_end:
            count, size = reader.long(), reader.long()
            data = reader.take(size)
            if reader.take(_SYNC_BYTES) != sync or count < 0:
                raise ValueError("the mark after a block is wrong")
            packed.append((count, data))
    except _DAMAGE as exc:
        raise CorruptManifest(f"{where} cannot be decoded: {_reason(exc)}") from exc
    return AvroFile(where, metadata, schema_text, tuple(packed), inflate)


def _reason(exc: BaseException) -> str:
    if isinstance(exc, KeyError):
        return f"it lacks {exc.args[0]!r}" if exc.args else "a part is missing"
    return str(exc) or type(exc).__name__


class _Bytes:
    """A cursor over bytes that refuses to read beyond the end."""

    def __init__(self, raw: bytes, at: int) -> None:
        self._raw = raw
        self._at = at

    @property
    def at_end(self) -> bool:
        return self._at == len(self._raw)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._raw) - self._at:
            raise EOFError("the file is cut short")
        start, self._at = self._at, self._at + size
        return self._raw[start : self._at]

    def long(self) -> int:
        """Read Avro's variable-length, zig-zag coded integer."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise ValueError("a number is longer than 64 bits")


def _read_header(reader: _Bytes) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    while (count := reader.long()) != 0:
        if count < 0:  # a count below zero is followed by the block's size
            reader.long()
        for _ in range(abs(count)):
            name = reader.take(reader.long()).decode()
            metadata[name] = reader.take(reader.long())
    return metadata


# --- schemas --------------------------------------------------------------------------------------


def branch(schema: Json) -> Json:
    """Return what an optional field holds when it is not null: the other branch of its union."""
    if isinstance(schema, list):
        return next((s for s in schema if s != "null"), "null")
    return schema


def record_fields(schema: Json) -> list[Json]:
    """Return the fields of a record, or of the record inside an optional one."""
    inner = branch(schema)
    fields = inner.get("fields") if isinstance(inner, dict) else None
    return fields if isinstance(fields, list) else []


def find_field(schema: Json, field_id: int) -> Json | None:
    """Return the direct field of the record `schema` that carries `field_id`."""
    return next((f for f in record_fields(schema) if f.get("field-id") == field_id), None)


def _by_field_id(schema: Json) -> Json:
    """Return the same layout with fields named by id, types by number, and no logical types.

    Names only ever mattered to people: renaming them leaves the bytes as they are, spares a look-up
    a record, and accepts names that Avro does not (some writers leave them unsanitised). Without
    logical types fastavro gives ints and bytes, which is how Iceberg defines the values.
    """
    return _Renaming().visit(schema, "")


class _Renaming:
    def __init__(self) -> None:
        self._types: dict[str, str] = {}
        self._empty: set[str] = set()

    def visit(self, schema: Json, namespace: str, is_entry: bool = False) -> Json:
        match schema:
            case str():
                return self._reference(schema, namespace)
            case list():
                return [self.visit(s, namespace, is_entry) for s in schema]
            case {"type": "record" | "error", "fields": list(fields)}:
                name, inner = self._define(schema, namespace)
                renamed = [
                    {
                        "name": self._field_name(f, i, is_entry),
                        "type": self.visit(f["type"], inner),
                    }
                    for i, f in enumerate(fields)
                ]
                if all(self._takes_no_bytes(f["type"]) for f in renamed):
                    self._empty.add(name)
                return {"type": "record", "name": name, "fields": renamed}
            case {"type": "array", "items": items}:
                is_map = schema.get("logicalType") == "map"
                inner_items = self.visit(items, namespace, is_entry=is_map)
                if self._takes_no_bytes(inner_items):
                    # a few bytes could ask for more items than there is memory for
                    raise ValueError("it has an array whose items take no bytes")
                return {"type": "array", "items": inner_items}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.visit(values, namespace)}
            case {"type": "fixed", "size": size}:
                name, _ = self._define(schema, namespace)
                if size == 0:
                    self._empty.add(name)
                return {"type": "fixed", "name": name, "size": size}
            case {"type": "enum", "symbols": symbols}:
                name = self._define(schema, namespace)[0]
                return {"type": "enum", "name": name, "symbols": symbols}
            case {"type": inner_type}:
                return self.visit(inner_type, namespace)
            case _:
                raise ValueError(f"{schema!r} is not an Avro schema")

    def _reference(self, name: str, namespace: str) -> str:
        if name in _PRIMITIVES:
            return name
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        known = self._types.get(full) or self._types.get(name)
        if known is None:
            raise ValueError(f"its schema uses a type {name!r} that is not defined")
        return known

    def _takes_no_bytes(self, schema: Json) -> bool:
        name = schema.get("name") if isinstance(schema, dict) else schema
        return name == "null" or (isinstance(name, str) and name in self._empty)

    def _define(self, schema: Json, namespace: str) -> tuple[str, str]:
        """Give a named type its new name; return it with the namespace that holds inside."""
        name = str(schema["name"])
        inner = name.rpartition(".")[0] if "." in name else str(schema.get("namespace", namespace))
        full = name if "." in name or not inner else f"{inner}.{name}"
        self._types[full] = new = f"t{len(self._types)}"
        return new, inner

    @staticmethod
    def _field_name(field: Json, position: int, is_entry: bool) -> str:
        if is_entry:  # of a map: known by its place, since some writers give it no ids
            return ("key", "value")[position]
        field_id = field.get("field-id")
        return f"p{position}" if field_id is None else key(field_id)
