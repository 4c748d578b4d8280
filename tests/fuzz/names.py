"""Names for the field ids of a question, as a scan of one snapshot spells them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.fuzz.cases import Both, Filter, Not, Question, Test
from tests.support.lake.schemas import children
from tests.support.plain import Json


@dataclass(frozen=True)
class Named:
    field_id: int
    type: Json
    path: tuple[str, ...]
    name: str
    in_structs: bool


def columns_by_id(schema: Json, letters: str) -> Mapping[int, Named]:
    """Return the fields that a dotted name means, and no other field's.

    Other letters than the `exact` ones must still mean one field alone. Below lists and maps, a
    field can be selected but not filtered by: it isn't `in_structs` only.
    """
    everything = list(_dotted({**schema, "type": "struct"}, (), in_structs=True))

    def folded(path: Sequence[str]) -> str:
        name = ".".join(path)
        return name if letters == "exact" else name.casefold()

    counts = Counter(folded(path) for _, path, _ in everything)
    return {
        field["id"]: Named(
            field["id"], field["type"], path, _spelt(".".join(path), letters), in_structs
        )
        for field, path, in_structs in everything
        if counts[folded(path)] == 1
    }


def _dotted(
    type_: Json, above: tuple[str, ...], in_structs: bool
) -> Iterator[tuple[Json, tuple[str, ...], bool]]:
    is_struct = isinstance(type_, dict) and type_["type"] == "struct"
    for field in children(type_):
        path = (*above, field["name"])
        yield field, path, in_structs and is_struct
        yield from _dotted(field["type"], path, in_structs and is_struct)


def _spelt(name: str, letters: str) -> str:
    if letters == "exact" or not name.isascii():
        return name
    return name.upper() if letters == "upper" else name.lower()


def filter_json(filter_: Filter | None, columns: Mapping[int, Named]) -> Json:
    """Return a filter's JSON form; a test of a field that isn't there is true."""
    match filter_:
        case None:
            return ["true"]
        case Both(op, parts):
            return [op, *(filter_json(part, columns) for part in parts)]
        case Not(part):
            return ["not", filter_json(part, columns)]
        case Test(op, field_id, literal):
            if field_id not in columns:
                return ["true"]
            name = columns[field_id].name
            if isinstance(literal, tuple):
                return [op, name, list(literal)]
            return [op, name] if literal is None else [op, name, literal]


def select_names(question: Question, columns: Mapping[int, Named]) -> list[str] | None:
    """Return the names to select, without those of fields that aren't there."""
    if question.select is None:
        return None
    names = (c if isinstance(c, str) else _name(c, columns) for c in question.select)
    return [name for name in names if name is not None]


def _name(field_id: int, columns: Mapping[int, Named]) -> str | None:
    return columns[field_id].name if field_id in columns else None
