"""Random schemas, and random changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from tests.fuzz.cases import (
    AddField,
    Change,
    DropField,
    MakeOptional,
    MoveField,
    Promote,
    RenameField,
)
from tests.fuzz.evolution import Inapplicable, evolved, structs
from tests.fuzz.values import Times, json_default
from tests.support.lake.schemas import children, decimal_of, walk
from tests.support.plain import Json

NAMES = (
    *"abcdefgh",
    "id",
    "A",
    "Id",
    "x y",
    "a.b",
    "b.c",
    "a-b",
    "1x",
    "é",
    "𝄞",
    "key",
    "value",
    "element",
    "pos",
    "file_path",
    "select",
    "_pos",
)
_PRIMITIVES = (
    "boolean",
    "int",
    "int",
    "long",
    "long",
    "float",
    "double",
    "date",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "string",
    "uuid",
    "binary",
)
_GEO = ("geometry", "geography", "geometry(EPSG:3857)", "geography(OGC:CRS84, vincenty)")
_V3 = ("timestamp_ns", "timestamptz_ns", "unknown", "unknown", "variant", *_GEO)
DEFAULTLESS = ("unknown", "variant", *_GEO)


class Fields:
    """Makes fields with ids that count up. `times` are those that the table holds."""

    def __init__(self, rng: Random, version: int, times: Times, next_id: int = 1) -> None:
        self.rng = rng
        self.times = times
        self.version = version
        self.next_id = next_id

    def columns(self) -> tuple[Json, ...]:
        """Return the columns of a new table, one of which at least is stored whatever happens."""
        count = self.rng.choice((1, 2, 3, 4, 5, 6, 8))
        columns: list[Json] = []
        while len(columns) < count or not any(_is_stored(c) for c in columns):
            # some as if they had been added earlier, with defaults
            added = self.version >= 3 and self.rng.random() < 0.2
            columns.append(self.field({c["name"] for c in columns}, depth=2, added=added))
        return tuple(columns)

    def field(self, taken: set[str], depth: int, added: bool = False) -> Json:
        """Return a field whose name isn't `taken`; one that is `added` to a table has defaults."""
        free = [n for n in NAMES if n not in taken]
        field = {"id": self._id(), "name": self.rng.choice(free) if free else f"n{self.next_id}"}
        field["required"] = self.rng.random() < 0.25
        field["type"] = self.type(depth)
        if field["type"] == "unknown":
            field["required"] = False
        if added:
            self._set_defaults(field, below=False)
        return field

    def _set_defaults(self, field: Json, below: bool) -> None:
        """Set the defaults that a new field has; without one it can't be required, but below
        another new field."""
        type_ = field["type"]
        default = None
        if self.version >= 3 and self.rng.random() < 0.6:
            if isinstance(type_, str) and type_ not in DEFAULTLESS:
                default = json_default(self.rng, type_, self.times)
            elif isinstance(type_, dict) and type_["type"] == "struct":
                default = {}
        if isinstance(type_, dict) and type_["type"] == "struct":
            for child in type_["fields"]:
                self._set_defaults(child, below=default is None)
        if default is None:
            field["required"] = field["required"] and below
        else:
            field["initial-default"] = field["write-default"] = default

    def type(self, depth: int) -> Json:
        if depth and self.rng.random() < 0.3:
            return self._nested(depth - 1)
        return self.primitive()

    def primitive(self) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.12:
            precision = rng.choice((1, 5, 9, 10, 18, 19, 28, 38))
            return f"decimal({precision}, {rng.choice((0, min(2, precision), precision))})"
        if roll < 0.16:
            return f"fixed[{rng.choice((1, 3, 16, 20))}]"
        if roll < 0.26 and self.version >= 3:
            return rng.choice(_V3)
        return rng.choice(_PRIMITIVES)

    def _nested(self, depth: int) -> Json:
        match self.rng.choice(("struct", "struct", "list", "map")):
            case "struct":
                fields: list[Json] = []
                for _ in range(self.rng.choice((1, 1, 2, 3))):
                    fields.append(self.field({f["name"] for f in fields}, depth))
                if not any(_is_stored(f) for f in fields):
                    fields[0]["type"] = "int"
                return {"type": "struct", "fields": fields}
            case "list":
                return {
                    "type": "list",
                    "element-id": self._id(),
                    "element": self._stored(depth),
                    "element-required": self.rng.random() < 0.25,
                }
            case _:
                return {
                    "type": "map",
                    "key-id": self._id(),
                    "key": self._key(),
                    "value-id": self._id(),
                    "value": self._stored(depth),
                    "value-required": self.rng.random() < 0.25,
                }

    def _stored(self, depth: int) -> Json:
        while (type_ := self.type(depth)) == "unknown":
            pass
        return type_

    def _key(self) -> Json:
        if self.rng.random() < 0.15:
            fields = [
                {"id": self._id(), "name": name, "required": True, "type": self._key_leaf()}
                for name in self.rng.sample(NAMES, self.rng.choice((1, 2)))
            ]
            return {"type": "struct", "fields": fields}
        return self._key_leaf()

    def _key_leaf(self) -> str:
        while (type_ := self.primitive()) in (*DEFAULTLESS, "float", "double", "boolean"):
            pass
        return type_

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id - 1


