from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import AmbiguousColumn, CorruptMetadata, UnknownColumn
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import (
    IntType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    walk,
)
from tests.support.strategies import schemas, schemas_json

POINT = StructType((NestedField(21, "Lat", IntType()), NestedField(22, "lon", IntType())))
COUNTS = StructType((NestedField(43, "n", IntType()), NestedField(44, "m", IntType())))
SCHEMA = Schema(
    (
        NestedField(1, "id", IntType(), required=True),
        NestedField(2, "place", POINT),
        NestedField(3, "tags", ListType(31, StructType((NestedField(32, "k", StringType()),)))),
        NestedField(4, "counts", MapType(41, StringType(), 42, COUNTS)),
        NestedField(5, "place.lon", IntType()),
        NestedField(6, "ID", IntType()),
    ),
    schema_id=3,
    identifier_field_ids=(1,),
)


@given(schemas_json(7))
@settings(deadline=None)
def test_json_comes_back(raw):
    assert Schema.from_json(raw).to_json() == raw


def test_identifier_fields_come_back():
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA
    assert SCHEMA.to_json()["identifier-field-ids"] == [1]


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {"type": "struct"},
        {"fields": 5},
        {"fields": [], "schema-id": "x"},
        {"fields": [], "schema-id": None},
        {"fields": [], "identifier-field-ids": 5},
        {"fields": [], "identifier-field-ids": ["x"]},
    ],
)
def test_another_shape_is_corrupt(raw):
    with pytest.raises(CorruptMetadata, match="schema"):
        Schema.from_json(raw)


def test_an_id_used_twice_is_corrupt():
    inner = {"type": "struct", "fields": [{"id": 1, "name": "b", "type": "int"}]}

    with pytest.raises(CorruptMetadata, match="field id 1 is used twice"):
        Schema.from_json({"fields": [{"id": 1, "name": "a", "type": inner}]})


class TestLookup:
    @pytest.mark.parametrize(
        ("name", "field_id"),
        [
            ("id", 1),
            ("ID", 6),
            ("place", 2),
            ("place.Lat", 21),
            ("place.lon", 5),  # a column's whole name hides the field below `place`
            ("tags.element", 31),
            ("tags.element.k", 32),
            ("counts.key", 41),
            ("counts.value.n", 43),
        ],
    )
    def test_dotted_names_reach_everywhere(self, name, field_id):
        assert SCHEMA.lookup(name).field_id == field_id

    @pytest.mark.parametrize(
        ("name", "field_id"),
        [("PLACE.LAT", 21), ("Tags.Element.K", 32), ("id", 1), ("ID", 6), ("PLACE.LON", 5)],
    )
    def test_without_case_an_exact_match_wins(self, name, field_id):
        assert SCHEMA.lookup(name, case_sensitive=False).field_id == field_id

    def test_without_case_two_inexact_matches_are_an_error(self):
        with pytest.raises(AmbiguousColumn, match="it may be id or ID"):
            SCHEMA.lookup("Id", case_sensitive=False)

    @pytest.mark.parametrize("name", ["", "Place", "place.", ".id", "place.lat", "tags.k"])
    def test_an_unknown_name_is_an_error(self, name):
        with pytest.raises(UnknownColumn, match="in the schema that is read"):
            SCHEMA.lookup(name)

    def test_an_unknown_name_below_a_column_brings_near_ones(self):
        with pytest.raises(UnknownColumn, match=r"it has tags\.element\.k"):
            SCHEMA.lookup("tags.elem.k")

    @given(schemas())
    @settings(deadline=None)
    def test_every_field_is_found_by_its_id(self, schema):
        for field in walk(schema.as_struct()):
            assert schema.find(field.field_id) == field
            assert schema.path(field.field_id)[-1] == field.field_id
            assert schema.name_of(field.field_id).endswith(field.name)
        assert schema.find(10**6) is None


class TestPrune:
    def test_columns_come_in_the_order_asked_for(self):
        assert SCHEMA.prune([5, 1]).names == ("place.lon", "id")
        assert SCHEMA.prune([]).fields == ()
        assert SCHEMA.prune([5]).schema_id == 3

    def test_a_field_brings_its_path_and_what_is_below(self):
        (place,) = SCHEMA.prune([22]).fields
        assert place == NestedField(2, "place", StructType((NestedField(22, "lon", IntType()),)))
        assert SCHEMA.prune([2]).fields == (SCHEMA.fields[1],)
        assert SCHEMA.prune([31]).fields == (SCHEMA.fields[2],)

    def test_a_map_keeps_its_key(self):
        (counts,) = SCHEMA.prune([43]).fields

        assert counts.type == MapType(
            41, StringType(), 42, StructType((NestedField(43, "n", IntType()),))
        )

    @given(schemas(), st.data())
    @settings(deadline=None)
    def test_all_that_was_asked_for_is_there_and_no_other_leaf(self, schema, data):
        every = [f.field_id for f in walk(schema.as_struct())]
        wanted = data.draw(st.lists(st.sampled_from(every), max_size=4))

        pruned = schema.prune(wanted)

        kept = {f.field_id for f in walk(pruned.as_struct())}
        assert all(pruned.find(i) == schema.find(i) for i in wanted)
        assert kept <= set(every)
        assert pruned.prune(wanted) == pruned
