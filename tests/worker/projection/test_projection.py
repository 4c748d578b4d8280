"""Projected rows are what the spec's rules make of the stored ones, a row at a time."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.arrow import arrow_schema, field_id_of
from floeberg.protocol.errors import CorruptDataFile, Unsupported
from floeberg.protocol.name_mapping import MappedField, NameMapping
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    DoubleType,
    FloatType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    UnknownType,
    UuidType,
    VariantType,
)
from floeberg.worker.arrow import Rows
from floeberg.worker.files.stored import prune, stored_fields
from floeberg.worker.projection.assembly import Assembler
from floeberg.worker.projection.constants import array_of
from floeberg.worker.projection.resolution import Resolver, needed_leaves

# --- a schema, what became of it, and rows under it -----------------------------------------------

PRIMITIVES: dict[Type, st.SearchStrategy[Any]] = {
    IntType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    FloatType(): st.floats(width=32, allow_nan=False),
    StringType(): st.text(max_size=3),
    UuidType(): st.binary(min_size=16, max_size=16),
}
PROMOTED: dict[Type, Type] = {IntType(): LongType(), FloatType(): DoubleType()}


@dataclass
class Ids:
    last: int = 0

    def next(self) -> int:
        self.last += 1
        return self.last


@st.composite
def types(draw: st.DrawFn, ids: Ids, depth: int = 2) -> Type:
    kinds = ["primitive"] * 3 + (["struct", "list", "map"] if depth else [])
    match draw(st.sampled_from(kinds)):
        case "struct":
            return StructType(draw(fields(ids, depth - 1)))
        case "list":
            return ListType(ids.next(), draw(types(ids, depth - 1)))
        case "map":
            return MapType(ids.next(), StringType(), ids.next(), draw(types(ids, depth - 1)))
        case _:
            return draw(st.sampled_from(list(PRIMITIVES)))


@st.composite
def fields(draw: st.DrawFn, ids: Ids, depth: int) -> tuple[NestedField, ...]:
    count = draw(st.integers(1, 3))
    return tuple(
        NestedField(field_id := ids.next(), f"f{field_id}", draw(types(ids, depth)))
        for _ in range(count)
    )


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Values as `array_of` takes them, null at every level."""
    match type_:
        case StructType(below):
            some: Any = st.fixed_dictionaries({f.field_id: values(f.type) for f in below})
        case ListType():
            some = st.lists(values(type_.element), max_size=3)
        case MapType():
            keys = st.text(max_size=2)
            some = st.lists(
                st.tuples(keys, values(type_.value)), max_size=2, unique_by=lambda p: p[0]
            )
        case _:
            some = PRIMITIVES[type_]
    return st.none() | some


@st.composite
def evolved(draw: st.DrawFn, type_: Type, ids: Ids) -> Type:
    match type_:
        case StructType(below):
            return StructType(draw(evolved_fields(below, ids)))
        case ListType():
            return replace(type_, element=draw(evolved(type_.element, ids)))
        case MapType():
            return replace(type_, value=draw(evolved(type_.value, ids)))
        case _:
            return draw(st.sampled_from([type_, PROMOTED.get(type_, type_)]))


@st.composite
def evolved_fields(
    draw: st.DrawFn, before: tuple[NestedField, ...], ids: Ids
) -> tuple[NestedField, ...]:
    kept = [f for f in before if draw(st.integers(0, 3))]
    after = [replace(f, name=f"n{f.field_id}", type=draw(evolved(f.type, ids))) for f in kept]
    for _ in range(draw(st.integers(0 if after else 1, 2))):
        after.append(draw(added_field(ids)))
    return tuple(draw(st.permutations(after)))


@st.composite
def added_field(draw: st.DrawFn, ids: Ids) -> NestedField:
    field_id = ids.next()
    name = f"a{field_id}"
    match draw(st.sampled_from(["null", "default", "struct", "default struct"])):
        case "null":
            return NestedField(field_id, name, StringType())
        case "default":
            return NestedField(field_id, name, LongType(), initial_default=7)
        case kind:
            below = (
                NestedField(ids.next(), "x", IntType(), initial_default=1),
                NestedField(ids.next(), "y", StringType()),
            )
            default = {} if kind == "default struct" else None
            return NestedField(field_id, name, StructType(below), initial_default=default)


