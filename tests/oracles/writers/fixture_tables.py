"""Tables by the tests' own fixture writer: do other engines read what it means?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.oracles.scans import Scan, where
from tests.oracles.workshop import Make, Workshop
from tests.oracles.writers.java_tables import (
    KEYED,
    KEYED_SCANS,
    NANOS,
    TYPE_ROWS,
    TYPES,
    keyed,
)
from tests.oracles.writers.rows import UTC, people
from tests.oracles.writers.spark_changes import LINEAGE, PEOPLE_SCANS, POSITIONS
from tests.support.lake import (
    Column,
    FileLayout,
    TableWriter,
    list_of,
    required,
    schema,
)
from tests.support.lake import struct as struct_of

PEOPLE = schema({"id": required("long"), "name": "string", "age": "int", "region": "string"})


def _people(shop: Workshop, version: int = 2, spec: Sequence[Any] = ()) -> TableWriter:
    return TableWriter.create(shop.directory, PEOPLE, spec, format_version=version)


def _positions(format: str = "parquet", **options: Any) -> Make:
    """Position deletes of two commits over several data files, in any layout."""

    def make(shop: Workshop) -> Sequence[Scan]:
        table = _people(shop)
        first, second = [
            table.append(people(i, i + 20), layout=FileLayout(format=format, row_group_size=6))[0]
            for i in (0, 20)
        ]
        layout = FileLayout(format=format)
        table.delete_positions({first: [7, 0, 19], second: [3]}, layout=layout, **options)
        table.delete_positions({second: [4, 3, 18]}, layout=layout, **options)
        table.append(people(40, 45))
        return [*PEOPLE_SCANS, POSITIONS]

    return make


def positions_with_rows(shop: Workshop) -> Sequence[Scan]:
    table = _people(shop)
    rows = people(0, 10)
    (file,) = table.append(rows)
    deleted = rows.to_pylist()
    table.delete_positions({file: [2, 5]}, rows={file: [deleted[2], deleted[5]]})
    return PEOPLE_SCANS


def positions_partitioned(shop: Workshop) -> Sequence[Scan]:
    """Deletes in each partition, and before and after the spec changes."""
    table = _people(shop, spec=[("region", "identity")])
    files = table.append(people(0, 15))
    table.delete_positions({f: [0] for f in files})
    table.evolve_spec([("id", "bucket[2]")])
    later = table.append(people(15, 30))
    table.delete_positions({files[0]: [1], later[0]: [1]})
    return PEOPLE_SCANS


def vectors(shop: Workshop) -> Sequence[Scan]:
    """Vectors of several data files in one Puffin file, one of them replaced later."""
    table = _people(shop, version=3)
    first, second = (table.append(people(i, i + 20))[0] for i in (0, 20))
    table.write_vectors({first: [0, 7, 19], second: [3]})
    table.write_vectors({second: [4, 18]})
    table.append(people(40, 45))
    return [*PEOPLE_SCANS, POSITIONS, LINEAGE]


def vectors_over_positions(shop: Workshop) -> Sequence[Scan]:
    """Position deletes from before an upgrade, which a vector replaces for one of two files."""
    table = _people(shop)
    first, second = (table.append(people(i, i + 20))[0] for i in (0, 20))
    table.delete_positions({first: [1, 2], second: [1, 2]})
    shop.sql("alter table {t} set tblproperties ('format-version' = '3')")
    table = TableWriter.open(shop.directory)
    table.write_vectors({first: [1, 2, 9]})
    return [*PEOPLE_SCANS, POSITIONS]


def stored_lineage(shop: Workshop) -> Sequence[Scan]:
    """Row ids that a file stores, beside rows that inherit theirs."""
    table = _people(shop, version=3)
    table.append(people(0, 6))
    rows: list[Mapping[str, Any]] = [
        {"id": 10, "name": "old", "_row_id": 2, "_last_updated_sequence_number": 1},
        {"id": 11, "name": "moved", "_row_id": 3, "_last_updated_sequence_number": None},
        {"id": 12, "name": "new", "_row_id": None, "_last_updated_sequence_number": None},
    ]
    with table.commit() as commit:
        commit.append(rows, stored_lineage=True)
    return [Scan(), LINEAGE]


def _equality(version: int, format: str = "parquet") -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        table = TableWriter.create(shop.directory, KEYED, format_version=version)
        layout = FileLayout(format=format)
        table.append(keyed(0, 20), layout=layout)
        table.delete_equal([{"id": 3}, {"id": 4}], ["id"], layout=layout)
        table.append(keyed(3, 6), layout=layout)
        table.delete_equal(
            [{"k": None, "name": "n1"}, {"k": 1, "name": None}], ["k", "name"], layout=layout
        )
        table.delete_equal([{"name": "n2"}], ["name"], stored=["day"], layout=layout)
        table.append(keyed(20, 30), layout=layout)
        return KEYED_SCANS

    return make


def equality_in_a_partition(shop: Workshop) -> Sequence[Scan]:
    """One delete in a partition, one global, under a spec without fields."""
    table = TableWriter.create(shop.directory, KEYED, [("day", "identity")])
    table.append(keyed(0, 12))
    table.delete_equal([{"k": 0}], ["k"], partition={"day": dt.date(2024, 1, 1)})
    table.delete_equal([{"name": "n1"}], ["name"])
    table.append(keyed(12, 18))
    return KEYED_SCANS


def all_deletes(shop: Workshop) -> Sequence[Scan]:
    """Positions, two sets of keys, and later a vector, on one file."""
    table = TableWriter.create(shop.directory, KEYED, format_version=3)
    (file,) = table.append(keyed(0, 20))
    table.delete_equal([{"id": 3}, {"id": 4}], ["id"])
    table.delete_equal([{"k": 5}, {"k": None}], ["k"])
    table.write_vectors({file: [0, 1, 3]})
    table.append(keyed(20, 24))
    return KEYED_SCANS


def _types(version: int, format: str) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        table = TableWriter.create(shop.directory, schema(TYPES), format_version=version)
        table.append(TYPE_ROWS, layout=FileLayout(format=format))
        return [Scan(), *where(("is-null", "t"), (">", "id", 5))]

    return make


def partitions_nanos(shop: Workshop) -> Sequence[Scan]:
    """Transforms of nanoseconds, which Iceberg's generic writer fails at."""
    columns = schema({**TYPES, **NANOS})
    spec = [("ns", "day"), ("nz", "hour"), ("t", "bucket[3]"), ("u", "identity")]
    table = TableWriter.create(shop.directory, columns, spec, format_version=3)
    table.append(TYPE_ROWS)
    near = dt.datetime(2023, 11, 14, 22, 13, 20)
    return [
        Scan(),
        *where(
            (">", "ns", near),
            ("<=", "ns", near),
            ("is-null", "ns"),
            (">", "nz", near.replace(tzinfo=UTC)),
            ("=", "t", TYPE_ROWS[5]["t"]),
            ("=", "u", TYPE_ROWS[5]["u"]),
        ),
    ]


