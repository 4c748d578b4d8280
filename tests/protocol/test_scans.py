from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import (
    AmbiguousColumn,
    BadCommand,
    ConflictingSnapshot,
    CorruptMetadata,
    NoSnapshotAsOf,
    UnknownColumn,
    UnknownRef,
    UnknownSnapshot,
    Unsupported,
)
from floeberg.protocol.expressions.model import TRUE, BoundPredicate, Op, Predicate
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.metadata_columns import FILE, PARTITION_ID, POS, ROW_ID
from floeberg.protocol.scans import ScanRequest, resolve
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import LongType, NestedField, StringType, StructType
from tests.support.strategies import schemas

STRUCT = {
    "type": "struct",
    "fields": [
        {"id": 11, "name": "lat", "required": False, "type": "double"},
        {"id": 12, "name": "lon", "required": True, "type": "double"},
    ],
}
FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "Region", "required": False, "type": "string"},
    {"id": 3, "name": "place", "required": False, "type": STRUCT},
    {"id": 4, "name": "a.b", "required": False, "type": "int"},
]


def table(fields: list[dict[str, Any]] = FIELDS, **changes: Any) -> TableMetadata:
    """A table whose snapshot 10 (tag `old`) has only `id`, and whose current one is 20."""
    old = {"type": "struct", "schema-id": 0, "fields": fields[:1]}
    new = {"type": "struct", "schema-id": 1, "fields": fields}
    raw: dict[str, Any] = {
        "format-version": 2,
        "location": "file:/t",
        "schemas": [old, new],
        "current-schema-id": 1,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [
                    {"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"}
                ],
            }
        ],
        "default-spec-id": 0,
        "current-snapshot-id": 20,
        "snapshots": [
            {"snapshot-id": 10, "timestamp-ms": 1000, "schema-id": 0, "manifest-list": "a"},
            {"snapshot-id": 20, "timestamp-ms": 2000, "schema-id": 1, "manifest-list": "b"},
        ],
        "snapshot-log": [
            {"timestamp-ms": 1000, "snapshot-id": 10},
            {"timestamp-ms": 2000, "snapshot-id": 20},
        ],
        "refs": {
            "main": {"snapshot-id": 20, "type": "branch"},
            "stale": {"snapshot-id": 10, "type": "branch"},
            "old": {"snapshot-id": 10, "type": "tag"},
        },
    }
    return TableMetadata.parse(json.dumps(raw | changes), "t")


