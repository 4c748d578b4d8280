"""Tables by Spark: deletes of every kind, evolution of schema and specs, refs, maintenance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracles.scans import Scan, where
from tests.oracles.workshop import Make, Workshop
from tests.oracles.writers.rows import people

PEOPLE = "id bigint, name string, age int, region string"

PEOPLE_SCANS = [
    Scan(),
    Scan(select=("region", "name")),
    *where(
        ("=", "region", "eu"),
        ("!=", "region", "eu"),
        ("is-null", "region"),
        ("not-in", "age", [1, 2, 3]),
        ("and", (">=", "id", 10), ("<", "age", 20)),
        ("or", ("starts-with", "name", "n00"), ("is-null", "age")),
        ("not", ("or", ("=", "region", "us"), (">", "age", 5))),
    ),
]
LINEAGE = Scan(select=("id", "name", "_row_id", "_last_updated_sequence_number"))
POSITIONS = Scan(select=("id", "_file", "_pos", "_spec_id"))

MERGE_ON_READ = {
    "write__delete__mode": "merge-on-read",
    "write__update__mode": "merge-on-read",
    "write__merge__mode": "merge-on-read",
}

CHANGES = (
    "delete from {t} where id % 7 = 3",
    "update {t} set name = concat(name, '!') where id between 10 and 15",
    """merge into {t} t using (select id, id * 2 as n from range(20, 60)) s on t.id = s.id
       when matched and s.id % 3 = 0 then delete
       when matched then update set age = s.n
       when not matched then insert (id, name, age, region) values (s.id, 'new', s.n, 'eu')""",
    "delete from {t} where region = 'us' and id < 10",
)


def _changed(clauses: str = "", format: str = "parquet", **properties: str) -> Make:
    """Rows of three commits, then deletes, updates and merges."""

    def make(shop: Workshop) -> Sequence[Scan]:
        shop.create(PEOPLE, clauses, write__format__default=format, **properties)
        shop.insert(people(0, 45), files=3)
        before, _ = shop.snapshots()[-1]
        shop.sql(*CHANGES)
        lineage = [LINEAGE] if properties.get("format_version") == "3" else []
        return [*PEOPLE_SCANS, POSITIONS, Scan(snapshot_id=before), *lineage]

    return make


def upgraded_to_v3(shop: Workshop) -> Sequence[Scan]:
    """Position deletes of v2 stay; new deletes are vectors, which take over the older positions."""
    shop.create(PEOPLE, format_version="2", **MERGE_ON_READ)
    shop.insert(people(0, 40), files=2)
    shop.sql("delete from {t} where id % 4 = 1")
    before, _ = shop.snapshots()[-1]
    shop.sql("alter table {t} set tblproperties ('format-version' = '3')")
    upgraded = Scan(snapshot_id=before, select=LINEAGE.select)
    shop.sql("delete from {t} where id in (0, 2, 30)", "update {t} set age = 99 where id = 31")
    shop.insert(people(40, 50))
    return [*PEOPLE_SCANS, LINEAGE, upgraded, POSITIONS]


# --- evolution ------------------------------------------------------------------------------------


def _spec_evolution(version: int) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        mode = MERGE_ON_READ if version > 1 else {}
        shop.create(PEOPLE, "partitioned by (region)", format_version=str(version), **mode)
        shop.insert(people(0, 12))
        shop.sql("alter table {t} add partition field bucket(3, id)")
        shop.insert(people(12, 24))
        shop.sql("alter table {t} drop partition field region")
        shop.insert(people(24, 36))
        shop.sql(
            "alter table {t} replace partition field bucket(3, id) with truncate(10, id) as tens",
            "delete from {t} where id in (1, 2, 13, 25)",
        )
        shop.insert(people(36, 48))
        shop.sql("alter table {t} add partition field region", "delete from {t} where age = 6")
        shop.insert(people(48, 60))
        return [*PEOPLE_SCANS, Scan(select=("id", "_partition", "_spec_id"))]

    return make


def _schema_evolution(format: str, version: int) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        shop.create(
            """id int, f float, dec decimal(9,2), gone string, name string, kept string,
               st struct<a: int, b: string>, ls array<struct<x: int, y: int>>,
               mp map<string, struct<p: int, q: string>>""",
            format_version=str(version),
            write__format__default=format,
        )
        row = """{n} as id, cast({n}.5 as float) as f, cast('{n}.25' as decimal(9,2)) as dec,
                 'gone{n}' as gone, 'name{n}' as name, 'kept{n}' as kept"""
        old = """named_struct('a', {n}, 'b', 'b{n}') as st,
                 array(named_struct('x', {n}, 'y', -{n}), null) as ls,
                 map('k', named_struct('p', {n}, 'q', 'q{n}')) as mp"""
        for n in (1, 2):
            shop.sql(f"insert into {{t}} select {row}, {old}".replace("{n}", str(n)))
        shop.sql("insert into {t} values (3, null, null, null, null, null, null, null, null)")
        before, _ = shop.snapshots()[-1]
        shop.sql(
            "alter table {t} alter column id type bigint",
            "alter table {t} alter column f type double",
            "alter table {t} alter column dec type decimal(20,2)",
            "alter table {t} drop column gone",
            "alter table {t} rename column name to title",
            "alter table {t} alter column kept first",
            "alter table {t} add column gone int after id",
            "alter table {t} add column st.c double",
            "alter table {t} rename column st.b to bb",
            "alter table {t} alter column st.a type bigint",
            "alter table {t} alter column st.c first",
            "alter table {t} drop column ls.element.y",
            "alter table {t} add column ls.element.z string",
            "alter table {t} alter column ls.element.x type bigint",
            "alter table {t} rename column mp.value.p to pp",
            "alter table {t} add column mp.value.r date",
            """insert into {t} select 'kept9', 3000000000, 9, cast(9.5 as double),
               cast('123456789012345678.25' as decimal(20,2)), 'title9',
               named_struct('c', 9.5D, 'a', 9000000000, 'bb', 'bb9'),
               array(named_struct('x', 9000000000, 'z', 'z9')),
               map('k', named_struct('pp', 9, 'q', 'q9', 'r', date '2024-01-01'))""",
        )
        return [
            Scan(),
            Scan(snapshot_id=before),
            Scan(select=("st.c", "st.bb", "title")),
            *where(
                (">", "id", 1),
                ("=", "id", 3_000_000_000),
                ("!=", "id", 1),
                ("<", "f", 2.0),
                ("is-null", "gone"),
                ("=", "gone", 9),
                ("starts-with", "title", "name"),
                ("=", "st.a", 2),
                ("is-null", "st.c"),
                ("=", "st.bb", "b1"),
            ),
        ]

    return make


def odd_names(shop: Workshop) -> Sequence[Scan]:
    """Names that Avro can't hold, and partition values that a path can't."""
    shop.create(
        "`a b` int, `1x` string, `weiß-é` string, `_pos_` int, `select` int, `x/y%z` string",
        "partitioned by (`x/y%z`, truncate(2, `1x`))",
        write__spark__fanout__enabled="true",
    )
    values = ["a/b", "a%2Fb", "a b", "ä=ö", "#?&+", "", None, "{}", "."]
    shop.insert(
        pa.table(
            {
                "a b": pa.array(range(len(values)), pa.int32()),
                "1x": pa.array([f"{i}0{i}" for i in range(len(values))]),
                "weiß-é": pa.array([None if i % 2 else "é" for i in range(len(values))]),
                "_pos_": pa.array(range(len(values)), pa.int32()),
                "select": pa.array(range(len(values)), pa.int32()),
                "x/y%z": pa.array(values),
            }
        )
    )
    return [
        Scan(),
        Scan(select=("select", "weiß-é")),
        *where(*(("=", "x/y%z", v) for v in values if v is not None)),
        *where(("is-null", "x/y%z"), ("=", "weiß-é", "é"), ("starts-with", "1x", "30")),
    ]


# --- snapshots ------------------------------------------------------------------------------------


def refs(shop: Workshop) -> Sequence[Scan]:
    """A tag, a branch with commits and a schema change after it, a rollback, a staged snapshot."""
    shop.create(PEOPLE, format_version="2", **MERGE_ON_READ)
    shop.insert(people(0, 10))
    shop.sql("alter table {t} create tag first", "alter table {t} create branch side")
    shop.insert(people(100, 105), branch="side")
    shop.sql("delete from {t}.branch_side where id = 101")
    shop.insert(people(10, 20))
    (first, first_ms), *_, (last, _) = shop.snapshots()
    shop.sql(
        "alter table {t} add column extra string",
        "alter table {t} rename column name to title",
        "insert into {t} values (30, 'n030', 30, 'eu', 'more')",
    )
    rolled_back, _ = shop.snapshots()[-1]
    shop.sql(f"call ice.system.rollback_to_snapshot('{shop.namespace}.{shop.name}', {last})")
    shop.spark.conf.set("spark.wap.id", "audit")
    try:
        shop.sql(
            "alter table {t} set tblproperties ('write.wap.enabled' = 'true')",
            "insert into {t} values (40, 'n040', 40, 'us', 'staged')",
        )
    finally:
        shop.spark.conf.unset("spark.wap.id")
    staged, _ = shop.snapshots()[-1]
    return [
        Scan(),
        Scan(ref="first"),
        Scan(ref="side"),
        Scan(ref="main"),
        Scan(ref="first", filter=("=", "name", "n003")),
        Scan(ref="side", filter=("=", "title", "n003")),
        Scan(snapshot_id=first),
        Scan(snapshot_id=last),
        Scan(snapshot_id=rolled_back),
        Scan(snapshot_id=staged),
        Scan(as_of_ms=first_ms),
        Scan(as_of_ms=first_ms + 1),
    ]


def overwrites(shop: Workshop) -> Sequence[Scan]:
    """Dynamic and static overwrites, a replaced table, a delete of whole files."""
    shop.create(PEOPLE, "partitioned by (region)", write__spark__fanout__enabled="true")
    shop.insert(people(0, 30), files=2)
    shop.sql("insert overwrite {t} partition (region = 'eu') select 900, 'only', 9")
    before, _ = shop.snapshots()[-1]
    shop.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        shop.sql("insert overwrite {t} select id + 1000, name, age, region from {t} where age = 5")
    finally:
        shop.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    shop.sql("delete from {t} where region is null")
    return [*PEOPLE_SCANS, Scan(snapshot_id=before)]


def empty(shop: Workshop) -> Sequence[Scan]:
    shop.create(PEOPLE)
    return [Scan(), *where(("=", "id", 1)), Scan(select=("name",))]


def emptied(shop: Workshop) -> Sequence[Scan]:
    shop.create(PEOPLE, **MERGE_ON_READ)
    shop.insert(people(0, 5))
    shop.sql("delete from {t} where id < 3", "truncate table {t}")
    before, _ = shop.snapshots()[-2]
    return [Scan(), Scan(snapshot_id=before)]


def _maintained(version: int) -> Make:
    """Compaction of data, deletes and manifests, and expiry, each with deletes around it."""

    def make(shop: Workshop) -> Sequence[Scan]:
        shop.create(
            PEOPLE,
            "partitioned by (bucket(2, id))",
            format_version=str(version),
            write__metadata__compression_codec="gzip",
            commit__manifest_merge__enabled="false",
            **MERGE_ON_READ,
        )
        shop.insert(people(0, 40), files=4)
        name = f"{shop.namespace}.{shop.name}"
        shop.sql(
            "delete from {t} where id % 5 = 0",
            f"call ice.system.rewrite_manifests('{name}')",
            "delete from {t} where id % 7 = 0",
            f"""call ice.system.rewrite_data_files(table => '{name}', where => 'id < 20',
                options => map('rewrite-all', 'true'))""",
            "delete from {t} where id % 11 = 0",
            f"""call ice.system.rewrite_position_delete_files(table => '{name}',
                options => map('rewrite-all', 'true'))""",
        )
        kept, kept_ms = shop.snapshots()[-1]
        shop.insert(people(40, 50))
        shop.sql(
            f"""call ice.system.expire_snapshots(table => '{name}', retain_last => 2,
                older_than => timestamp '{_time(kept_ms)}')""",
            "update {t} set name = 'late' where id = 41",
        )
        lineage = [LINEAGE] if version == 3 else []
        return [*PEOPLE_SCANS, POSITIONS, Scan(snapshot_id=kept), *lineage]

    return make


def _time(ms: int) -> str:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(sep=" ")


# --- files that came from elsewhere ---------------------------------------------------------------


def _added_files(format: str) -> Make:
    """Files without field ids, added in place with a name mapping, then evolved."""

    def make(shop: Workshop) -> Sequence[Scan]:
        shop.create(PEOPLE + ", st struct<a: int, b: string>", "partitioned by (region)")
        source = shop.fresh("plain")
        rows = shop.fresh("rows")
        table = people(0, 15)
        st = pa.array(
            [{"a": i, "b": f"b{i}"} if i % 4 else None for i in range(15)],
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
        )
        pq.write_table(table.append_column("st", st), rows)
        frame = shop.spark.read.parquet(str(rows))
        frame.write.partitionBy("region").format(format).save(str(source))
        shop.sql(
            f"""call ice.system.add_files(table => '{shop.namespace}.{shop.name}',
                source_table => '`{format}`.`{source}`')""",
            "alter table {t} rename column name to title",
            "alter table {t} add column extra int",
            "alter table {t} rename column st.a to aa",
            "insert into {t} values (20, 't20', 2, 'eu', named_struct('aa', 1, 'b', 'x'), 5)",
        )
        return [
            Scan(),
            Scan(select=("st.aa", "title")),
            *where(
                ("=", "title", "n003"),
                ("is-null", "extra"),
                ("=", "region", "eu"),
                ("is-null", "region"),
                ("=", "st.aa", 3),
            ),
        ]

    return make


TABLES: dict[str, Make] = {
    "copy_on_write": _changed(format_version="2"),
    "copy_on_write_v1": _changed(format_version="1"),
    "copy_on_write_v3": _changed(format_version="3"),
    "merge_on_read": _changed("partitioned by (region)", format_version="2", **MERGE_ON_READ),
    "merge_on_read_file_deletes": _changed(
        format_version="2", write__delete__granularity="file", **MERGE_ON_READ
    ),
    "merge_on_read_avro": _changed(format_version="2", format="avro", **MERGE_ON_READ),
    "merge_on_read_orc": _changed(format_version="2", format="orc", **MERGE_ON_READ),
    "vectors": _changed(format_version="3", **MERGE_ON_READ),
    "vectors_partitioned": _changed("partitioned by (region)", format_version="3", **MERGE_ON_READ),
    "vectors_avro": _changed(format_version="3", format="avro", **MERGE_ON_READ),
    "upgraded_to_v3": upgraded_to_v3,
    "spec_evolution_v1": _spec_evolution(1),
    "spec_evolution_v2": _spec_evolution(2),
    "spec_evolution_v3": _spec_evolution(3),
    "schema_evolution_parquet": _schema_evolution("parquet", 2),
    "schema_evolution_avro": _schema_evolution("avro", 2),
    "schema_evolution_orc": _schema_evolution("orc", 2),
    "schema_evolution_v3": _schema_evolution("parquet", 3),
    "odd_names": odd_names,
    "refs": refs,
    "overwrites": overwrites,
    "empty": empty,
    "emptied": emptied,
    "maintained_v2": _maintained(2),
    "maintained_v3": _maintained(3),
    "added_parquet": _added_files("parquet"),
    "added_orc": _added_files("orc"),
}