def partitions_fixed(shop: Workshop) -> Sequence[Scan]:
    table = TableWriter.create(shop.directory, schema(TYPES), [("fx", "identity")])
    table.append(TYPE_ROWS)
    return [Scan(), *where(("=", "fx", TYPE_ROWS[5]["fx"]))]


def defaults(shop: Workshop) -> Sequence[Scan]:
    columns = schema({"id": required("long"), "st": struct_of({"a": "int"})})
    table = TableWriter.create(shop.directory, columns, format_version=3)
    table.append([{"id": 1, "st": {"a": 1}}, {"id": 2, "st": None}])
    table.add_column("n", Column("int", initial_default=5, write_default=6))
    table.add_column("must", Column("string", required=True, initial_default="x"))
    table.add_column("st.b", Column("long", initial_default=7))
    table.append([{"id": 3, "n": None, "must": "y", "st": {"a": 1, "b": None}}])
    return [Scan(), *where(("=", "n", 5), ("is-null", "n"), ("=", "must", "x"), ("=", "st.b", 7))]


def inline_manifests(shop: Workshop) -> Sequence[Scan]:
    table = _people(shop, version=1)
    with table.commit(inline_manifests=True) as commit:
        commit.append(people(0, 10))
    return PEOPLE_SCANS


def old_list_layouts(shop: Workshop) -> Sequence[Scan]:
    """Lists whose middle group and element are named as older writers named them."""
    columns = schema({"id": "long", "ls": list_of("int"), "ss": list_of(struct_of({"a": "int"}))})
    table = TableWriter.create(shop.directory, columns)
    rows: list[Mapping[str, Any]] = [
        {"id": 1, "ls": [1, None], "ss": [{"a": 1}, None]},
        {"id": 2, "ls": [], "ss": []},
        {"id": 3, "ls": None, "ss": None},
    ]
    table.append(rows)
    table.append(rows, layout=FileLayout(parquet={"use_compliant_nested_type": False}))
    return [Scan(), Scan(select=("ls",))]


def name_mapping(shop: Workshop) -> Sequence[Scan]:
    mapping = (
        '[{"field-id": 1, "names": ["id", "ident"]}, {"field-id": 2, "names": ["name"]},'
        ' {"field-id": 3, "names": ["age"]}, {"field-id": 4, "names": ["region"]}]'
    )
    table = _people(shop)
    table.set_properties({"schema.name-mapping.default": mapping})
    table.append(people(0, 5), layout=FileLayout(field_ids=False))
    with table.commit() as commit:
        commit.append_arrow(pa.table({"ident": pa.array([7], pa.int64()), "name": ["old"]}))
    return PEOPLE_SCANS


def existing_entries(shop: Workshop) -> Sequence[Scan]:
    """Manifests of one entry each, some rewritten, some with a file removed."""
    table = _people(shop)
    table.entries_per_manifest = 1
    files = [table.append(people(i, i + 5))[0] for i in range(0, 25, 5)]
    table.delete_positions({files[0]: [0], files[2]: [1]})
    with table.commit() as commit:
        commit.remove(files[1])
        commit.rewrite(files[2], files[3])
    table.delete_positions({files[3]: [4]})
    return PEOPLE_SCANS


TABLES: dict[str, Make] = {
    "types_v1": _types(1, "parquet"),
    "types_v2": _types(2, "parquet"),
    "types_avro": _types(2, "avro"),
    "positions": _positions(),
    "positions_dealt_out": _positions(delete_files=3, reference=False),
    "positions_per_file": _positions(per_file=True),
    "positions_unsorted": _positions(sort=False),
    "positions_large_string": _positions(path_type=pa.large_string()),
    "positions_avro": _positions("avro"),
    "positions_with_rows": positions_with_rows,
    "positions_partitioned": positions_partitioned,
    "vectors": vectors,
    "vectors_over_positions": vectors_over_positions,
    "stored_lineage": stored_lineage,
    "equality_v2": _equality(2),
    "equality_v3": _equality(3),
    "equality_avro": _equality(2, "avro"),
    "equality_in_a_partition": equality_in_a_partition,
    "all_deletes": all_deletes,
    "partitions_nanos": partitions_nanos,
    "partitions_fixed": partitions_fixed,
    "defaults": defaults,
    "inline_manifests": inline_manifests,
    "old_list_layouts": old_list_layouts,
    "name_mapping": name_mapping,
    "existing_entries": existing_entries,
}
