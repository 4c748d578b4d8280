"""Random manifests: any writer's schema, any content, and damage.

Everything follows from the random generator that is given, so a seed tells a case again.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from floeberg.protocol.files import ManifestContent, ManifestFile
from tests.support.avro_container import container

Schema = Any

CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")

_PARTITION_TYPES: tuple[Callable[[int], Schema], ...] = (
    lambda _: "boolean",
    lambda _: "int",
    lambda _: "long",
    lambda _: "float",
    lambda _: "double",
    lambda _: "string",
    lambda _: "bytes",
    lambda _: {"type": "int", "logicalType": "date"},
    lambda _: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    lambda _: {"type": "long", "logicalType": "timestamp-millis"},
    lambda _: {"type": "long", "logicalType": "timestamp-nanos"},
    lambda n: {"type": "fixed", "name": f"u{n}", "size": 16, "logicalType": "uuid"},
    lambda n: {"type": "fixed", "name": f"f{n}", "size": n % 20},
    lambda n: _decimal({"type": "fixed", "name": f"d{n}", "size": 4}, 9, 2),
    lambda n: _decimal({"type": "fixed", "name": f"d{n}", "size": 16}, 38, n % 10),
    lambda _: _decimal({"type": "bytes"}, 9, 3),
)


def _decimal(schema: Schema, precision: int, scale: int) -> Schema:
    return {**schema, "logicalType": "decimal", "precision": precision, "scale": scale}


def random_manifest(random: Random, codec: str | None = None) -> tuple[bytes, ManifestFile]:
    """Return a manifest's bytes and what its manifest list says of it.

    Most are right; some entries break a rule of the spec.
    """
    return _Manifest(random).write(codec or random.choice(CODECS))


def damaged(raw: bytes, random: Random) -> bytes:
    """Return `raw` with some bits flipped, or cut, or with a part of it repeated or left out."""
    at = random.randrange(len(raw))
    match random.randrange(6):
        case 0:
            return raw[:at]
        case 1:
            return raw[:at] + raw[at + random.randint(1, 8) :]
        case 2:
            return raw[:at] + raw[max(at - random.randint(1, 8), 0) :]
        case _:
            out = bytearray(raw)
            for _ in range(random.choice((1, 1, 1, 2, 8))):
                out[random.randrange(len(raw))] ^= 1 << random.randrange(8)
            return bytes(out)


class _Manifest:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0
        self.content = ManifestContent(self._chance(0.3))
        self.version = random.choice((1, 2, 2, 3))
        self.sequence_number = random.choice((0, 7)) if self.version > 1 else 0
        self.may_break = self._chance(0.2)

    def write(self, codec: str) -> tuple[bytes, ManifestFile]:
        random = self._random
        schema = self._entry_schema()
        plain = _without_logical_types(schema)
        most = random.choice((0, 1, 5, 40))
        records = [self._entry(plain) for _ in range(random.randint(0, most))]
        header = {"avro.schema": json.dumps(schema)}
        if self._chance(0.7):
            header["format-version"] = str(self.version)
        spec_id = random.randrange(3)
        if self._chance(0.3):
            header["partition-spec-id"] = str(spec_id if not self._breaks() else 9)
            header["content"] = self.content.name.lower()
        raw = container(
            plain,
            records,
            codec=codec,
            metadata=header,
            records_per_block=random.choice((1, 3, 1000)),
        )
        return raw, ManifestFile(
            "s3://b/m.avro",
            len(raw),
            spec_id=spec_id,
            content=self.content,
            sequence_number=self.sequence_number,
            added_snapshot_id=random.choice((None, 70, 1 << 62)),
            first_row_id=random.choice((None, 0, 1000)),
        )

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    # --- schemas ----------------------------------------------------------------------------------

    def _entry_schema(self) -> Schema:
        fields = [self._field(0, "int")]
        if self._chance(0.9):
            fields.append(self._field(1, self._optional("long")))
        if self.version > 1:
            fields += [self._field(i, self._optional("long")) for i in (3, 4) if self._chance(0.9)]
        fields.append(self._field(2, self._file_schema()))
        return self._record(fields)

    def _file_schema(self) -> Schema:
        fields = [self._field(i, self._number()) for i in (103, 104)]
        fields += [self._field(100, "string"), self._field(101, "string")]
        if self._chance(0.95) or self.content is ManifestContent.DELETES:
            fields.append(self._field(134, self._random.choice(("int", ["null", "int"]))))
        partition = [
            self._field(1000 + i, self._maybe_optional(self._partition_type()))
            for i in range(self._random.choice((0, 1, 1, 3)))
        ]
        if self._chance(0.95):
            inner = {"type": "record", "name": self._name(), "fields": partition}
            fields.append(self._field(102, self._optional(inner) if self._chance(0.1) else inner))
        for field_id in (108, 109, 110, 137):
            self._add(fields, field_id, self._map(self._number()))
        for field_id in (125, 128):
            self._add(fields, field_id, self._map("bytes"))
        self._add(fields, 131, "bytes")
        self._add(fields, 132, {"type": "array", "items": "long"})
        self._add(fields, 135, {"type": "array", "items": self._number()})
        for field_id in (140, 142, 144, 145):
            self._add(fields, field_id, self._number())
        self._add(fields, 143, "string")
        return self._record(fields)

    def _add(self, fields: list[Schema], field_id: int, schema: Schema) -> None:
        if self._chance(0.8):
            fields.append(self._field(field_id, self._maybe_optional(schema)))

    def _record(self, fields: list[Schema]) -> Schema:
        """Return a record of the fields in any order, now and then with some nobody knows."""
        for _ in range(self._random.choice((0, 0, 0, 1, 2))):
            unknown = self._field(self._random.randint(2000, 9000), self._any(2))
            if self._chance(0.3):
                del unknown["field-id"]
            fields.append(unknown)
        if self._chance(0.3):
            self._random.shuffle(fields)
        return {"type": "record", "name": self._name(), "fields": fields}

    def _field(self, field_id: int, schema: Schema) -> Schema:
        return {"name": self._name(), "type": schema, "field-id": field_id}

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def _number(self) -> Schema:
        return self._random.choice(("int", "long", "long"))

    def _optional(self, schema: Schema) -> Schema:
        return self._random.choice((["null", schema], ["null", schema], [schema, "null"]))

    def _maybe_optional(self, schema: Schema) -> Schema:
        if self._chance(0.01):
            return [schema, "null", {"type": "array", "items": "boolean"}]
        return self._optional(schema) if self._chance(0.8) else schema

    def _map(self, value: Schema) -> Schema:
        if self._chance(0.1):
            value = self._optional(value)
        are_optional = self._chance(0.1)  # as BigQuery has everything
        fields = [self._field(117, ["null", "int"] if are_optional else "int")]
        fields.append(self._field(118, value))
        items = {"type": "record", "name": self._name(), "fields": fields}
        return {
            "type": "array",
            "logicalType": "map",
            "items": ["null", items] if are_optional else items,
        }

    def _partition_type(self) -> Schema:
        self._names += 1
        return self._random.choice(_PARTITION_TYPES)(self._names)

    def _any(self, depth: int) -> Schema:
        simple = ("boolean", "int", "long", "float", "double", "bytes", "string", "null")
        kind = self._random.randrange(8 if depth else 3)
        if kind < 3:
            return self._random.choice(simple)
        inner = self._any(depth - 1)
        if kind == 3:
            return {"type": "array", "items": "int" if _takes_nothing(inner) else inner}
        if kind == 4:
            return {"type": "map", "values": inner}
        if kind == 5:
            return {"type": "enum", "name": self._name(), "symbols": ["a", "b", "c"]}
        if kind == 6:
            return {"type": "fixed", "name": self._name(), "size": 3}
        if isinstance(inner, list) or inner == "null":
            return inner
        return ["null", inner]

    # --- values -----------------------------------------------------------------------------------

    def _entry(self, schema: Schema) -> Any:
        return self._value(schema, None)

    def _value(self, schema: Schema, field_id: int | None) -> Any:
        random = self._random
        if isinstance(schema, list):
            is_needed = field_id in (3, 134) and not self._chance(0.1)
            is_needed = is_needed or (field_id == 102 and self._chance(0.9))
            found = [s for s in schema if s != "null"] if is_needed else schema
            branch = random.choice(found)
            # a pair tells fastavro which branch it is
            return None if branch == "null" else self._value(branch, field_id)
        kind = schema["type"] if isinstance(schema, dict) else schema
        match kind:
            case "null":
                return None
            case "boolean":
                return self._chance(0.5)
            case "int" | "long":
                return self._number_of(field_id, kind)
            case "float":
                return struct.unpack("<f", random.randbytes(4))[0]
            case "double":
                return random.choice((0.0, -0.0, float("nan"), random.random()))
            case "bytes":
                if field_id is not None and field_id >= 1000:
                    return random.randbytes(random.randint(1, 3))
                return random.randbytes(random.choice((0, 1, 4, 8, 8, 9, random.randint(0, 700))))
            case "string":
                return self._text_of(field_id)
            case "fixed":
                return random.randbytes(schema["size"])
            case "enum":
                return random.choice(schema["symbols"])
            case "array":
                return self._list_of(schema, field_id)
            case "map":
                keys = [f"k{i}" for i in range(random.randint(0, 2))]
                return {k: self._value(schema["values"], None) for k in keys}
            case "record":
                return {
                    f["name"]: self._value(f["type"], f.get("field-id")) for f in schema["fields"]
                }
        raise AssertionError(kind)

    def _number_of(self, field_id: int | None, kind: str) -> int:
        random = self._random
        if field_id == 0:
            return random.choice((0, 1, 1, 1, 2)) if not self._breaks() else 9
        if field_id == 134:
            right = (0,) if self.content is ManifestContent.DATA else (1, 1, 2)
            return random.choice(right) if not self._breaks() else 3
        if field_id in (103, 142) and self._chance(0.9):
            return random.randint(0, 10**6)
        limit = 1 << random.choice((6, 15, 31 if kind == "int" else 63))
        return random.randint(-limit, limit - 1)

    def _text_of(self, field_id: int | None) -> str:
        if field_id == 101:
            names = ("PARQUET", "parquet", "Orc", "avro", "puffin")
            return self._random.choice(names) if not self._breaks() else "lance"
        if field_id == 100:
            stem = self._random.choice(("s3://bucket/data/", "ü/", ""))
            return f"{stem}{self._random.randrange(10**6)}.parquet"
        return self._random.choice(("", "a", "eight888", "ninechars", "größer als acht", "x" * 600))

    def _list_of(self, schema: Schema, field_id: int | None) -> list[Any]:
        random = self._random
        items = schema["items"]
        if schema.get("logicalType") != "map":
            most = 1 if field_id == 135 else 0
            return [self._value(items, field_id) for _ in range(random.randint(most, 3))]
        keys = list(range(1, random.choice((1, 4, 4, 4, 90))))
        if self._chance(0.3):
            random.shuffle(keys)
        if self._chance(0.3):
            keys = keys[: random.randint(0, len(keys))]
        if self._chance(0.1):
            keys += [2147483546, 1]  # a reserved id, and one twice
        entry = items[1] if isinstance(items, list) else items
        name, value = (f["name"] for f in entry["fields"])
        of_value = entry["fields"][1]["type"]
        return [{name: k, value: self._value(of_value, None)} for k in keys]

    def _breaks(self) -> bool:
        return self.may_break and self._chance(0.02)


def _takes_nothing(schema: Schema) -> bool:
    """Say whether a value of the schema may take no byte, so that a list of them has no bound."""
    return bool(schema == "null")


def _without_logical_types(schema: Schema) -> Schema:
    """Return the schema with which values are written as they are stored."""
    if isinstance(schema, list):
        return [_without_logical_types(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    kept = dict(schema)
    if kept.get("logicalType") != "map":
        kept.pop("logicalType", None)
    for name in ("type", "items", "values"):
        if name in kept and not isinstance(kept[name], str):
            kept[name] = _without_logical_types(kept[name])
    if "fields" in kept:
        kept["fields"] = [_without_logical_types(f) for f in kept["fields"]]
    return kept