@dataclass(frozen=True)
class Case:
    before: Schema
    after: Schema
    rows: list[dict[int, Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ids = Ids()
    before = draw(fields(ids, 2))
    after = draw(evolved_fields(before, ids))
    row = st.fixed_dictionaries({f.field_id: values(f.type) for f in before})
    return Case(Schema(before), Schema(after), draw(st.lists(row, max_size=5)))


# --- the plain reading ----------------------------------------------------------------------------


def project_value(value: Any, stored: Type, wanted: Type) -> Any:
    if value is None:
        return None
    match stored, wanted:
        case StructType(), StructType(below):
            return {
                f.name: project_value(value[f.field_id], found.type, f.type)
                if (found := stored.field(f.field_id)) is not None
                else default_of(f)
                for f in below
            }
        case ListType(), ListType():
            return [project_value(v, stored.element, wanted.element) for v in value]
        case MapType(), MapType():
            return [(k, project_value(v, stored.value, wanted.value)) for k, v in value]
        case _:
            return value


def default_of(field: NestedField) -> Any:
    if isinstance(field.type, StructType) and field.initial_default is not None:
        return {f.name: default_of(f) for f in field.type.fields}
    return field.initial_default


def plain(value: Any) -> Any:
    """What `to_pylist` gives, with uuids as their bytes."""
    match value:
        case dict():
            return {k: plain(v) for k, v in value.items()}
        case list():
            return [plain(v) for v in value]
        case tuple():
            return tuple(plain(v) for v in value)
        case _:
            return getattr(value, "bytes", value)


# --- through a file -------------------------------------------------------------------------------


def written(schema: Schema, rows: list[dict[int, Any]], **options: Any) -> pq.ParquetFile:
    target = arrow_schema(schema)
    columns = [
        array_of([row[f.field_id] for row in rows], f.type, target.field(i).type)
        for i, f in enumerate(schema.fields)
    ]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=target), sink, **options)
    return pq.ParquetFile(io.BytesIO(sink.getvalue()))


def projected(
    file: pq.ParquetFile, wanted: Schema, mapping: NameMapping | None = None, **constants: Any
) -> list[dict[str, Any]]:
    resolver = Resolver("f.parquet", {int(k[1:]): v for k, v in constants.items()})
    stored = stored_fields(file.schema_arrow, field_id_of, mapping)
    leaves = needed_leaves(resolver.resolve(wanted.fields, stored), stored)
    sources = resolver.resolve(wanted.fields, prune(stored, leaves))
    assembler = Assembler("f.parquet", CorruptDataFile)
    target = arrow_schema(wanted)
    reader: Any = file.reader  # type: ignore[attr-defined]  # not in the stubs
    rows: list[dict[str, Any]] = []
    for batch in reader.iter_batches(2, row_groups=[0], column_indices=sorted(leaves)):
        arrays = assembler.project(sources, Rows.of_batch(batch))
        assembler.check_required(sources, arrays)
        result = pa.RecordBatch.from_arrays(arrays, schema=target)
        result.validate(full=True)
        rows += [plain(row) for row in result.to_pylist()]
    return rows


@settings(max_examples=200)
@given(cases())
def test_projects_any_evolution_at_any_depth(case: Case) -> None:
    file = written(case.before, case.rows)

    rows = projected(file, case.after)

    before, after = case.before.as_struct(), case.after.as_struct()
    assert rows == [project_value(row, before, after) for row in case.rows]


def test_decodes_no_leaf_that_is_not_wanted() -> None:
    below = StructType((NestedField(2, "b", IntType()), NestedField(3, "c", StringType())))
    schema = Schema((NestedField(1, "a", below), NestedField(4, "d", IntType())))
    stored = stored_fields(arrow_schema(schema), field_id_of)
    resolver = Resolver("f", {})

    def leaves(*ids: int) -> set[int]:
        return set(needed_leaves(resolver.resolve(schema.prune(ids).fields, stored), stored))

    assert leaves(2) == {0}
    assert leaves(3, 4) == {1, 2}
    assert leaves(1) == {0, 1}


def test_a_struct_without_any_stored_field_is_null_where_the_stored_one_is() -> None:
    before = Schema((NestedField(1, "s", StructType((NestedField(2, "old", StringType()),))),))
    after = Schema((NestedField(1, "s", StructType((NestedField(3, "new", IntType()),))),))

    rows = projected(written(before, [{1: {2: "x"}}, {1: None}]), after)

    assert rows == [{"s": {"new": None}}, {"s": None}]


# --- the rules, in their order --------------------------------------------------------------------

PLAIN = Schema((NestedField(1, "id", LongType()),))
MAPPING = NameMapping((MappedField(("id",), 1),))


def without_ids(file: pq.ParquetFile) -> pq.ParquetFile:
    table = file.read()
    stripped = pa.schema([pa.field(f.name, f.type) for f in table.schema])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(table.columns, schema=stripped), sink)
    return pq.ParquetFile(io.BytesIO(sink.getvalue()))


