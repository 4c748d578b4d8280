from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from floeberg.protocol.arrow import (
    arrow_field,
    arrow_schema,
    arrow_type,
    field_id_of,
    iceberg_type,
    schema_from_arrow,
)
from floeberg.protocol.errors import CorruptMetadata, Unsupported
from floeberg.protocol.name_mapping import NameMapping
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    GeographyType,
    GeometryType,
    IntType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UnknownType,
    UuidType,
    VariantType,
    parse_type,
)
from tests.support.strategies import schemas


def without_defaults(raw: object) -> object:
    """Return a schema's JSON without what Arrow has no place for: defaults and unknown keys."""
    known = {"type", "fields", "id", "name", "required", "doc", "element-id", "element"}
    known |= {"element-required", "key-id", "key", "value-id", "value", "value-required"}
    match raw:
        case dict():
            return {k: without_defaults(v) for k, v in raw.items() if k in known}
        case list():
            return [without_defaults(v) for v in raw]
        case _:
            return raw


@given(schemas())
@settings(max_examples=100, deadline=None)
def test_schemas_come_back(schema):
    back = schema_from_arrow(arrow_schema(schema))

    assert without_defaults(back.to_json()) == without_defaults(schema.to_json())


@given(schemas())
@settings(max_examples=100, deadline=None)
def test_schemas_travel_over_ipc_unchanged(schema):
    arrow = arrow_schema(schema)

    received = pa.ipc.read_schema(pa.py_buffer(arrow.serialize().to_pybytes()))

    assert received.equals(arrow, check_metadata=True)


@given(schemas())
@settings(max_examples=50, deadline=None)
def test_no_rows_of_any_schema_are_a_stream(schema):
    arrow = arrow_schema(schema)
    sink = pa.BufferOutputStream()

    with pa.ipc.new_stream(sink, arrow) as writer:
        # not `empty_table()`, which pyarrow can't make of lists of an extension type
        writer.write_table(pa.Table.from_batches([], arrow))

    with pa.ipc.open_stream(sink.getvalue()) as reader:
        assert reader.read_all().schema.equals(arrow, check_metadata=True)


