"""Iceberg's types, with the ids of nested fields.

A type is a frozen value: equal types are equal objects, and may be shared between threads.
`str(type)` of a type that is not nested is its JSON form. Spec: "Schemas and Data Types" and
Appendix C, "Schemas".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

from floeberg.protocol.errors import CorruptMetadata, Unsupported

Json: TypeAlias = Any
"""What `json.loads` returns. Parsed at once into types of our own; it does not travel inward."""

Value: TypeAlias = bool | int | float | Decimal | str | bytes
"""One value of a primitive type, in the unit in which Iceberg stores it; null is `None`, apart.

date: days since 1970-01-01. time: microseconds since midnight. timestamp: microseconds since the
epoch, timestamp_ns: nanoseconds, both in UTC where the type has a zone. decimal: a `Decimal` whose
exponent is minus the type's scale. uuid: its 16 bytes, big-endian. fixed, binary, geometry,
geography, variant: bytes.
"""

DEFAULT_CRS = "OGC:CRS84"
DEFAULT_EDGES = "spherical"
EDGES = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})


@dataclass(frozen=True, slots=True)
class BooleanType:
    def __str__(self) -> str:
        return "boolean"


@dataclass(frozen=True, slots=True)
class IntType:
    """32-bit signed integers."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True, slots=True)
class LongType:
    """64-bit signed integers."""

    def __str__(self) -> str:
        return "long"


@dataclass(frozen=True, slots=True)
class FloatType:
    def __str__(self) -> str:
        return "float"