class TestSnapshot:
    @pytest.mark.parametrize(
        ("request_", "snapshot_id", "schema_id"),
        [
            (ScanRequest(), 20, 1),
            (ScanRequest(snapshot_id=10), 10, 0),
            (ScanRequest(snapshot_id=20), 20, 1),
            (ScanRequest(ref="old"), 10, 0),
            (ScanRequest(ref="tag=old"), 10, 0),
            (ScanRequest(ref="stale"), 10, 1),
            (ScanRequest(ref="branch=stale"), 10, 1),
            (ScanRequest(ref="main"), 20, 1),
            (ScanRequest(as_of_ms=1999), 10, 0),
            (ScanRequest(as_of_ms=2000), 20, 1),
        ],
    )
    def test_a_branch_is_read_with_the_current_schema_all_else_with_its_own(
        self, request_, snapshot_id, schema_id
    ):
        scan = resolve(table(), request_)

        assert scan.snapshot is not None
        assert (scan.snapshot.snapshot_id, scan.schema.schema_id) == (snapshot_id, schema_id)
        assert scan.projection == scan.schema
        assert scan.filter == TRUE

    @pytest.mark.parametrize(
        ("request_", "use_snapshot_schema", "schema_id"),
        [
            (ScanRequest(snapshot_id=10), False, 1),
            (ScanRequest(snapshot_id=10), True, 0),
            (ScanRequest(ref="stale"), True, 0),
            (ScanRequest(), True, 1),
        ],
    )
    def test_a_caller_that_knows_better_says_whose_schema_it_is(
        self, request_, use_snapshot_schema, schema_id
    ):
        scan = resolve(table(), request_, use_snapshot_schema=use_snapshot_schema)

        assert scan.schema.schema_id == scan.projection.schema_id == schema_id

    @pytest.mark.parametrize(
        ("request_", "named"),
        [
            (ScanRequest(snapshot_id=10, ref="old"), "snapshot_id 10 and ref 'old'"),
            (ScanRequest(snapshot_id=10, as_of_ms=0), "snapshot_id 10 and as_of 0"),
            (ScanRequest(ref="main", as_of_ms=5), "ref 'main' and as_of 5"),
            (ScanRequest(0, None, 0, "", 0), "snapshot_id 0 and ref '' and as_of 0"),  # type: ignore[arg-type]
        ],
    )
    def test_two_choices_are_a_mistake_even_when_they_agree(self, request_, named):
        with pytest.raises(ConflictingSnapshot, match=f"^{named} exclude each other"):
            resolve(table(), request_)

    def test_what_is_not_there_is_named(self):
        with pytest.raises(UnknownSnapshot):
            resolve(table(), ScanRequest(snapshot_id=11))
        with pytest.raises(UnknownRef):
            resolve(table(), ScanRequest(ref="nope"))
        with pytest.raises(NoSnapshotAsOf):
            resolve(table(), ScanRequest(as_of_ms=999))

    def test_a_snapshot_that_names_no_manifests_is_not_an_empty_one(self):
        bare = {"snapshot-id": 20, "timestamp-ms": 1}
        refs = {"current-snapshot-id": 20, "snapshot-log": [], "refs": {}}

        with pytest.raises(CorruptMetadata, match="snapshot 20 of table file:/t has neither"):
            resolve(table(snapshots=[bare], **refs), ScanRequest())
        assert resolve(table(snapshots=[bare | {"manifests": []}], **refs), ScanRequest())

    @pytest.mark.parametrize("ref", [None, "main", "branch=main"])
    def test_a_table_never_written_to_has_a_schema_and_no_snapshot(self, ref):
        nothing = {"current-snapshot-id": None, "snapshots": [], "snapshot-log": [], "refs": {}}

        scan = resolve(table(**nothing), ScanRequest(ref=ref, select=("id",)))

        assert scan.snapshot is None
        assert scan.projection.names == ("id",)


class TestSelect:
    def select(self, *names: str, **options: Any) -> Schema:
        return resolve(table(), ScanRequest(select=names, **options)).projection

    def test_the_order_of_names_is_that_of_the_answer(self):
        assert self.select("place", "id", "Region").names == ("place", "id", "Region")

    def test_a_name_said_twice_is_one_column(self):
        assert self.select("id", "Region", "id").names == ("id", "Region")

    def test_no_name_is_no_column(self):
        assert self.select().fields == ()

    def test_parts_of_a_column_meet_at_its_first_mention_in_schema_order(self):
        projection = self.select("place.lon", "id", "place.lat")

        assert projection.names == ("place", "id")
        assert projection.fields[0] == table().schema().fields[2]

    def test_a_part_is_pruned_and_keeps_ids_and_nullability(self):
        (place,) = self.select("place.lon").fields

        assert (place.field_id, place.required) == (3, False)
        assert isinstance(place.type, StructType)
        assert [(f.field_id, f.required) for f in place.type.fields] == [(12, True)]

    def test_a_name_with_a_dot_in_it_is_a_column(self):
        assert self.select("a.b").names == ("a.b",)

    def test_names_bind_by_case_unless_told_otherwise(self):
        with pytest.raises(UnknownColumn):
            self.select("region")
        assert self.select("REGION", "PLACE.LAT", case_sensitive=False).names == ("Region", "place")

    def test_a_name_of_two_columns_without_case_is_ambiguous(self):
        fields = [*FIELDS, {"id": 9, "name": "region", "required": False, "type": "int"}]

        with pytest.raises(AmbiguousColumn, match="Region or region"):
            resolve(table(fields), ScanRequest(select=("REGION",), case_sensitive=False))

    def test_an_unknown_name_comes_with_the_nearest_known(self):
        with pytest.raises(UnknownColumn, match=r"no column 'place\.lot' .* it has place\.l"):
            self.select("place.lot")
        with pytest.raises(UnknownColumn, match=r"no column 'Region' .* it has id,"):
            self.select("Region", snapshot_id=10)

    @given(schemas(), st.data())
    @settings(deadline=None)
    def test_any_selection_has_exactly_the_fields_asked_for(self, schema, data):
        metadata = table().model_copy(
            update={"schemas": (schema,), "current_schema_id": schema.schema_id}
        )
        known = {schema.lookup(n).field_id: n for n in _dotted_names(schema.fields)}
        ids = data.draw(st.lists(st.sampled_from(sorted(known)), max_size=4))

        projection = resolve(metadata, ScanRequest(select=tuple(known[i] for i in ids))).projection

        assert projection.fields == schema.prune(ids).fields
        assert [f.field_id for f in projection] == list(
            dict.fromkeys(schema.path(i)[0] for i in ids)
        )
        assert all(projection.find(i) == schema.find(i) for i in ids)