@pytest.mark.parametrize(
    ("iceberg", "arrow"),
    [
        ("boolean", pa.bool_()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("decimal(38, 10)", pa.decimal128(38, 10)),
        ("date", pa.date32()),
        ("time", pa.time64("us")),
        ("timestamp", pa.timestamp("us")),
        ("timestamptz", pa.timestamp("us", tz="UTC")),
        ("timestamp_ns", pa.timestamp("ns")),
        ("timestamptz_ns", pa.timestamp("ns", tz="UTC")),
        ("string", pa.string()),
        ("binary", pa.binary()),
        ("fixed[5]", pa.binary(5)),
        ("uuid", pa.uuid()),
        ("unknown", pa.null()),
    ],
)
def test_each_primitive_has_one_arrow_type(iceberg, arrow):
    assert arrow_type(parse_type(iceberg)) == arrow
    assert iceberg_type(arrow) == parse_type(iceberg)


def test_fields_carry_ids_nullability_and_comments_on_every_level():
    field = NestedField(
        1,
        "m",
        MapType(2, StringType(), 3, ListType(4, LongType(), element_required=True)),
        required=True,
        doc="counts",
    )

    arrow = arrow_field(field)

    assert not arrow.nullable
    assert arrow.metadata == {b"PARQUET:field_id": b"1", b"doc": b"counts"}
    key, value = arrow.type.key_field, arrow.type.item_field
    element = value.type.value_field
    assert [key.name, value.name, element.name] == ["key", "value", "element"]
    assert [field_id_of(f) for f in (arrow, key, value, element)] == [1, 2, 3, 4]
    assert [key.nullable, value.nullable, element.nullable] == [False, True, False]


@pytest.mark.parametrize(
    ("type_", "name", "metadata"),
    [
        (VariantType(), b"arrow.parquet.variant", None),
        (GeometryType(), b"geoarrow.wkb", {"crs": "OGC:CRS84", "crs_type": "authority_code"}),
        (GeometryType("srid:3857"), b"geoarrow.wkb", {"crs": "3857", "crs_type": "srid"}),
        (GeometryType("projjson:wgs"), b"geoarrow.wkb", {"crs": "projjson:wgs"}),
        (
            GeographyType("EPSG:4326", "karney"),
            b"geoarrow.wkb",
            {"crs": "EPSG:4326", "crs_type": "authority_code", "edges": "karney"},
        ),
    ],
)
def test_what_pyarrow_has_no_class_for_travels_as_a_named_extension(type_, name, metadata):
    arrow = arrow_schema(Schema((NestedField(1, "c", ListType(2, type_)),)))

    element = arrow.field("c").type.value_field

    assert element.metadata[b"ARROW:extension:name"] == name
    raw = element.metadata[b"ARROW:extension:metadata"]
    assert (json.loads(raw) if raw else None) == metadata
    assert schema_from_arrow(arrow).fields[0].type == ListType(2, type_)


@pytest.mark.parametrize(
    ("metadata", "type_"),
    [
        ({}, GeometryType()),
        ({"crs": None}, GeometryType()),
        ({"crs": {"id": {"authority": "EPSG", "code": 3857}}}, GeometryType("EPSG:3857")),
        ({"edges": "planar"}, GeometryType()),
        ({"edges": "spherical"}, GeographyType()),
    ],
)
def test_geometry_of_other_writers_is_understood(metadata, type_):
    field = pa.field(
        "g",
        pa.large_binary(),
        metadata={
            "PARQUET:field_id": "1",
            "ARROW:extension:name": "geoarrow.wkb",
            "ARROW:extension:metadata": json.dumps(metadata),
        },
    )

    assert schema_from_arrow(pa.schema([field])).fields[0].type == type_


@pytest.mark.parametrize("metadata", ["{", "[]", '{"crs": {"type": "x"}}', '{"edges": "bent"}'])
def test_geometry_that_cannot_be_understood_is_a_named_error(metadata):
    field = pa.field(
        "g",
        pa.binary(),
        metadata={
            "PARQUET:field_id": "1",
            "ARROW:extension:name": "geoarrow.wkb",
            "ARROW:extension:metadata": metadata,
        },
    )

    with pytest.raises((CorruptMetadata, Unsupported)):
        schema_from_arrow(pa.schema([field]))


@pytest.mark.parametrize(
    ("arrow", "iceberg"),
    [
        (pa.large_string(), StringType()),
        (pa.string_view(), StringType()),
        (pa.dictionary(pa.int32(), pa.string()), StringType()),
        (pa.run_end_encoded(pa.int32(), pa.int16()), IntType()),
        (pa.uint32(), LongType()),
        (pa.float16(), parse_type("float")),
        (pa.date64(), parse_type("date")),
        (pa.time32("ms"), parse_type("time")),
        (pa.timestamp("s"), TimestampType()),
        (pa.timestamp("ms", tz="Europe/Berlin"), TimestampType(zoned=True)),
        (pa.decimal256(30, 2), DecimalType(30, 2)),
        (pa.decimal32(5, 2), DecimalType(5, 2)),
        (pa.bool8(), BooleanType()),
        (pa.json_(), StringType()),
        (pa.struct([]), StructType(())),
        (pa.float64(), DoubleType()),
    ],
)
def test_types_that_others_write_are_understood(arrow, iceberg):
    assert iceberg_type(arrow) == iceberg


@pytest.mark.parametrize(
    "arrow",
    [
        pa.uint64(),
        pa.duration("s"),
        pa.time64("ns"),
        pa.decimal256(40, 2),
        pa.decimal128(5, -2),
        pa.list_(pa.int32()),
        pa.map_(pa.string(), pa.int32()),
    ],
)
def test_types_without_an_iceberg_type_are_named(arrow):
    with pytest.raises(Unsupported, match="Arrow type"):
        iceberg_type(arrow)


def test_a_column_of_unknown_type_may_be_null_even_if_called_required():
    field = NestedField(1, "u", UnknownType(), required=True)

    assert arrow_field(field).equals(pa.field("u", pa.null()))


@pytest.mark.parametrize(
    ("metadata", "field_id"),
    [
        (None, None),
        ({}, None),
        ({"PARQUET:field_id": "12"}, 12),
        ({"PARQUET:field_id": "0"}, 0),
        ({"PARQUET:field_id": "-1"}, None),
        ({"PARQUET:field_id": "x"}, None),
    ],
)
def test_a_field_id_is_a_number_from_zero_on(metadata, field_id):
    assert field_id_of(pa.field("a", pa.int32(), metadata=metadata)) == field_id


class TestFieldsWithoutIds:
    arrow = pa.schema(
        [
            pa.field("a", pa.int32()),
            pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "7"}),
            pa.field("tags", pa.list_(pa.field("item", pa.string()))),
            pa.field("s", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.int32())])),
        ]
    )

    def test_are_not_the_tables(self):
        assert schema_from_arrow(self.arrow).names == ("b",)

    def test_get_theirs_from_the_name_mapping(self):
        mapping = NameMapping.parse(
            """[{"field-id": 1, "names": ["a"]}, {"field-id": 9, "names": ["b"]},
                {"field-id": 2, "names": ["tags"], "fields":
                  [{"field-id": 3, "names": ["element"]}]},
                {"field-id": 4, "names": ["s"], "fields": [{"field-id": 5, "names": ["y"]}]}]"""
        )

        schema = schema_from_arrow(self.arrow, mapping)

        assert [(f.field_id, f.name, f.type) for f in schema] == [
            (1, "a", IntType()),
            (7, "b", LongType()),
            (2, "tags", ListType(3, StringType())),
            (4, "s", StructType((NestedField(5, "y", IntType()),))),
        ]

    def test_below_a_list_leave_the_list_out(self):
        mapping = NameMapping.parse('[{"field-id": 2, "names": ["tags"]}]')

        assert schema_from_arrow(self.arrow, mapping).names == ("b",)

    def test_an_id_used_twice_is_refused(self):
        mapping = NameMapping.parse('[{"field-id": 7, "names": ["a"]}]')

        with pytest.raises(CorruptMetadata, match="field id 7 is used twice"):
            schema_from_arrow(self.arrow, mapping)


def test_a_parquet_file_keeps_the_ids(tmp_path):
    schema = Schema(
        (
            NestedField(1, "u", UuidType(), required=True),
            NestedField(2, "l", ListType(3, StructType((NestedField(4, "x", IntType()),)))),
        )
    )
    pq.write_table(arrow_schema(schema).empty_table(), tmp_path / "f.parquet")

    stored = pq.read_schema(tmp_path / "f.parquet")

    assert schema_from_arrow(stored) == schema
