from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import (
    CorruptMetadata,
    FloebergError,
    NoSnapshotAsOf,
    UnknownRef,
    UnknownSnapshot,
    Unsupported,
    UnsupportedVersion,
)
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.partitioning import PartitionField
from floeberg.protocol.transforms import Identity
from floeberg.protocol.types import IntType, LongType, StringType
from tests.support.strategies import metadata_bytes, metadata_json

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "region", "required": False, "type": "string"},
    ],
}
OLDER_SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 1,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "int"}],
}


def snapshot(
    snapshot_id: int, timestamp_ms: int, parent: int | None = None, **more: object
) -> dict[str, Any]:
    """Return the JSON of a snapshot; keywords are further keys, with _ for -."""
    return {
        "snapshot-id": snapshot_id,
        "timestamp-ms": timestamp_ms,
        "sequence-number": 1,
        "summary": {"operation": "append"},
        "manifest-list": f"file:/t/metadata/snap-{snapshot_id}.avro",
        **({} if parent is None else {"parent-snapshot-id": parent}),
        **{k.replace("_", "-"): v for k, v in more.items()},
    }


def table(**changes: object) -> dict[str, Any]:
    """Return the JSON of a small v2 table; keywords replace keys, None removes one."""
    raw: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": "84932cbf-f1f6-455c-8cfb-71e7bc04ee3e",
        "location": "file:/t",
        "last-sequence-number": 3,
        "last-updated-ms": 3000,
        "last-column-id": 2,
        "schemas": [SCHEMA, OLDER_SCHEMA],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 30,
        "snapshots": [
            snapshot(10, 1000, schema_id=1),
            snapshot(20, 2000, parent=10),
            snapshot(30, 3000, parent=20),
            snapshot(25, 2500, parent=20),
        ],
        "snapshot-log": [
            {"timestamp-ms": 1000, "snapshot-id": 10},
            {"timestamp-ms": 2000, "snapshot-id": 20},
            {"timestamp-ms": 3000, "snapshot-id": 30},
        ],
        "refs": {
            "main": {"snapshot-id": 30, "type": "branch"},
            "audit": {"snapshot-id": 25, "type": "branch", "min-snapshots-to-keep": 2},
            "v1": {"snapshot-id": 10, "type": "tag", "max-ref-age-ms": 9},
        },
    }
    raw |= {k.replace("_", "-"): v for k, v in changes.items()}
    return {k: v for k, v in raw.items() if v is not None}


def parse(raw: dict[str, Any]) -> TableMetadata:
    return TableMetadata.parse(json.dumps(raw), "t.metadata.json")


class TestRoundTrip:
    @given(metadata_json())
    @settings(max_examples=60, deadline=None)
    def test_loses_nothing(self, raw):
        metadata = parse(raw)

        written = metadata.to_json()

        assert written == raw
        assert parse(written) == metadata

    @given(metadata_json())
    @settings(max_examples=30, deadline=None)
    def test_metadata_for_reading_is_metadata(self, raw):
        reduced = parse(raw).for_reading()

        assert parse(reduced.to_json()) == reduced
        assert reduced.for_reading() == reduced

    def test_gzipped_bytes_read_as_plain_ones_do(self):
        raw = json.dumps(table()).encode()

        assert TableMetadata.parse(gzip.compress(raw), "t") == TableMetadata.parse(raw, "t")

    def test_a_byte_order_mark_is_no_content(self):
        raw = json.dumps(table())

        assert TableMetadata.parse(b"\xef\xbb\xbf" + raw.encode(), "t") == parse(table())

    def test_integers_beyond_float_precision_survive(self):
        metadata = parse(table(last_sequence_number=2**63 - 1, x_big=2**63 + 1))

        assert metadata.last_sequence_number == 9223372036854775807
        assert metadata.to_json()["x-big"] == 9223372036854775809

    def test_a_key_that_is_an_attribute_in_disguise_is_an_unknown_key(self):
        raw = table() | {"table_uuid": "another", "schema_by_id": 1}

        metadata = parse(raw)

        assert metadata.table_uuid == "84932cbf-f1f6-455c-8cfb-71e7bc04ee3e"
        assert metadata.schema_by_id(0).names == ("id", "region")
        assert metadata.to_json() == raw

    def test_null_lists_and_maps_are_empty(self):
        names = [
            "properties",
            "snapshot_log",
            "metadata_log",
            "refs",
            "statistics",
            "partition_statistics",
        ]
        raw = table() | {name.replace("_", "-"): None for name in names}

        metadata = parse(raw)

        assert not any(getattr(metadata, name) for name in names)

    def test_numbers_among_properties_become_text(self):
        metadata = parse(table(properties={"n": 3, "on": True, "off": None}))

        assert metadata.properties == {"n": "3", "on": "true"}


