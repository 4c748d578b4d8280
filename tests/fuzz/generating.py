"""A case out of a seed. Each step is drawn with the table as it is by then, which is being built.

The same seed and number give the same case.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.fuzz.building import Lake
from tests.fuzz.cases import (
    Action,
    Append,
    Case,
    Commit,
    Create,
    DeleteEqual,
    DeletePositions,
    Evolve,
    EvolveSpec,
    MapNames,
    Remove,
    RewriteManifest,
    Row,
    SetRef,
    Step,
    Upgrade,
    WriteVectors,
)
from tests.fuzz.evolution import Inapplicable
from tests.fuzz.layouts import layout_of
from tests.fuzz.mapping import covers
from tests.fuzz.partitioning import partition_of, path_to
from tests.fuzz.schemas import DEFAULTLESS, Fields, random_changes
from tests.fuzz.specs import random_spec
from tests.fuzz.values import Times, nested_value, value_of
from tests.support.lake.schemas import walk
from tests.support.plain import Json, Plain

POSITION_DELETES = {"fields": [{"id": 1, "name": "file_path", "required": True, "type": "string"}]}
BRANCHES = ("main", "main", "main", "main", "side", None)


class Generator:
    """Draws the steps of one case, and carries them out as it goes."""

    def __init__(self, rng: Random, directory: Path) -> None:
        self.rng = rng
        self.times = Times(rng.choice(("ns", "ns", "civil", "civil", "far")), rng.random() < 0.2)
        self.nulls = rng.choice((0.05, 0.2, 0.5))
        self.create = self._create()
        self.lake = Lake(directory, self.create)
        self.steps: list[Step] = []

    def steps_and_lake(self) -> tuple[Case, Lake]:
        """Return a case without questions, and its table."""
        if self.rng.random() < 0.3:
            self._take(MapNames())
        self._take(Commit(tuple(self._append() for _ in range(self.rng.choice((1, 1, 2, 3))))))
        for _ in range(self.rng.randint(1, 7)):
            if (step := self._step()) is not None:
                self._take(step)
        return Case(self.create, tuple(self.steps)), self.lake

    def _take(self, step: Step) -> None:
        try:
            self.lake.apply(step)
        except Inapplicable:
            return
        self.steps.append(step)

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --- steps ------------------------------------------------------------------------------------

    def _create(self) -> Create:
        version = self.rng.choice((1, 2, 2, 3, 3, 3))
        fields = Fields(self.rng, version, self.times).columns()
        spec: Sequence[Json] = ()
        if self._chance(0.5):
            spec = random_spec(self.rng, {"fields": fields}, [], 1000)
        return Create(
            version,
            fields,
            tuple(spec),
            self.rng.choice((None, None, 1, 2)),
            self.rng.choice(("deflate", "deflate", "null", "zstandard")),
            self._chance(0.1),
        )

    def _step(self) -> Step | None:
        metadata = self.lake.metadata
        kinds = ["commit"] * 8 + ["evolve"] * 5 + ["spec", "spec", "ref", "map"]
        if self.lake.version < 3:
            kinds.append("upgrade")
        match self.rng.choice(kinds):
            case "commit":
                return self._commit()
            case "evolve":
                sources: dict[int, set[str]] = {}
                for spec in metadata["partition-specs"]:
                    for f in spec["fields"]:
                        sources.setdefault(f["source-id"], set()).add(f["transform"])
                fields = Fields(
                    self.rng, self.lake.version, self.times, metadata["last-column-id"] + 1
                )
                changes = random_changes(self.rng, self.lake.table.schema, fields, sources)
                return Evolve(changes) if changes else None
            case "spec":
                known = [f for s in metadata["partition-specs"] for f in s["fields"]]
                next_id = metadata["last-partition-id"] + 1
                schema = self.lake.table.schema
                return EvolveSpec(random_spec(self.rng, schema, known, next_id))
            case "ref":
                name, kind = self.rng.choice(
                    (("side", "branch"), ("other", "branch"), ("t1", "tag"), ("main", "branch"))
                )
                return SetRef(name, kind, self.rng.randrange(8))
            case "map":
                return MapNames()
            case _:
                return Upgrade(self.rng.randint(self.lake.version + 1, 3))

    def _commit(self) -> Commit:
        actions = [self._action() for _ in range(self.rng.choice((1, 1, 1, 2, 3)))]
        return Commit(tuple(actions), self.rng.choice(BRANCHES), inline=self._chance(0.3))

    def _action(self) -> Action:
        rng = self.rng
        kinds = ["append"] * 3 + ["remove", "rewrite"]
        if self.lake.version >= 2:
            kinds += ["equal"] * 3 + ["positions"] * (3 if self.lake.version == 2 else 1)
        if self.lake.version >= 3:
            kinds += ["vectors"] * 3
        match rng.choice(kinds):
            case "append":
                return self._append()
            case "remove":
                return Remove(rng.randrange(8))
            case "rewrite":
                return RewriteManifest(rng.randrange(8))
            case "positions":
                return DeletePositions(
                    self._positions(),
                    layout=layout_of(rng, POSITION_DELETES, self.times, may_lack_ids=False),
                    delete_files=rng.choice((1, 1, 2)),
                    per_file=self._chance(0.3),
                    reference=self._chance(0.5),
                    sort=self._chance(0.7),
                    with_rows=self._chance(0.1),
                    age=self._age(),
                )
            case "vectors":
                return WriteVectors(self._positions(), merge=self._chance(0.8))
            case _:
                return self._delete_equal() or self._append()

    def _age(self) -> int:
        return self.rng.choice((0, 0, 0, 0, 1, 2, 5))

    def _positions(self) -> dict[int, tuple[int, ...]]:
        rng = self.rng
        return {
            rng.randrange(8): tuple(rng.randrange(12) for _ in range(rng.choice((1, 1, 2, 4, 8))))
            for _ in range(rng.choice((1, 1, 2, 3)))
        }

    # --- rows -------------------------------------------------------------------------------------

    def _append(self) -> Append:
        rng, lake = self.rng, self.lake
        schemas_back, specs_back = rng.choice((0, 0, 0, 0, 1, 2)), rng.choice((0, 0, 0, 1))
        schema, spec = lake.schema(schemas_back), lake.spec(specs_back)
        rows = self._rows(schema["fields"], rng.choice((0, 1, 2, 3, 5, 8, 12)))
        append = Append(
            tuple(rows),
            layout_of(rng, schema, self.times, may_lack_ids=covers(lake.mapping, schema)),
            schemas_back=schemas_back,
            specs_back=specs_back,
            age=self._age(),
            text=rng.choice(("large", "view", "dictionary")) if self._chance(0.05) else "",
            forget=tuple(f["id"] for f in walk(schema) if self._chance(0.3))
            if self._chance(0.3)
            else (),
            lineage=self._lineage() if lake.version >= 3 and self._chance(0.2) else (),
        )
        append = self._with_omissions(append, schema, spec)
        return self._within_partitions(append, schema, spec)

    def _rows(self, fields: Sequence[Json], count: int) -> list[Row]:
        """Return rows; now and then a column has one value in all of them."""
        rows = [self._row(fields) for _ in range(count)]
        same = [f["id"] for f in fields if self._chance(0.15)]
        return [{**row, **{i: rows[0][i] for i in same}} for row in rows]

    def _row(self, fields: Sequence[Json]) -> Row:
        return {
            f["id"]: nested_value(self.rng, f, self.lake.seen, self.times, self.nulls)
            for f in fields
        }

    def _lineage(self) -> tuple[tuple[int | None, int | None], ...]:
        rng = self.rng
        return tuple(
            (rng.choice((None, rng.randint(1000, 1 << 40))), rng.choice((None, rng.randint(0, 5))))
            for _ in range(rng.randint(1, 4))
        )

    def _with_omissions(self, append: Append, schema: Json, spec: Json) -> Append:
        """Leave out columns that a reader can fill in, and give what it fills in."""
        identities = {f["source-id"] for f in spec["fields"] if f["transform"] == "identity"}
        omit: list[int] = []
        chance = 0.4 if identities else 0.15
        if self._chance(chance):
            for field in schema["fields"]:
                may_lack = field["id"] in identities or not field["required"]
                if may_lack and self._chance(0.5):
                    omit.append(field["id"])
        constants: dict[int, Plain] = {}
        schemas = self.lake.metadata["schemas"]
        columns = {f["id"]: f for s in schemas for f in s["fields"]}
        for source in sorted(identities & set(columns)):
            in_file = path_to(schema["fields"], source) is not None and source not in omit
            field = columns[source]
            if not in_file and (field["required"] or self._chance(0.8)):
                constants[source] = value_of(
                    self.rng, field["type"], self.lake.seen.get(source, ()), self.times
                )
        return Append(**{**vars(append), "omit": tuple(omit), "constants": constants})

    def _within_partitions(self, append: Append, schema: Json, spec: Json) -> Append:
        """Drop the rows that no partition value can be made of."""
        schemas = self.lake.metadata["schemas"]
        rows = []
        for row in append.rows:
            try:
                partition_of(row, schema, spec, schemas, append)
            except Inapplicable:
                continue
            rows.append(row)
        return Append(**{**vars(append), "rows": tuple(rows)})

    # --- equality deletes -------------------------------------------------------------------------

    def _delete_equal(self) -> DeleteEqual | None:
        rng, lake = self.rng, self.lake
        schemas_back = rng.choice((0, 0, 0, 1))
        schema = lake.schema(schemas_back)
        keys = [f["id"] for f in walk(schema) if _is_key(f, schema)]
        if not keys:
            return None
        chosen = rng.sample(keys, min(len(keys), rng.choice((1, 1, 1, 2, 3))))
        rows = [self._row(schema["fields"]) for _ in range(rng.choice((1, 1, 2, 4)))]
        return DeleteEqual(
            tuple(chosen),
            tuple(rows),
            beside=rng.randrange(8) if self._chance(0.6) else None,
            layout=layout_of(rng, schema, self.times, may_lack_ids=covers(lake.mapping, schema)),
            schemas_back=schemas_back,
            stored=tuple(f["id"] for f in schema["fields"] if self._chance(0.15)),
            age=self._age(),
        )


def _is_key(field: Json, schema: Json) -> bool:
    """Say whether rows may be deleted by a field: floats are outside the spec."""
    type_ = field["type"]
    if not isinstance(type_, str) or type_ in ("float", "double", *DEFAULTLESS):
        return False
    return path_to(schema["fields"], field["id"]) is not None