def _is_stored(field: Json) -> bool:
    return bool(field["type"] != "unknown")


# --- changes --------------------------------------------------------------------------------------


def random_changes(
    rng: Random, schema: Json, fields: Fields, sources: dict[int, set[str]]
) -> tuple[Change, ...]:
    """Return some legal changes, each of the schema after those before it.

    `sources` has the transforms that partition specs apply to a field.
    """
    changes: list[Change] = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        change = _random_change(rng, schema, fields, sources)
        try:
            after = schema if change is None else evolved(schema, change)
        except Inapplicable:  # a field below a map's key stays as it is
            continue
        if change is not None and _is_writable(after):
            schema = after
            changes.append(change)
    return tuple(changes)


def _is_writable(schema: Json) -> bool:
    """Say whether every struct has a field that files store: Parquet has no empty groups."""
    for _, fields in structs({**schema, "type": "struct"}):
        if not any(_is_stored(f) for f in fields):
            return False
    return True


def _random_change(
    rng: Random, schema: Json, fields: Fields, sources: dict[int, set[str]]
) -> Change | None:
    groups = list(structs({**schema, "type": "struct"}))
    parent, members = rng.choice(groups)
    kinds = ["add"] * 3 + ["promote"] * 2 + ["drop", "rename", "move", "relax"]
    match rng.choice(kinds):
        case "add":
            taken = {f["name"] for f in members}
            field = fields.field(taken, depth=1, added=True)
            return AddField(parent, field, rng.randint(0, len(members)))
        case "drop":
            return DropField(rng.choice(members)["id"]) if members else None
        case "rename" if members:
            taken = {f["name"] for f in members}
            free = [n for n in NAMES if n not in taken]
            return RenameField(rng.choice(members)["id"], rng.choice(free)) if free else None
        case "move" if members:
            return MoveField(rng.choice(members)["id"], rng.randrange(len(members)))
        case "promote":
            found = list(_promotions(schema, fields, sources))
            return rng.choice(found) if found else None
        case "relax":
            required = [f["id"] for f in _changeable(schema) if f["required"]]
            return MakeOptional(rng.choice(required)) if required else None
    return None


def _changeable(type_: Json) -> Iterator[Json]:
    """Yield the fields that aren't below a map's key, nor are one."""
    if isinstance(type_, dict) and "fields" in type_:
        type_ = {**type_, "type": "struct"}
    for field in children(type_):
        if not (isinstance(type_, dict) and type_["type"] == "map" and field["name"] == "key"):
            yield field
            yield from _changeable(field["type"])


def _promotions(schema: Json, fields: Fields, sources: dict[int, set[str]]) -> Iterator[Promote]:
    keys = {t["key-id"] for f in walk(schema) if isinstance(t := f["type"], dict) and "key" in t}
    for field in walk(schema):
        type_, field_id = field["type"], field["id"]
        if isinstance(type_, dict):
            continue
        for target in _wider(type_, fields):
            # a partition value must not change with the type
            fixed = sources.get(field_id, set()) & {"identity", "bucket", "truncate", "void"}
            if type_ == "date" and (fixed or field_id in keys):
                continue
            yield Promote(field_id, target)


def _wider(type_: str, fields: Fields) -> Sequence[str]:
    if decimal := decimal_of(type_):
        precision, scale = decimal
        return [f"decimal({p}, {scale})" for p in (9, 18, 19, 38) if p > precision]
    match type_:
        case "int":
            return ["long"]
        case "float":
            return ["double"]
        case "date" if fields.version >= 3 and fields.times.reach != "far":
            held = fields.times.reach == "ns"
            return ["timestamp", "timestamp_ns"] if held else ["timestamp"]
        case "unknown":
            return [t for t in (fields.primitive(),) if t != "unknown"]
    return []
