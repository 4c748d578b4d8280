"""`plan_files` gives the plan that the plain planner gives, whatever the metadata says."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.expressions.model import Expression
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_columns import DELETE_FILE_PATH_ID
from floeberg.protocol.scans import ResolvedScan, ScanRequest, resolve
from floeberg.protocol.storage import Storage
from floeberg.protocol.types import PrimitiveType
from floeberg.protocol.values import to_bytes
from floeberg.server.planning import ManifestCache, plan_files
from tests.support import filter_strategies as filters
from tests.support.lake import TableWriter, WrittenFile
from tests.support.lake.manifests import Metrics, Spec
from tests.support.plain_planner import comparable, plan_plainly

STORAGE = open_storage()
SPECS: list[list[Any]] = [
    [],
    [("i", "identity")],
    [("s", "truncate[1]"), ("i", "identity")],
    [("d", "identity"), ("l", "bucket[4]")],
    [("dec", "identity"), ("s", "void")],
    [("l", "zorder"), ("i", "truncate[10]")],
]
NAMES = [f"data/{n}.parquet" for n in "abcd"]
COUNTS = st.sampled_from([0, 1, 5, 10, -1])
BOUNDED = [f for f in filters.SCHEMA.fields if isinstance(f.type, PrimitiveType)]


def partition_value(type_: Any) -> st.SearchStrategy[Any]:
    match type_:
        case "int" | "long":
            return st.sampled_from([None, 0, 1])
        case "double":
            return st.sampled_from([None, math.nan, 0.0, -0.0, 1.25])
        case "string":
            return st.sampled_from([None, "a", "b"])
        case _:
            return st.sampled_from([None, Decimal("0.50"), Decimal("999.99")])


@st.composite
def metrics(draw: st.DrawFn) -> Metrics:
    """Counts and bounds of some columns: right or wrong, cut, inverted, of another type."""
    maps: list[dict[int, Any]] = [{}, {}, {}, {}, {}]
    for field in BOUNDED:
        if draw(st.integers(0, 3)):
            continue
        assert isinstance(field.type, PrimitiveType)
        type_ = field.type
        bound = st.one_of(
            *2 * [filters.near(field).map(lambda v, t=type_: to_bytes(t, v))], st.binary(max_size=5)
        )
        for by_column, values in zip(maps, [COUNTS, COUNTS, COUNTS, bound, bound], strict=True):
            if draw(st.integers(0, 3)):
                by_column[field.field_id] = draw(values)
    return Metrics({}, *maps)


@st.composite
def files(draw: st.DrawFn, table: TableWriter, content: int) -> WrittenFile:
    """A data file, or a delete file of any kind that the table's version has."""
    spec_id = draw(st.sampled_from([s["spec-id"] for s in table.metadata["partition-specs"]]))
    spec = Spec.of(table.metadata, spec_id)
    partition = {i: draw(partition_value(type_)) for i, type_ in spec.types.items()}
    names = st.sampled_from(NAMES).map(table.new_location)
    details: dict[str, Any] = {}
    if content == 0:
        name = draw(names)
        details["split_offsets"] = draw(
            st.sampled_from([(), (4,), (4, 300, 700), (4, 4, 9), (300, 200), (4, 5000)])
        )
        details["metrics"] = draw(metrics())
    else:
        name = table.new_location(f"data/{draw(st.integers(0, 10**6))}.del")
        if content == 2:
            details["equality_ids"] = draw(st.sampled_from([(1,), (6,), (1, 6)]))
            details["metrics"] = draw(metrics())
        elif table.format_version >= 3 and draw(st.booleans()):
            details |= {
                "format": "puffin",
                "referenced_data_file": draw(names),
                "content_offset": 4,
                "content_size_bytes": 40,
            }
        elif draw(st.booleans()):
            details["referenced_data_file"] = draw(names)
        else:
            paths = names.map(str.encode) | st.sampled_from([b"file:", b"z", b"\xff"])
            bounds = [{}, {}]
            for by_column in bounds:
                if draw(st.integers(0, 3)):
                    by_column[DELETE_FILE_PATH_ID] = draw(paths)
            details["metrics"] = Metrics({}, {}, {}, {}, *bounds)
    described = {"format": "parquet", "record_count": draw(COUNTS), "size_bytes": 1000}
    return WrittenFile(name, content, spec_id=spec_id, partition=partition, **described | details)


@st.composite
def tables(draw: st.DrawFn, directory: str) -> TableWriter:
    """A table of metadata alone: its files are described and not there."""
    version = draw(st.sampled_from([1, 2, 2, 3]))
    first, *later = draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=3))
    table = TableWriter.create(directory, filters.SCHEMA.to_json(), first, format_version=version)
    table.entries_per_manifest = draw(st.sampled_from([None, 1, 3]))
    for i, spec in enumerate([first, *later]):
        if i:
            table.evolve_spec(spec)
        with table.commit() as commit:
            for content in draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), max_size=6)):
                if content and version == 1:
                    continue
                number = draw(st.sampled_from([None, None, 0, 1]))
                commit.add_file(draw(files(table, content)), number if version > 1 else None)
    return table


def outcome(plan: Callable[[ResolvedScan, Storage], Any], scan: ResolvedScan) -> Any:
    """Return the plan, or what kind of error there is instead."""
    try:
        return comparable(plan(scan, STORAGE))
    except FloebergError as exc:
        return type(exc)


@given(
    data=st.data(),
    expression=filters.expressions,
    split_size=st.sampled_from([None, 0, 1, 300, 5000]),
    limit=st.sampled_from([None, None, 0, 1, 3, 10, 12, 25]),
)
@settings(max_examples=100)
def test_the_plan_is_the_plain_one(
    data: st.DataObject, expression: Expression, split_size: int | None, limit: int | None
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = data.draw(tables(directory))
        metadata = TableMetadata.parse(table.metadata_path.read_bytes(), "generated")
        scans = [
            resolve(metadata, ScanRequest(filter_, split_size=split_size, limit=limit))
            for filter_ in (expression, ScanRequest().filter)
        ]
        cache = ManifestCache()

        for scan in scans:
            plainly = outcome(plan_plainly, scan)
            assert outcome(plan_files, scan) == plainly
            # what was remembered for another filter gives the same
            assert outcome(lambda s, storage: plan_files(s, storage, cache), scan) == plainly
