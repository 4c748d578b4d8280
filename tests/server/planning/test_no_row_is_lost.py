"""Whatever the filter, each row that it is true of is in a planned file, and the residual keeps it.

And the other way round: the residual is true of no row of a planned file that the filter is not
true of.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from floeberg.process.storage import open_storage
from floeberg.protocol.expressions.evaluation import is_true
from floeberg.server.planning import ManifestCache, plan_files
from tests.support.lake import TableWriter, required, schema
from tests.support.scans import scan_of

COLUMNS = schema(
    {
        "id": required("int"),
        "region": "string",
        "day": "date",
        "amount": "double",
        "size": "decimal(9, 2)",
    }
)
NAN = float("nan")
REGIONS = [None, "", "eu", "europe", "us"]
AMOUNTS = [None, NAN, -0.0, 0.0, 1.5, -2.5]


def row(i: int) -> dict[str, Any]:
    day = None if i % 7 == 6 else datetime.date(1969, 12, 25) + datetime.timedelta(days=i)
    return {
        "id": i - 20,
        "region": REGIONS[i % len(REGIONS)],
        "day": day,
        "amount": AMOUNTS[i % len(AMOUNTS)],
        "size": None if i % 9 == 8 else i - 20,
    }


Rows = Mapping[str, list[dict[int, Any]]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableWriter, Rows]:
    """A table of many specs and a promoted column, and what each file holds by field id."""
    directory: Path = tmp_path_factory.mktemp("lake") / "table"
    written = TableWriter.create(directory, COLUMNS)
    specs = [
        [("region", "identity")],
        [("day", "month"), ("id", "truncate[10]")],
        [("region", "truncate[2]"), ("day", "day")],
        [("amount", "identity"), ("id", "bucket[3]")],
        [("size", "truncate[500]"), ("size", "bucket[2]"), ("day", "year")],
        [("region", "void"), ("region", "bucket[2]")],
    ]
    held: dict[str, list[dict[int, Any]]] = {}
    for number, spec in enumerate([None, *specs]):
        if spec is not None:
            written.evolve_spec(spec)
        if number == 3:
            written.promote_column("id", "long")
        for i in range(number, 48, len(specs) + 1):
            for file in written.append([row(i), row((i * 5) % 48)]):
                held[file.location] = []
    plain = scan_of(written)
    for task in plan_files(plain, open_storage()).tasks:
        path = written.local(task.data_file.location)
        held[task.data_file.location] = rows_of(path)
    return written, held


def rows_of(path: Path) -> list[dict[int, Any]]:
    import pyarrow.parquet as pq

    found = pq.read_table(path).to_pylist()
    epoch = datetime.date(1970, 1, 1)
    return [
        {
            1: r["id"],
            2: r["region"],
            3: None if r["day"] is None else (r["day"] - epoch).days,
            4: r["amount"],
            5: r["size"],
        }
        for r in found
    ]


COMPARISONS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
LITERALS = {
    "id": st.integers(-25, 35),
    "region": st.sampled_from(["", "e", "eu", "europe", "europa", "us", "z"]),
    "day": st.integers(-10, 50).map(
        lambda d: str(datetime.date(1970, 1, 1) + datetime.timedelta(days=d))
    ),
    "amount": st.sampled_from(["NaN", "-0.0", 0.0, 1.5, -2.5, "Infinity"]),
    "size": st.integers(-25, 35).map(lambda i: f"{i}.00"),
}


@st.composite
def predicates(draw: st.DrawFn) -> list[Any]:
    column = draw(st.sampled_from(sorted(LITERALS)))
    literal = LITERALS[column]
    kinds = ["compare", "in", "null"]
    kinds += ["starts"] if column == "region" else ["nan"] if column == "amount" else []
    match draw(st.sampled_from(kinds)):
        case "compare":
            return [draw(COMPARISONS), column, draw(literal)]
        case "in":
            op = draw(st.sampled_from(["in", "not-in"]))
            return [op, column, draw(st.lists(literal, min_size=1, max_size=4))]
        case "null":
            return [draw(st.sampled_from(["is-null", "not-null"])), column]
        case "nan":
            return [draw(st.sampled_from(["is-nan", "not-nan"])), column]
        case _:
            op = draw(st.sampled_from(["starts-with", "not-starts-with"]))
            return [op, column, draw(literal)]


FILTERS = st.recursive(
    predicates(),
    lambda inner: (
        st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(list)
        | inner.map(lambda f: ["not", f])
    ),
    max_leaves=4,
)
CACHE = ManifestCache()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(filter_=FILTERS)
def test_rows_that_match_are_in_planned_files(table, filter_):
    written, held = table
    scan = scan_of(written, filter_)

    planned = plan_files(scan, open_storage(), CACHE)

    residuals = {t.data_file.location: t.residual for t in planned.tasks}
    for location, rows in held.items():
        for values in rows:
            wanted = is_true(scan.filter, values)
            kept = location in residuals and is_true(residuals[location], values)
            assert kept == wanted, (location, values)
    if planned.total_records is not None:
        matching = sum(is_true(scan.filter, values) for rows in held.values() for values in rows)
        assert planned.total_records == matching
