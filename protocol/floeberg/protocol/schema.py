"""A table's schema: named columns, found by id, by dotted name, and without regard to case.

Spec: "Schemas and Data Types", "Identifier Field IDs", Appendix C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from floeberg.protocol.errors import AmbiguousColumn, CorruptMetadata, UnknownColumn
from floeberg.protocol.types import (
    Json,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    children,
    parse_id,
    parse_type,
    type_to_json,
    unknown_keys,
    walk,
)


def _parse_ids(raw: Json, where: str) -> tuple[int, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise CorruptMetadata(f"{where}: identifier-field-ids {raw!r} is not a list")
    return tuple(parse_id(i, where) for i in raw)


_KEYS = frozenset({"type", "schema-id", "identifier-field-ids", "fields"})


@dataclass(frozen=True)
class Schema:
    """Columns in order, with an index over all fields below them.

    A dotted name reaches into structs by field name, into lists by `element` and into maps by `key`
    and `value`. A field whose own name holds dots is found by that name too, and the shallower
    field wins when both readings exist: a column named `a.b` hides field `b` of struct `a`.
    """

    fields: tuple[NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = field(default=())
    extra: Json = field(default=None, compare=False, repr=False)

    @classmethod
    def from_json(cls, raw: Json, where: str = "schema") -> Schema:
        """Parse Appendix C's form. Raises `CorruptMetadata` for another shape or an id used
        twice."""
        if not isinstance(raw, dict) or "fields" not in raw:
            raise CorruptMetadata(f"{where}: a schema is an object with 'fields'")
        struct = parse_type({"type": "struct", "fields": raw["fields"]}, where)
        assert isinstance(struct, StructType)
        schema = cls(
            struct.fields,
            parse_id(raw.get("schema-id", 0), where),
            _parse_ids(raw.get("identifier-field-ids"), where),
            unknown_keys(raw, _KEYS),
        )
        schema.check_ids(where)
        return schema

    def to_json(self) -> Json:
        out = type_to_json(self.as_struct())
        out["schema-id"] = self.schema_id
        if self.identifier_field_ids:
            out["identifier-field-ids"] = list(self.identifier_field_ids)
        return out | (self.extra or {})

    def as_struct(self) -> StructType:
        return StructType(self.fields)

    def check_ids(self, where: str) -> None:
        """Raise `CorruptMetadata` for a field id used twice."""
        seen: set[int] = set()
        for f in walk(self.as_struct()):
            if f.field_id in seen:
                raise CorruptMetadata(f"{where}: field id {f.field_id} is used twice")
            seen.add(f.field_id)

    # --- looking up ------------------------------------------------------------------------------

    @cached_property
    def _by_id(self) -> dict[int, NestedField]:
        return {f.field_id: f for f in walk(self.as_struct())}

    @cached_property
    def _paths(self) -> dict[int, tuple[int, ...]]:
        """For each field id, the ids from its column down to itself."""
        paths: dict[int, tuple[int, ...]] = {}

        def visit(fields: Sequence[NestedField], above: tuple[int, ...]) -> None:
            for f in fields:
                paths[f.field_id] = (*above, f.field_id)
                visit(children(f.type), paths[f.field_id])

        visit(self.fields, ())
        return paths

    @cached_property
    def _by_name(self) -> dict[str, int]:
        names: dict[str, tuple[int, int]] = {}

        def visit(fields: Sequence[NestedField], prefix: str, depth: int) -> None:
            for f in fields:
                name = prefix + f.name
                if name not in names or names[name][0] > depth:
                    names[name] = (depth, f.field_id)
                visit(children(f.type), name + ".", depth + 1)

        visit(self.fields, "", 0)
        return {name: field_id for name, (_, field_id) in names.items()}

    @cached_property
    def _by_folded_name(self) -> dict[str, list[str]]:
        folded: dict[str, list[str]] = {}
        for name in self._by_name:
            folded.setdefault(name.casefold(), []).append(name)
        return folded

    def find(self, field_id: int) -> NestedField | None:
        """Return the field with `field_id` at any depth, or None."""
        return self._by_id.get(field_id)

    def path(self, field_id: int) -> tuple[int, ...]:
        """Return the ids from the top-level column down to `field_id`, both included."""
        return self._paths[field_id]

    def name_of(self, field_id: int) -> str:
        """Return the dotted name of the field with `field_id`.

        >>> s = Schema((NestedField(1, "tags", ListType(2, StructType(()))),))
        >>> s.name_of(2)
        'tags.element'
        """
        return ".".join(self._by_id[i].name for i in self._paths[field_id])

    def lookup(self, name: str, case_sensitive: bool = True) -> NestedField:
        """Return the field that the dotted `name` means.

        Without regard to case, an exact match still wins; several inexact ones raise
        `AmbiguousColumn`. A name that matches nothing raises `UnknownColumn`.
        """
        field_id = self._by_name.get(name)
        if field_id is None and not case_sensitive:
            found = self._by_folded_name.get(name.casefold(), [])
            if len(found) > 1:
                raise AmbiguousColumn(name, found)
            if found:
                field_id = self._by_name[found[0]]
        if field_id is None:
            below = (n for n in self._by_name if n not in self.names)
            raise UnknownColumn(name, (*self.names, *below))
        return self._by_id[field_id]

    def ids_named(self, name: str) -> frozenset[int]:
        """Return every field that the dotted `name` can mean, whatever the case of its letters,
        those that `lookup` passes over among them.

        >>> empty = StructType(())
        >>> field = NestedField(1, "A", StructType((NestedField(2, "b.c", empty),)))
        >>> Schema((field, NestedField(3, "a.b.c", empty))).ids_named("a.B.c") == {2, 3}
        True
        """
        found: set[int] = set()

        def visit(fields: Sequence[NestedField], rest: str) -> None:
            for f in fields:
                own = f.name.casefold()
                if rest == own:
                    found.add(f.field_id)
                elif rest.startswith(own + "."):
                    visit(children(f.type), rest[len(own) + 1 :])

        visit(self.fields, name.casefold())
        return frozenset(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The top-level columns' names, in order."""
        return tuple(f.name for f in self.fields)

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.fields)

    # --- projecting ------------------------------------------------------------------------------

    def prune(self, field_ids: Sequence[int]) -> Schema:
        """Return the schema with only the wanted fields, columns in the order in which they are
        first named.

        A wanted field brings all that is below it; ids that share a column come back as one column,
        pruned to what was asked for. Within a column the schema's own order stands. Ids, names and
        nullability are kept.
        """
        wanted = frozenset(field_ids)
        order = dict.fromkeys(self.path(i)[0] for i in field_ids)
        columns = (prune_field(self._by_id[column], wanted) for column in order)
        return replace(
            self, fields=tuple(c for c in columns if c is not None), identifier_field_ids=()
        )


def prune_field(field_: NestedField, wanted: frozenset[int]) -> NestedField | None:
    """Return `field_` with only the `wanted` ids below it, or None when none is wanted.

    A map keeps its whole key, since without it the values lose their meaning.
    """
    if field_.field_id in wanted:
        return field_
    pruned: Type
    match field_.type:
        case StructType(fields):
            kept = tuple(p for f in fields if (p := prune_field(f, wanted)) is not None)
            if not kept:
                return None
            pruned = StructType(kept)
        case ListType():
            element = prune_field(children(field_.type)[0], wanted)
            if element is None:
                return None
            pruned = replace(field_.type, element=element.type)
        case MapType():
            key, value = children(field_.type)
            pruned_key, pruned_value = prune_field(key, wanted), prune_field(value, wanted)
            if pruned_key is None and pruned_value is None:
                return None
            pruned = replace(
                field_.type, value=pruned_value.type if pruned_value else field_.type.value
            )
        case _:
            return None
    return replace(field_, type=pruned)