class TestOlderForms:
    def v1(self, **changes: object) -> dict[str, Any]:
        raw: dict[str, Any] = {
            "format-version": 1,
            "location": "file:/t",
            "last-updated-ms": 1,
            "last-column-id": 2,
            "schema": {"type": "struct", "fields": SCHEMA["fields"]},
            "partition-spec": [{"source-id": 2, "name": "region", "transform": "identity"}],
        }
        return raw | {k.replace("_", "-"): v for k, v in changes.items()}

    def test_the_oldest_form_reads_as_todays(self):
        metadata = parse(self.v1())

        assert metadata.schema().names == ("id", "region")
        assert metadata.schema().schema_id == metadata.current_schema_id == 0
        assert metadata.spec().fields == (PartitionField((2,), 1000, "region", Identity()),)
        assert metadata.last_partition_id == 1000
        assert metadata.sort_order_by_id(0).is_unsorted
        assert metadata.last_sequence_number == 0
        assert metadata.table_uuid is None
        assert metadata.current_snapshot() is None

    def test_is_written_with_both_forms(self):
        written = parse(self.v1()).to_json()

        assert written["schema"] == written["schemas"][0]
        assert written["partition-spec"] == written["partition-specs"][0]["fields"]
        assert "last-sequence-number" not in written
        assert parse(written) == parse(self.v1())

    def test_the_singular_schema_says_which_is_current(self):
        raw = self.v1(schemas=[OLDER_SCHEMA, SCHEMA], schema=OLDER_SCHEMA)

        assert parse(raw).schema().schema_id == 1

    def test_the_last_of_several_specs_is_the_default(self):
        specs = [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": []}]

        assert parse(self.v1(partition_specs=specs)).spec().spec_id == 1

    def test_snapshots_may_list_manifests_and_have_no_number(self):
        raw = self.v1(
            snapshots=[{"snapshot-id": 5, "timestamp-ms": 1, "manifests": ["a.avro", "b.avro"]}],
            current_snapshot_id=5,
        )

        current = parse(raw).current_snapshot()

        assert current is not None
        assert (current.manifests, current.manifest_list) == (("a.avro", "b.avro"), None)
        assert (current.sequence_number, current.schema_id) == (0, None)
        assert current.operation == "append"
        assert current.summary == {}

    @pytest.mark.parametrize("key", ["encrypted-key-metadata", "key-metadata"])
    def test_encryption_keys_have_two_spellings(self, key):
        metadata = parse(table(encryption_keys=[{"key-id": "k", key: "c2VjcmV0"}]))

        assert metadata.encryption_keys[0].encrypted_key_metadata == "c2VjcmV0"
        assert metadata.to_json()["encryption-keys"] == [
            {"key-id": "k", "encrypted-key-metadata": "c2VjcmV0"}
        ]

    def test_a_location_may_be_left_out(self):
        assert parse(table(location=None)).location is None


VOID = {"source-id": 1, "transform": "void"}


class TestRefusals:
    @pytest.mark.parametrize("version", [4, 5, 0, "2", None, True, 2.5])
    def test_other_versions_by_name(self, version):
        raw = table() | {"format-version": version}

        with pytest.raises(UnsupportedVersion, match=r"t\.metadata\.json has format-version"):
            parse(raw)

    @given(metadata_bytes(), st.data())
    @settings(max_examples=40, deadline=None)
    def test_every_truncation(self, raw, data):
        cut = data.draw(st.integers(0, len(raw) - 1))

        with pytest.raises(CorruptMetadata, match=r"t\.metadata\.json"):
            TableMetadata.parse(raw[:cut], "t.metadata.json")

    @given(st.integers(0, 10**6))
    @settings(max_examples=20, deadline=None)
    def test_a_truncated_gzip_file(self, where):
        raw = gzip.compress(json.dumps(table()).encode())

        with pytest.raises(CorruptMetadata, match="t is not"):
            TableMetadata.parse(raw[: where % len(raw)], "t")

    @pytest.mark.parametrize("raw", [b"[]", b"7", b"{}", b'"x"', b"\xff\xfe", b"[" * 100_000])
    def test_what_is_no_table_metadata(self, raw):
        with pytest.raises(CorruptMetadata, match="t is not"):
            TableMetadata.parse(raw, "t")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"current_schema_id": 77}, "current-schema-id 77 is not among the schemas"),
            ({"default_spec_id": 5}, "default-spec-id 5 is not among the partition specs"),
            ({"current_snapshot_id": 4242}, "current-snapshot-id 4242 is not among the snapshots"),
            ({"current_snapshot_id": 20}, "branch main is at snapshot 30"),
            ({"current_snapshot_id": None}, "branch main is at snapshot 30"),
            ({"schemas": None}, "neither 'schemas' nor 'schema'"),
            ({"schemas": []}, "neither 'schemas' nor 'schema'"),
            ({"current_schema_id": None}, "'schemas' without 'current-schema-id'"),
            ({"partition_specs": None}, "neither 'partition-specs' nor 'partition-spec'"),
            ({"default_spec_id": None}, "'partition-specs' without 'default-spec-id'"),
            ({"schemas": 5}, "schemas"),
            ({"schemas": [5]}, "schema"),
            ({"partition_specs": [5], "last_partition_id": None}, "partition"),
            ({"partition_specs": 5, "last_partition_id": None}, "partition"),
            ({"sort_orders": [{"order-id": 0}]}, "sort order"),
            ({"snapshots": [{"snapshot-id": 30}]}, "timestamp-ms"),
            ({"snapshots": {"a": 1}}, "snapshots"),
            ({"refs": {"main": {"snapshot-id": 30, "type": "fork"}}}, "refs"),
            ({"properties": "x"}, "properties"),
        ],
    )
    def test_contradictions_by_file_and_key(self, changes, message):
        with pytest.raises(CorruptMetadata, match=r"t\.metadata\.json") as caught:
            parse(table(**changes))

        assert message in str(caught.value)

    def test_an_unknown_type_by_file_and_column(self):
        schema = {**SCHEMA, "fields": [{"id": 1, "name": "shape", "type": "polygon"}]}

        with pytest.raises(Unsupported, match=r"t\.metadata\.json.*'shape'.*'polygon'"):
            parse(table(schemas=[schema]))

    def test_a_schema_nested_beyond_reason(self):
        raw = json.dumps(table(schemas=["@"])).replace('"@"', _nested_schema(5000))

        with pytest.raises(CorruptMetadata, match=r"t is not valid JSON|nested too deeply"):
            TableMetadata.parse(raw, "t")

    @pytest.mark.parametrize(
        ("key", "change"),
        [
            ("snapshots", {"timestamp-ms": 1}),
            ("schemas", {"fields": []}),
            ("partition-specs", {"fields": [VOID | {"field-id": 1999, "name": "other"}]}),
            ("sort-orders", {"fields": [VOID | {"direction": "asc", "null-order": "nulls-first"}]}),
        ],
    )
    def test_two_things_under_one_id(self, key, change):
        first = table()[key][-1]

        with pytest.raises(CorruptMetadata, match=r"t\.metadata\.json has two .*s with the id"):
            parse(table(**{key.replace("-", "_"): [*table()[key], {**first, **change}]}))
        parse(table(**{key.replace("-", "_"): [*table()[key], first]}))  # said twice, but the same

    def test_half_a_surrogate_pair(self):
        with pytest.raises(CorruptMetadata, match=r"t\.metadata\.json.*no Unicode"):
            parse(table(properties={"owner": "\udc00"}))

        whole = table(properties={"owner": "\U0001f9ca"})  # which json.dumps writes as a pair
        assert parse(whole).properties["owner"] == "\U0001f9ca"

    def test_a_message_holds_no_property(self):
        with pytest.raises(CorruptMetadata) as caught:
            parse(table(properties={"s3.secret-access-key": ["hunter2"]}))

        assert "hunter2" not in str(caught.value)

    @given(metadata_json(), st.data())
    @settings(max_examples=150, deadline=None)
    def test_a_value_of_another_kind_is_a_named_error_or_read(self, raw, data):
        place, key = data.draw(st.sampled_from(list(_places(raw))))
        place[key] = data.draw(
            st.sampled_from([None, 5, -1, "x", [], {}, [5], {"a": 5}, [None], True, 1e300])
        )

        try:
            metadata = parse(raw)
        except FloebergError:
            return
        assert parse(metadata.to_json()) == metadata