def test_a_stored_id_comes_before_the_partition_value() -> None:
    assert projected(written(PLAIN, [{1: 5}]), PLAIN, i1=9) == [{"id": 5}]


def test_the_partition_value_comes_before_the_name_mapping() -> None:
    file = without_ids(written(PLAIN, [{1: 5}]))

    assert projected(file, PLAIN, MAPPING, i1=9) == [{"id": 9}]
    assert projected(file, PLAIN, MAPPING, i1=None) == [{"id": None}]


def test_the_name_mapping_comes_before_the_default() -> None:
    schema = Schema((NestedField(1, "id", LongType(), initial_default=3),))
    file = without_ids(written(PLAIN, [{1: 5}]))

    assert projected(file, schema, MAPPING) == [{"id": 5}]
    assert projected(file, schema) == [{"id": 3}]


def test_a_required_field_that_nothing_gives_is_an_error() -> None:
    wanted = Schema((NestedField(2, "must", LongType(), required=True),))

    with pytest.raises(CorruptDataFile, match=r"f\.parquet .*'must' \(id 2\)"):
        projected(written(PLAIN, [{1: 5}]), wanted)


def test_a_null_in_a_required_field_is_an_error_unless_its_struct_is_null() -> None:
    below = StructType((NestedField(2, "x", IntType()),))
    strict = StructType((NestedField(2, "x", IntType(), required=True),))
    before, after = (Schema((NestedField(1, "s", t),)) for t in (below, strict))

    assert projected(written(before, [{1: None}]), after) == [{"s": None}]
    with pytest.raises(CorruptDataFile, match=r"'s\.x' is required"):
        projected(written(before, [{1: {2: None}}]), after)


def test_a_null_element_where_the_table_allows_none_is_an_error() -> None:
    before = Schema((NestedField(1, "l", ListType(2, IntType())),))
    after = Schema((NestedField(1, "l", ListType(2, IntType(), element_required=True)),))

    assert projected(written(before, [{1: None}, {1: [3]}]), after) == [{"l": None}, {"l": [3]}]
    with pytest.raises(CorruptDataFile, match=r"'l\.element' is required"):
        projected(written(before, [{1: [3, None]}]), after)


def test_an_unknown_column_is_null_whatever_is_stored() -> None:
    wanted = Schema((NestedField(1, "id", UnknownType()),))

    assert projected(written(PLAIN, [{1: 5}]), wanted) == [{"id": None}]


def test_a_type_that_the_table_cannot_have_meant_is_an_error() -> None:
    with pytest.raises(CorruptDataFile, match="'id'"):
        projected(written(PLAIN, [{1: 5}]), Schema((NestedField(1, "id", StringType()),)))
    wanted = Schema((NestedField(1, "id", ListType(2, LongType())),))
    with pytest.raises(CorruptDataFile, match=r"'id' .*list"):
        projected(written(PLAIN, [{1: 5}]), wanted)


def test_a_list_and_a_map_need_no_ids_below_them() -> None:
    schema = Schema(
        (
            NestedField(1, "l", ListType(2, LongType())),
            NestedField(3, "m", MapType(4, StringType(), 5, LongType())),
        )
    )
    mapping = NameMapping((MappedField(("l",), 1), MappedField(("m",), 3)))
    rows = [{1: [1], 3: [("a", 2)]}]

    assert projected(without_ids(written(schema, rows)), schema, mapping) == [
        {"l": [1], "m": [("a", 2)]}
    ]


def test_a_list_whose_element_has_another_name_is_read() -> None:
    schema = Schema((NestedField(1, "l", ListType(2, LongType())),))
    file = written(schema, [{1: [1, 2]}, {1: None}], use_compliant_nested_type=False)

    assert projected(file, schema) == [{"l": [1, 2]}, {"l": None}]


def test_a_variant_is_read_whole_and_a_shredded_one_refused() -> None:
    schema = Schema((NestedField(1, "v", VariantType()),))
    parts = [pa.field("metadata", pa.binary()), pa.field("value", pa.binary())]
    shredded = [*parts, pa.field("typed_value", pa.int64())]

    def file(fields: list[Any], row: dict[str, Any]) -> pq.ParquetFile:
        column = pa.field("v", pa.struct(fields), metadata={"PARQUET:field_id": "1"})
        sink = io.BytesIO()
        pq.write_table(pa.table([pa.array([row], column.type)], pa.schema([column])), sink)
        return pq.ParquetFile(io.BytesIO(sink.getvalue()))

    row = {"metadata": b"m", "value": b"v"}
    assert projected(file(parts, row), schema) == [{"v": row}]
    with pytest.raises(Unsupported, match="shredded variant 'v'"):
        projected(file(shredded, {**row, "typed_value": 1}), schema)