@dataclass(frozen=True, slots=True)
class DoubleType:
    def __str__(self) -> str:
        return "double"


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Fixed-point decimals of up to 38 digits in all, `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= 38:
            raise CorruptMetadata(f"decimal precision {self.precision} is not between 1 and 38")
        if not -38 <= self.scale <= 38:
            raise CorruptMetadata(f"decimal scale {self.scale} is not between -38 and 38")

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class DateType:
    def __str__(self) -> str:
        return "date"


@dataclass(frozen=True, slots=True)
class TimeType:
    def __str__(self) -> str:
        return "time"


@dataclass(frozen=True, slots=True)
class TimestampType:
    """timestamp, timestamptz (`zoned`), timestamp_ns and timestamptz_ns (`nanos`)."""

    zoned: bool = False
    nanos: bool = False

    def __str__(self) -> str:
        return f"timestamp{'tz' if self.zoned else ''}{'_ns' if self.nanos else ''}"


@dataclass(frozen=True, slots=True)
class StringType:
    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class UuidType:
    def __str__(self) -> str:
        return "uuid"


@dataclass(frozen=True, slots=True)
class FixedType:
    length: int

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class BinaryType:
    def __str__(self) -> str:
        return "binary"


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A column whose type is not known yet: every value is null, and no data file stores it."""

    def __str__(self) -> str:
        return "unknown"


@dataclass(frozen=True, slots=True)
class VariantType:
    def __str__(self) -> str:
        return "variant"


@dataclass(frozen=True, slots=True)
class GeometryType:
    crs: str = DEFAULT_CRS

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType:
    crs: str = DEFAULT_CRS
    edges: str = DEFAULT_EDGES

    def __str__(self) -> str:
        if self.edges != DEFAULT_EDGES:
            return f"geography({self.crs}, {self.edges})"
        return "geography" if self.crs == DEFAULT_CRS else f"geography({self.crs})"


@dataclass(frozen=True, slots=True)
class NestedField:
    """One field of a struct.

    The defaults are kept as Appendix D's JSON, so that a schema travels unchanged;
    `floeberg.protocol.values.from_json` gives their value. `None` is both "no default" and "default
    null", which the spec makes the same. `extra` holds the keys that a later writer put there.
    """

    field_id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Json = None
    write_default: Json = None
    extra: Json = field(default=None, compare=False, repr=False)

    def __hash__(self) -> int:  # defaults may be lists or dicts
        return hash((self.field_id, self.name, self.type, self.required))

    @property
    def optional(self) -> bool:
        return not self.required


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        inner = ", ".join(
            f"{f.field_id}: {f.name}: {'required' if f.required else 'optional'} {f.type}"
            for f in self.fields
        )
        return f"struct<{inner}>"

    def field(self, field_id: int) -> NestedField | None:
        """Return the direct child with `field_id`, if there is one."""
        return next((f for f in self.fields if f.field_id == field_id), None)


@dataclass(frozen=True, slots=True)
class ListType:
    element_id: int
    element: Type
    element_required: bool = False
    extra: Json = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Keys are always required."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool = False
    extra: Json = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


PrimitiveType: TypeAlias = (
    BooleanType
    | IntType
    | LongType
    | FloatType
    | DoubleType
    | DecimalType
    | DateType
    | TimeType
    | TimestampType
    | StringType
    | UuidType
    | FixedType
    | BinaryType
    | UnknownType
    | GeometryType
    | GeographyType
)
NestedType: TypeAlias = StructType | ListType | MapType
Type: TypeAlias = PrimitiveType | VariantType | NestedType

_SIMPLE: dict[str, Type] = {
    str(t): t
    for t in (
        BooleanType(),
        IntType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DateType(),
        TimeType(),
        TimestampType(),
        TimestampType(zoned=True),
        TimestampType(nanos=True),
        TimestampType(zoned=True, nanos=True),
        StringType(),
        UuidType(),
        BinaryType(),
        UnknownType(),
        VariantType(),
        GeometryType(),
        GeographyType(),
    )
}
_PARAMETRIC = re.compile(r"(decimal|fixed|geometry|geography)\s*[(\[](.*)[)\]]", re.DOTALL)
# Arrow counts the bytes of a value with 32 bits
_LONGEST_FIXED = (1 << 31) - 1


def is_nested(type_: Type) -> bool:
    """Say whether values of `type_` hold other fields: structs, lists and maps."""
    return isinstance(type_, StructType | ListType | MapType)


def children(type_: Type) -> tuple[NestedField, ...]:
    """Return the fields directly below `type_`; a list has `element`, a map `key` and `value`.

    >>> [f.name for f in children(ListType(3, StringType()))]
    ['element']
    """
    match type_:
        case StructType(fields):
            return fields
        case ListType():
            return (
                NestedField(type_.element_id, "element", type_.element, type_.element_required),
            )
        case MapType():
            return (
                NestedField(type_.key_id, "key", type_.key, required=True),
                NestedField(type_.value_id, "value", type_.value, type_.value_required),
            )
        case _:
            return ()


def walk(type_: Type) -> Iterator[NestedField]:
    """Yield every field below `type_`, parents before their children, in schema order."""
    for child in children(type_):
        yield child
        yield from walk(child.type)


def parse_type(raw: Json, where: str = "type") -> Type:
    """Return the type that its JSON form names (Appendix C).

    Raises `CorruptMetadata` for JSON of another shape and `Unsupported` for a type that the spec's
    versions 1 to 3 do not have; `where` says in the message what was being parsed.

    >>> parse_type("decimal( 9,2 )")
    DecimalType(precision=9, scale=2)
    """
    if isinstance(raw, str):
        return _parse_name(raw.strip(), where)
    if not isinstance(raw, Mapping):
        raise CorruptMetadata(f"{where}: {raw!r} is not a type")
    try:
        match raw.get("type"):
            case "struct":
                fields = raw["fields"]
                if not isinstance(fields, list):
                    raise CorruptMetadata(f"{where}: the fields of a struct are a list")
                return StructType(
                    tuple(parse_field(f, f"{where} field {i}") for i, f in enumerate(fields))
                )
            case "list":
                return ListType(
                    parse_id(raw["element-id"], where),
                    parse_type(raw["element"], f"{where} element"),
                    _flag(raw, "element-required", where),
                    unknown_keys(raw, _LIST_KEYS),
                )
            case "map":
                return MapType(
                    parse_id(raw["key-id"], where),
                    parse_type(raw["key"], f"{where} key"),
                    parse_id(raw["value-id"], where),
                    parse_type(raw["value"], f"{where} value"),
                    _flag(raw, "value-required", where),
                    unknown_keys(raw, _MAP_KEYS),
                )
            case other:
                raise Unsupported(f"{where}: type {other!r} is not one of Iceberg v1 to v3")
    except KeyError as exc:
        raise CorruptMetadata(f"{where}: a {raw.get('type')} without {exc.args[0]!r}") from exc


def parse_field(raw: Json, where: str = "field") -> NestedField:
    """Return the struct field that its JSON form describes (Appendix C)."""
    if not isinstance(raw, Mapping):
        raise CorruptMetadata(f"{where}: {raw!r} is not a field")
    try:
        name, doc = raw["name"], raw.get("doc")
        if not isinstance(name, str) or not isinstance(doc, str | None):
            raise CorruptMetadata(f"{where}: name {name!r} or doc {doc!r} is not text")
        return NestedField(
            parse_id(raw["id"], where),
            name,
            parse_type(raw["type"], f"{where} {name!r}"),
            _flag(raw, "required", where),
            doc,
            raw.get("initial-default"),
            raw.get("write-default"),
            unknown_keys(raw, _FIELD_KEYS),
        )
    except KeyError as exc:
        raise CorruptMetadata(f"{where}: a field without {exc.args[0]!r}") from exc


_LIST_KEYS = frozenset({"type", "element-id", "element", "element-required"})
_MAP_KEYS = frozenset({"type", "key-id", "key", "value-id", "value", "value-required"})
_FIELD_KEYS = frozenset(
    {"id", "name", "type", "required", "doc", "initial-default", "write-default"}
)


def unknown_keys(raw: Mapping[str, Json], known: Set[str]) -> dict[str, Json] | None:
    """Return what `raw` holds under other than the `known` keys, to be written back, or None."""
    return {k: v for k, v in raw.items() if k not in known} or None


def parse_id(raw: Json, where: str) -> int:
    """Return an id that metadata gives; `CorruptMetadata` when it is no integer."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise CorruptMetadata(f"{where}: id {raw!r} is not an integer")
    return raw


def _flag(raw: Mapping[str, Json], key: str, where: str) -> bool:
    flag = raw.get(key, False)
    if not isinstance(flag, bool):
        raise CorruptMetadata(f"{where}: {key} {flag!r} is neither true nor false")
    return flag


def _parse_name(name: str, where: str) -> Type:
    if (simple := _SIMPLE.get(name)) is not None:
        return simple
    match = _PARAMETRIC.fullmatch(name)
    if match is None:
        raise Unsupported(f"{where}: type {name!r} is not one of Iceberg v1 to v3")
    kind, arguments = match.groups()
    parts = [p.strip() for p in arguments.split(",")]
    try:
        match kind, parts:
            case "decimal", [precision, scale]:
                return DecimalType(int(precision), int(scale))
            case "fixed", [length] if 0 <= int(length) <= _LONGEST_FIXED:
                return FixedType(int(length))
            case "geometry", [crs]:
                return GeometryType(crs or DEFAULT_CRS)
            case "geography", [crs]:
                return GeographyType(crs or DEFAULT_CRS)
            case "geography", [crs, edges] if edges.lower() in EDGES:
                return GeographyType(crs or DEFAULT_CRS, edges.lower())
            case _:
                raise CorruptMetadata(f"{where}: the parameters of {name!r} are wrong")
    except ValueError as exc:
        raise CorruptMetadata(f"{where}: the parameters of {name!r} are not integers") from exc


def type_to_json(type_: Type) -> Json:
    """Return the JSON form of `type_` (Appendix C); `parse_type` takes it back."""
    match type_:
        case StructType(fields):
            return {"type": "struct", "fields": [field_to_json(f) for f in fields]}
        case ListType():
            return {
                "type": "list",
                "element-id": type_.element_id,
                "element": type_to_json(type_.element),
                "element-required": type_.element_required,
                **(type_.extra or {}),
            }
        case MapType():
            return {
                "type": "map",
                "key-id": type_.key_id,
                "key": type_to_json(type_.key),
                "value-id": type_.value_id,
                "value": type_to_json(type_.value),
                "value-required": type_.value_required,
                **(type_.extra or {}),
            }
        case _:
            return str(type_)


def field_to_json(field: NestedField) -> Json:
    """Return the JSON form of a struct field; absent parts (doc, defaults) are left out."""
    out: dict[str, Json] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.type),
    }
    if field.doc is not None:
        out["doc"] = field.doc
    if field.initial_default is not None:
        out["initial-default"] = field.initial_default
    if field.write_default is not None:
        out["write-default"] = field.write_default
    return out | (field.extra or {})
