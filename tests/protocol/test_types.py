from __future__ import annotations

import pytest
from hypothesis import given, settings

from floeberg.protocol.errors import CorruptMetadata, Unsupported
from floeberg.protocol.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    children,
    parse_field,
    parse_type,
    type_to_json,
    walk,
)
from tests.support.strategies import PRIMITIVES, schemas_json


@given(PRIMITIVES)
@settings(deadline=None)
def test_the_text_of_a_primitive_is_its_json(text):
    type_ = parse_type(text)

    assert str(type_) == type_to_json(type_)
    assert parse_type(str(type_)) == type_


@given(schemas_json())
@settings(deadline=None)
def test_nested_types_come_back_with_every_key(raw):
    struct = {"type": "struct", "fields": raw["fields"]}

    assert type_to_json(parse_type(struct)) == struct


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("decimal(9,2)", DecimalType(9, 2)),
        ("decimal( 9 , 2 )", DecimalType(9, 2)),
        (" fixed[ 16 ] ", FixedType(16)),
        ("timestamptz_ns", TimestampType(zoned=True, nanos=True)),
        ("geometry", GeometryType("OGC:CRS84")),
        ("geometry()", GeometryType("OGC:CRS84")),
        ("geography(srid:4326)", GeographyType("srid:4326", "spherical")),
        ("geography( srid:4326 ,KARNEY)", GeographyType("srid:4326", "karney")),
    ],
)
def test_parameters_may_have_spaces_and_defaults(text, type_):
    assert parse_type(text) == type_


@pytest.mark.parametrize(
    "raw", ["polygon", "INT", "list<int>", "", {"type": "union"}, {"type": None}, {}]
)
def test_a_type_of_no_version_is_unsupported(raw):
    with pytest.raises(Unsupported, match="column x: type"):
        parse_type(raw, "column x")


@pytest.mark.parametrize(
    "raw",
    [
        None,
        5,
        ["int"],
        "decimal(9)",
        "decimal(0, 0)",
        "decimal(39, 2)",
        "decimal(9, -39)",
        "decimal(9, 99999999999)",
        "decimal(a, b)",
        pytest.param("decimal(" + " " * 100_000 + "x)", id="100,000 spaces"),
        "fixed[x]",
        "fixed[-1]",
        "fixed[99999999999]",
        pytest.param("fixed[" + "9" * 5000 + "]", id="a number of 5000 digits"),
        "fixed[1, 2]",
        "geography(srid:1, bent)",
        {"type": "struct"},
        {"type": "struct", "fields": "id"},
        {"type": "struct", "fields": [5]},
        {"type": "struct", "fields": [{"id": 1, "type": "int"}]},
        {"type": "struct", "fields": [{"id": "1", "name": "a", "type": "int"}]},
        {"type": "struct", "fields": [{"id": True, "name": "a", "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "name": 5, "type": "int"}]},
        {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int", "required": "no"}]},
        {"type": "list", "element": "int"},
        {"type": "map", "key-id": 1, "key": "int", "value-id": 2},
    ],
)
def test_a_type_of_another_shape_is_corrupt(raw):
    with pytest.raises(CorruptMetadata):
        parse_type(raw, "column x")


def test_defaults_and_comments_are_kept_as_they_are():
    raw = {
        "id": 1,
        "name": "a",
        "required": True,
        "type": "decimal(9, 2)",
        "doc": "price",
        "initial-default": "1.00",
        "write-default": "2.00",
    }

    field = parse_field(raw)

    assert (field.doc, field.initial_default, field.write_default) == ("price", "1.00", "2.00")
    assert type_to_json(StructType((field,)))["fields"] == [raw]


def test_walking_sees_elements_keys_and_values():
    inner = StructType((NestedField(5, "x", StringType()),))
    type_ = MapType(1, StringType(), 2, ListType(4, inner), value_required=True)

    assert [(f.field_id, f.name, f.required) for f in walk(type_)] == [
        (1, "key", True),
        (2, "value", True),
        (4, "element", False),
        (5, "x", False),
    ]
    assert children(StringType()) == ()