def _places(raw: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container within `raw` with each of its keys or indices."""
    keys = raw if isinstance(raw, dict) else range(len(raw))
    for key in keys:
        yield raw, key
        if isinstance(raw[key], dict | list):
            yield from _places(raw[key])


def _nested_schema(depth: int) -> str:
    lists = "".join(
        f'{{"type":"list","element-required":false,"element-id":{i + 10},"element":'
        for i in range(depth)
    )
    column = f'{{"id":1,"name":"a","required":false,"type":{lists}"int"{"}" * depth}}}'
    return f'{{"type":"struct","schema-id":0,"fields":[{column}]}}'


class TestLookups:
    def test_schemas(self):
        metadata = parse(table())

        assert [f.type for f in metadata.schema()] == [LongType(), StringType()]
        assert [f.type for f in metadata.schema_by_id(1)] == [IntType()]
        assert metadata.schema_for_snapshot(metadata.snapshot_by_id(10)).schema_id == 1
        assert metadata.schema_for_snapshot(metadata.snapshot_by_id(20)).schema_id == 0

    def test_what_the_table_itself_names_wrongly_is_its_fault(self):
        metadata = parse(table())

        with pytest.raises(CorruptMetadata, match="file:/t has no schema with id 9"):
            metadata.schema_by_id(9)
        with pytest.raises(CorruptMetadata, match="file:/t has no partition spec with id 9"):
            metadata.spec_by_id(9)
        with pytest.raises(CorruptMetadata, match="file:/t has no sort order with id 9"):
            metadata.sort_order_by_id(9)

    def test_the_name_mapping_is_a_property(self):
        text = json.dumps([{"field-id": 1, "names": ["id"]}])

        mapping = parse(table(properties={"schema.name-mapping.default": text})).name_mapping()

        assert mapping is not None
        assert mapping.fields[0].field_id == 1
        assert parse(table()).name_mapping() is None

    def test_no_repr_shows_a_property_or_a_key(self):
        metadata = parse(
            table(
                properties={"secret": "hunter2"},
                encryption_keys=[
                    {"key-id": "k", "key-metadata": "hunter2", "properties": {"a": "hunter2"}}
                ],
                statistics=[
                    {
                        "snapshot-id": 30,
                        "statistics-path": "s.puffin",
                        "file-size-in-bytes": 1,
                        "file-footer-size-in-bytes": 1,
                        "key-metadata": "hunter2",
                        "blob-metadata": [],
                    }
                ],
            )
        )

        shown = f"{metadata!r} {metadata} {metadata.encryption_keys} {metadata.statistics}"

        assert "hunter2" not in shown
        assert "EncryptionKey(key_id='k'" in shown


class TestSnapshots:
    @pytest.mark.parametrize(
        "none", [{"current-snapshot-id": None}, {"current-snapshot-id": -1}, {}]
    )
    def test_there_may_be_no_current_one(self, none):
        raw = table(refs=None, current_snapshot_id=None, snapshots=None, snapshot_log=None) | none

        metadata = parse(raw)

        assert metadata.current_snapshot_id is None
        assert metadata.current_snapshot() is None
        assert metadata.snapshot_for_ref("main") is None
        assert metadata.snapshot_for_ref("branch=main") is None

    def test_by_id(self):
        metadata = parse(table())

        assert metadata.snapshot_by_id(25).timestamp_ms == 2500
        with pytest.raises(UnknownSnapshot, match=r"no snapshot 26 .* 20, 25, 30"):
            metadata.snapshot_by_id(26)

    @pytest.mark.parametrize(
        ("name", "snapshot_id"),
        [
            ("main", 30),
            ("branch=main", 30),
            ("audit", 25),
            ("branch=audit", 25),
            ("v1", 10),
            ("tag=v1", 10),
        ],
    )
    def test_by_ref(self, name, snapshot_id):
        found = parse(table()).snapshot_for_ref(name)

        assert found is not None
        assert found.snapshot_id == snapshot_id

    def test_main_is_there_without_refs(self):
        metadata = parse(table(refs=None))

        found = metadata.snapshot_for_ref("main")

        assert found is not None
        assert found.snapshot_id == 30
        ref = metadata.ref_by_name("main")
        assert ref is not None
        assert ref.is_branch

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("nope", "no branch or tag 'nope' in the table; it has audit, main, v1"),
            ("tag=audit", "no tag 'audit' in the table; it has v1"),
            ("branch=v1", "no branch 'v1' in the table; it has audit, main"),
            ("tag=main", "no tag 'main' in the table; it has v1"),
            ("Main", "no branch or tag 'Main' in the table; it has main, audit, v1"),
            ("tag=", "no tag '' in the table"),
        ],
    )
    def test_an_unknown_ref_by_kind(self, name, message):
        with pytest.raises(UnknownRef, match=message):
            parse(table()).snapshot_for_ref(name)

    def test_a_ref_may_be_called_like_a_kind(self):
        refs = {
            "main": {"snapshot-id": 30, "type": "branch"},
            "tag=x": {"snapshot-id": 10, "type": "tag"},
            "branch": {"snapshot-id": 20, "type": "tag"},
        }
        metadata = parse(table(refs=refs))

        for name, snapshot_id in [("tag=x", 10), ("tag=tag=x", 10), ("branch", 20)]:
            found = metadata.snapshot_for_ref(name)
            assert found is not None
            assert found.snapshot_id == snapshot_id

    def test_a_ref_to_a_missing_snapshot_is_the_tables_fault(self):
        refs = {
            "main": {"snapshot-id": 30, "type": "branch"},
            "old": {"snapshot-id": 7, "type": "TAG"},
        }
        metadata = parse(table(refs=refs))

        with pytest.raises(CorruptMetadata, match="tag 'old' is at snapshot 7, which is not among"):
            metadata.snapshot_for_ref("old")


class TestAsOf:
    @pytest.mark.parametrize(
        ("timestamp_ms", "snapshot_id"),
        [(1000, 10), (1999, 10), (2000, 20), (2600, 20), (3000, 30), (10**15, 30)],
    )
    @pytest.mark.parametrize("log", ["with", "without"])
    def test_is_what_was_current_then(self, timestamp_ms, snapshot_id, log):
        raw = table() if log == "with" else table(snapshot_log=None)

        # snapshot 25 of the branch is never current, though it is younger than 20
        assert parse(raw).snapshot_as_of(timestamp_ms).snapshot_id == snapshot_id

    def test_the_log_wins_over_ancestry_after_a_rollback(self):
        raw = table()
        raw["snapshot-log"].append({"timestamp-ms": 4000, "snapshot-id": 10})
        raw["current-snapshot-id"] = raw["refs"]["main"]["snapshot-id"] = 10

        metadata = parse(raw)

        assert metadata.snapshot_as_of(3999).snapshot_id == 30
        assert metadata.snapshot_as_of(4000).snapshot_id == 10

    def test_before_the_first_there_is_none(self):
        with pytest.raises(
            NoSnapshotAsOf, match=r"log begins at 1970-01-01T00:00:01\.000Z \(1000 ms"
        ):
            parse(table()).snapshot_as_of(999)
        with pytest.raises(
            NoSnapshotAsOf, match=r"to have been current is 10 of 1970-01-01T00:00:01\.000Z"
        ):
            parse(table(snapshot_log=[])).snapshot_as_of(999)

    def test_a_table_never_written_to_has_none(self):
        empty = table(refs=None, current_snapshot_id=None, snapshots=None, snapshot_log=None)

        with pytest.raises(NoSnapshotAsOf, match="the table has no snapshots"):
            parse(empty).snapshot_as_of(10**15)

    def test_an_expired_one_is_named(self):
        raw = table()
        raw["snapshots"] = [s for s in raw["snapshots"] if s["snapshot-id"] != 20]

        with pytest.raises(NoSnapshotAsOf, match="snapshot 20, current then, has been expired"):
            parse(raw).snapshot_as_of(2000)

    def test_a_circle_of_parents_ends(self):
        raw = table(snapshot_log=None)
        raw["snapshots"][0]["parent-snapshot-id"] = 30

        with pytest.raises(NoSnapshotAsOf):
            parse(raw).snapshot_as_of(1)


class TestForReading:
    def test_keeps_what_a_reader_needs_and_no_past(self):
        metadata = parse(table(properties={"a": "b"}, x_vendor={"deep": 1}))

        reduced = metadata.for_reading()

        assert reduced.schemas == metadata.schemas
        assert reduced.partition_specs == metadata.partition_specs
        assert reduced.sort_orders == metadata.sort_orders
        assert reduced.properties == {"a": "b"}
        assert reduced.current_snapshot() == metadata.current_snapshot()
        assert list(reduced.refs) == ["main"]
        assert reduced.model_extra == {}
        assert len(reduced.snapshots) == 1
        assert reduced.snapshot_log == reduced.metadata_log == reduced.statistics == ()
        assert parse(reduced.to_json()) == reduced

    def test_of_another_snapshot_has_that_one(self):
        metadata = parse(table())

        reduced = metadata.for_reading(metadata.snapshot_by_id(10))

        assert [s.snapshot_id for s in reduced.snapshots] == [10]
        assert reduced.current_snapshot_id == 10
        assert list(reduced.refs) == ["v1"]
        assert parse(reduced.to_json()) == reduced

    def test_of_a_table_never_written_to(self):
        empty = table(refs=None, current_snapshot_id=None, snapshots=None, snapshot_log=None)

        assert parse(empty).for_reading().current_snapshot() is None
