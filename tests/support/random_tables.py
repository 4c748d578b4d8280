"""Tables with a random life: appends, deletes of every kind, schema changes, in random order.

Everything comes from the `random.Random` that is handed in: the same one makes the same table.
"""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.lake import (
    Column,
    FileLayout,
    TableWriter,
    WrittenFile,
    list_of,
    map_of,
    required,
    schema,
    struct,
)
from tests.support.plain import Json

COLUMNS = {
    "id": required("long"),
    "k": "int",
    "s": "string",
    "d": "double",
    "f": "float",
    "p": "decimal(9,2)",
    "day": "date",
    "ts": "timestamptz",
    "u": "uuid",
    "st": struct({"a": "int", "b": struct({"c": "string"})}),
    "l": list_of(struct({"x": "int", "y": "string"})),
    "m": map_of("string", "int"),
}
KEYS = (["k"], ["s"], ["k", "s"], ["st.a"], ["p", "day"])
SPECS: tuple[list[Any], ...] = ([], [("k", "identity")], [("s", "bucket[2]")], [("day", "month")])


class RandomTable:
    """A table being written. `rng` decides everything."""

    def __init__(self, rng: random.Random, directory: Path) -> None:
        self.rng = rng
        version = rng.choice([2, 2, 3])
        self.table = TableWriter.create(
            directory, schema(COLUMNS), rng.choice(SPECS), format_version=version
        )
        self.dropped: set[str] = set()
        self.added = 0
        self.rows = 0
        self.renamed = {name: name for name in COLUMNS}

    def live(self, steps: int) -> TableWriter:
        """Take so many steps, an append the first of them; return the table."""
        self._append()
        deletes = [self._delete_positions, self._delete_equal, self._delete_equal]
        if self.table.format_version == 3:
            deletes = [self._write_vectors, self._delete_equal]
        for _ in range(steps - 1):
            self.rng.choice([self._append, *deletes, self._evolve])()
        return self.table

    # --- rows -------------------------------------------------------------------------------------

    def _append(self) -> None:
        rows = [self._row() for _ in range(self.rng.randint(1, 25))]
        layout = FileLayout(
            row_group_size=self.rng.choice([None, 3, 10]),
            codec=self.rng.choice(["zstd", "snappy", "none"]),
            metrics=self.rng.choice(["full", "counts", "none", "truncate(1)"]),
        )
        self.table.append(rows, layout=layout)

    def _row(self) -> dict[str, Any]:
        values = self._values()
        self.rows += 1
        now = {self.renamed[name]: value for name, value in values.items()}
        now |= {f"n{i}": self.rng.choice([None, i]) for i in range(self.added)}
        return {name: v for name, v in now.items() if name not in self.dropped}

    def _values(self) -> dict[str, Any]:
        pick = self.rng.choice
        return {
            "id": self.rows,
            "k": pick([None, 0, 1, 2, -(2**31)]),
            "s": pick([None, "", "a", "ab", "é"]),
            "d": pick([None, float("nan"), 0.0, -0.0, 1.5, float("-inf")]),
            "f": pick([None, float("nan"), 0.0, 2.5]),
            "p": pick([None, Decimal("0.00"), Decimal("-1.25"), Decimal("9999999.99")]),
            "day": pick([None, -40_000, -1, 0, 20_000]),
            "ts": pick([None, -1, 0, 2**50]),
            "u": pick([None, bytes(16), bytes(15) + b"\x01"]),
            "st": pick([None, {"a": None, "b": None}, {"a": 1, "b": {"c": pick([None, "z"])}}]),
            "l": pick([None, [], [None], [{"x": 1, "y": None}, {"x": 2, "y": "q"}]]),
            "m": pick([None, [], [("a", 1), ("b", None)]]),
        }

    # --- deletes ----------------------------------------------------------------------------------

    def _chosen_positions(self) -> dict[WrittenFile | str, list[int]]:
        files = self.table.files()
        chosen = self.rng.sample(files, self.rng.randint(1, len(files)))
        return {
            f: sorted(self.rng.sample(range(f.record_count), self.rng.randint(1, f.record_count)))
            for f in chosen
        }

    def _delete_positions(self) -> None:
        self.table.delete_positions(
            self._chosen_positions(),
            delete_files=self.rng.choice([1, 2]),
            per_file=self.rng.random() < 0.5,
            sort=self.rng.random() < 0.7,
        )

    def _write_vectors(self) -> None:
        self.table.write_vectors(self._chosen_positions())

    def _delete_equal(self) -> None:
        keys = [self.renamed[k] if "." not in k else k for k in self.rng.choice(KEYS)]
        if any(k.split(".")[0] in self.dropped for k in keys):
            return
        rows = [self._row() for _ in range(self.rng.randint(1, 2))]
        self.table.delete_equal(rows, keys)

    # --- schema changes ---------------------------------------------------------------------------

    def _evolve(self) -> None:
        partitioned = {
            f["source-id"] for s in self.table.metadata["partition-specs"] for f in s["fields"]
        }
        sources = {f["name"] for f in self.table.schema["fields"] if f["id"] in partitioned}
        match self.rng.choice(["add", "add", "rename", "drop", "promote"]):
            case "add":
                default = self.rng.choice([None, 7]) if self.table.format_version == 3 else None
                column = Column("long", initial_default=default, write_default=default)
                self.table.add_column(f"n{self.added}", column)
                self.added += 1
            case "rename":
                old = self.rng.choice(["k", "s", "d", "l"])
                if self.renamed[old] not in self.dropped:
                    self.table.rename_column(self.renamed[old], f"{self.renamed[old]}_")
                    self.renamed[old] += "_"
            case "drop":
                name = self.renamed[self.rng.choice(["s", "f", "m", "p"])]
                if name not in self.dropped | sources:
                    self.table.drop_column(name)
                    self.dropped.add(name)
            case "promote":
                old, wider = self.rng.choice(
                    [("k", "long"), ("f", "double"), ("p", "decimal(20,2)")]
                )
                if self.renamed[old] not in self.dropped:
                    self.table.promote_column(self.renamed[old], wider)

    # --- scans ------------------------------------------------------------------------------------

    def scan(self) -> tuple[Json, list[str] | None]:
        """Return a filter (or None) and a selection (or None) over the current columns."""
        names = [f["name"] for f in self.table.schema["fields"]]
        chosen = self.rng.sample(names, self.rng.randint(1, len(names)))
        select = self.rng.choice([None, chosen, ["st.b.c", "id", "_pos"]])
        return self.rng.choice([None, self._filter(2)]), select

    def _filter(self, depth: int) -> Json:
        if depth and self.rng.random() < 0.5:
            op = self.rng.choice(["and", "or", "not"])
            count = 1 if op == "not" else 2
            return [op, *(self._filter(depth - 1) for _ in range(count))]
        leaves: list[Json] = [
            [self.rng.choice(["=", "!=", "<", ">="]), "id", self.rng.randint(0, 40)],
            ["in", "id", [1, 5, 30]],
            ["is-null", "st.b.c"],
            ["not-in", "st.a", [1, 2]],
            [self.rng.choice(["<", "="]), "day", "1970-01-01"],
            [">", "ts", "1970-01-01T00:00:00+00:00"],
        ]
        for old, more in _LEAVES.items():
            name = self.renamed[old]
            if name not in self.dropped:
                leaves += [[leaf[0], name, *leaf[1:]] for leaf in more]
        for i in range(self.added):
            leaves += [["is-null", f"n{i}"], ["=", f"n{i}", 7]]
        return self.rng.choice(leaves)


_LEAVES: dict[str, list[list[Any]]] = {
    "k": [["=", 1], ["!=", 1], ["is-null"], ["in", [0, 2]], ["<", 0]],
    "s": [["=", "a"], ["starts-with", "a"], ["not-starts-with", "a"], [">", ""], ["not-in", ["a"]]],
    "d": [["=", 0.0], ["!=", 1.5], ["is-nan"], ["not-nan"], ["<", 1.0]],
    "f": [["is-nan"], [">", 1.0], ["!=", 2.5]],
    "p": [["=", "-1.25"], [">", "0"], ["is-null"]],
}
