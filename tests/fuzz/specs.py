"""Random partition specs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.fuzz.partitioning import path_to
from tests.support.lake.schemas import decimal_of, fixed_of, walk
from tests.support.plain import Json


def random_spec(rng: Random, schema: Json, known: Sequence[Json], next_id: int) -> tuple[Json, ...]:
    """Return up to three partition fields over a schema.

    A field that one of the `known` is equal to gets its id and name; others get ids from `next_id`.
    """
    sources = [
        f
        for f in walk({**schema, "type": "struct"})
        if path_to(schema["fields"], f["id"]) and _transforms(f["type"])
    ]
    fields: list[Json] = []
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3)) if sources else 0):
        source = rng.choice(sources)
        transforms = _transforms(source["type"])
        # partitions of different specs are often alike: what has one bucket has it in each
        is_alike = "bucket[1]" in transforms and rng.random() < 0.3
        transform = "bucket[1]" if is_alike else rng.choice(transforms)
        wanted = {"source-id": source["id"], "transform": transform}
        if any(wanted.items() <= f.items() for f in fields):
            continue
        field = next((f for f in known if wanted.items() <= f.items()), None)
        if field is None:
            name = f"p-{next_id}" if rng.random() < 0.1 else f"p{next_id}"
            field = {**wanted, "field-id": next_id, "name": name}
            next_id += 1
        fields.append(field)
    return tuple(fields)


def _transforms(type_: Json) -> list[str]:
    """Return transforms that a type has, with small arguments."""
    if not isinstance(type_, str) or type_ in ("unknown", "variant"):
        return []
    if type_.startswith(("geometry", "geography")):
        return []
    found = ["identity", "identity", "void"]
    is_time = type_ == "date" or type_.startswith("timestamp")
    is_decimal = decimal_of(type_) is not None
    if is_time or is_decimal or fixed_of(type_) is not None:
        found += ["bucket[2]", "bucket[1]"]
    if type_ in ("int", "long", "time", "string", "uuid", "binary"):
        found += ["bucket[3]", "bucket[1]"]
    if type_ in ("int", "long", "string", "binary") or is_decimal:
        found += ["truncate[1]", "truncate[2]", "truncate[10]"]
    if is_time:
        found += ["year", "month", "day"]
    if type_.startswith("timestamp"):
        found += ["hour"]
    return found
