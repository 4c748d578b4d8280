from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.name_mapping import MappedField, NameMapping


def mapped_fields(children: st.SearchStrategy[list[MappedField]]) -> st.SearchStrategy[MappedField]:
    return st.builds(
        MappedField,
        # names of one place must differ: the id of the list element makes them
        st.lists(st.uuids().map(str), max_size=2).map(tuple),
        st.none() | st.integers(0, 2**31),
        children.map(tuple),
    )


mappings = st.recursive(
    st.lists(mapped_fields(st.just([])), max_size=3),
    lambda inner: st.lists(mapped_fields(inner), max_size=3),
    max_leaves=8,
).map(lambda fields: NameMapping(tuple(fields)))


@given(mappings)
@settings(deadline=None)
def test_round_trips(mapping):
    assert NameMapping.parse(json.dumps(mapping.to_json())) == mapping


def test_finds_columns_by_any_of_their_names_level_by_level():
    mapping = NameMapping.parse(
        """[ { "field-id": 1, "names": ["id", "record_id"] },
             { "field-id": 2, "names": ["a.b"] },
             { "names": ["gone"] },
             { "field-id": 3, "names": [] },
             { "field-id": 4, "names": ["points"], "fields": [
               { "field-id": 5, "names": ["element"], "fields": [
                 { "field-id": 6, "names": ["lat", "latitude"] } ] } ] } ]"""
    )

    found = {
        path: field.field_id if (field := mapping.find(path)) else "none"
        for path in [
            ("id",),
            ("record_id",),
            ("a.b",),
            ("a", "b"),
            ("gone",),
            ("points", "element", "latitude"),
            ("points", "latitude"),
            ("nope", "element"),
        ]
    }

    assert found == {
        ("id",): 1,
        ("record_id",): 1,
        ("a.b",): 2,
        ("a", "b"): "none",
        ("gone",): None,
        ("points", "element", "latitude"): 6,
        ("points", "latitude"): "none",
        ("nope", "element"): "none",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}",
        "[1]",
        "[{}]",
        '[{"names": "id"}]',
        '[{"names": [1]}]',
        '[{"names": ["a"], "field-id": "1"}]',
        '[{"names": ["a"], "field-id": true}]',
        '[{"names": ["a"], "fields": 5}]',
        '[{"names": ["a"], "field-id": 1}, {"names": ["a"], "field-id": 2}]',
        "[" * 100_000,
    ],
)
def test_refuses_what_is_no_mapping(text):
    with pytest.raises(CorruptMetadata, match=r"schema\.name-mapping\.default: "):
        NameMapping.parse(text)


def test_a_name_repeated_within_one_field_is_harmless():
    mapping = NameMapping.parse('[{"names": ["a", "a"], "field-id": 1, "fields": null}]')

    assert mapping.fields == (MappedField(("a",), 1),)