def _dotted_names(fields: tuple[NestedField, ...], prefix: str = "") -> list[str]:
    names = []
    for field in fields:
        names.append(prefix + field.name)
        if isinstance(field.type, StructType):
            names += _dotted_names(field.type.fields, f"{prefix}{field.name}.")
    return names


class TestMetadataColumns:
    def test_stand_where_they_are_named(self):
        scan = resolve(table(), ScanRequest(select=("_pos", "id", "_file", "_row_id")))

        assert scan.projection.fields == (POS, table().schema().fields[0], FILE, ROW_ID)

    def test_are_not_among_all_columns(self):
        assert resolve(table(), ScanRequest()).projection.names == ("id", "Region", "place", "a.b")

    def test_follow_the_case_rule(self):
        with pytest.raises(UnknownColumn):
            resolve(table(), ScanRequest(select=("_FILE",)))
        scan = resolve(table(), ScanRequest(select=("_FILE",), case_sensitive=False))
        assert scan.projection.fields == (FILE,)

    def test_give_way_to_a_column_of_the_table(self):
        fields = [{"id": 1, "name": "_file", "required": True, "type": "long"}]

        scan = resolve(table(fields), ScanRequest(select=("_file",)))

        assert scan.projection.fields == (NestedField(1, "_file", LongType(), required=True),)

    def test_other_reserved_names_are_free(self):
        fields = [{"id": 1, "name": "pos", "required": False, "type": "string"}]

        scan = resolve(table(fields), ScanRequest(select=("pos",)))

        assert scan.projection.fields == (NestedField(1, "pos", StringType()),)

    @pytest.mark.parametrize("name", ["_partition", "_partition.id"])
    def test_the_partition_is_a_struct(self, name):
        (partition,) = resolve(table(), ScanRequest(select=(name,))).projection.fields

        assert partition.field_id == PARTITION_ID
        assert partition.type == StructType((NestedField(1000, "id", LongType()),))

    def test_a_partition_whose_ids_are_columns_too_is_unsupported(self):
        fields = [*FIELDS, {"id": 1000, "name": "late", "required": False, "type": "int"}]

        with pytest.raises(Unsupported, match="field id 1000 is column 'late' too"):
            resolve(table(fields), ScanRequest(select=("late", "_partition")))
        assert resolve(table(fields), ScanRequest(select=("late", "_file"))).projection.names == (
            "late",
            "_file",
        )


def test_the_filter_is_bound_to_the_schema_that_is_read():
    scan = resolve(
        table(),
        ScanRequest(
            filter=Predicate(Op.EQ, "region", ("eu",)), select=("id",), case_sensitive=False
        ),
    )

    assert scan.filter == BoundPredicate(Op.EQ, 2, "Region", StringType(), ("eu",))
    with pytest.raises(UnknownColumn, match="'Region'"):
        resolve(table(), ScanRequest(filter=Predicate(Op.EQ, "Region", ("eu",)), snapshot_id=10))


@pytest.mark.parametrize("request_", [ScanRequest(limit=-1), ScanRequest(split_size=-1)])
def test_negative_numbers_are_refused(request_):
    with pytest.raises(BadCommand, match="-1 is negative"):
        resolve(table(), request_)
