"""Tables by Iceberg's Java API: what Spark's SQL has no words for.

Types that Spark lacks, equality deletes, default values, variants. Records come from a table of the
fixture writer, read by Iceberg itself, so that every value reaches Java in its own type.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from tests.oracles.jvm import CATALOG
from tests.oracles.scans import Scan, sweep, where
from tests.oracles.workshop import Make, Workshop
from tests.oracles.writers.rows import UTC
from tests.support.lake import TableWriter, list_of, map_of, required, schema
from tests.support.lake import struct as struct_of
from tests.support.lake.schemas import Json

Rows = Sequence[Mapping[str, Any]]


class JavaTable:
    """One table, changed through Iceberg's Java API."""

    def __init__(
        self,
        shop: Workshop,
        columns: Json,
        spec: Sequence[tuple[str, str]] = (),
        *,
        version: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create the table; `spec` is pairs of a column and a transform as the spec writes it."""
        self._shop = shop
        self._jvm = shop.jvm
        self._iceberg = self._jvm.org.apache.iceberg
        java_schema = self._iceberg.SchemaParser.fromJson(json.dumps(columns))
        catalog = shop.spark._jsparkSession.sessionState().catalogManager().catalog(CATALOG)
        identifier = self._iceberg.catalog.TableIdentifier.of(
            self._strings([shop.namespace, shop.name])
        )
        self.table = catalog.icebergCatalog().createTable(
            identifier,
            java_schema,
            self._spec(java_schema, spec),
            {"format-version": str(version), **(properties or {})},
        )

    def _spec(self, java_schema: Any, fields: Sequence[tuple[str, str]]) -> Any:
        builder = self._iceberg.PartitionSpec.builderFor(java_schema)
        for column, transform in fields:
            name, _, width = transform.rstrip("]").partition("[")
            make = getattr(builder, name)
            builder = make(column, int(width)) if width else make(column)
        return builder.build()

    def _strings(self, values: Sequence[str]) -> Any:
        gateway = self._shop.spark.sparkContext._gateway
        assert gateway is not None
        out = gateway.new_array(self._jvm.java.lang.String, len(values))
        for i, value in enumerate(values):
            out[i] = value
        return out

    def _ints(self, values: Sequence[int]) -> Any:
        gateway = self._shop.spark.sparkContext._gateway
        assert gateway is not None
        out = gateway.new_array(self._jvm.int, len(values))
        for i, value in enumerate(values):
            out[i] = value
        return out

    # --- writing ----------------------------------------------------------------------------------

    def append(self, columns: Json, rows: Rows, format: str = "parquet") -> None:
        """Commit rows as one file, or a file a row under a partitioned spec."""
        schema_, spec = self.table.schema(), self.table.spec()
        factory = self._iceberg.data.GenericAppenderFactory(schema_, spec)
        append = self.table.newAppend()
        for partition, records in self._parts(columns, rows, schema_, spec):
            writer = factory.newDataWriter(self._output(format), self._format(format), partition)
            for record in records:
                writer.write(record)
            writer.close()
            append.appendFile(writer.toDataFile())
        append.commit()

    def delete_equal(
        self,
        columns: Json,
        rows: Rows,
        keys: Sequence[str],
        format: str = "parquet",
    ) -> None:
        """Commit an equality delete file, in the partition of its first row."""
        schema_, spec = self.table.schema(), self.table.spec()
        key_schema = schema_.select(list(keys))
        ids = self._ints([schema_.findField(key).fieldId() for key in keys])
        factory = self._iceberg.data.GenericAppenderFactory(schema_, spec, ids, key_schema, None)
        records = list(self.records(columns, rows))
        partition = self._partition(records[0], schema_, spec) if spec.isPartitioned() else None
        writer = factory.newEqDeleteWriter(self._output(format), self._format(format), partition)
        for record in self.records(columns, rows, keys):
            writer.write(record)
        writer.close()
        self.table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()

    def records(self, columns: Json, rows: Rows, keys: Sequence[str] = ()) -> Iterator[Any]:
        """Yield rows as Java records; with `keys`, of these columns only."""
        source = self._shop.fresh("source")
        name = source.name.replace("-", "_")
        writer = TableWriter.create(
            self._shop.warehouse / "sources" / name, columns, format_version=3
        )
        writer.append(rows)
        table = self._iceberg.spark.Spark3Util.loadIcebergTable(
            self._shop.spark._jsparkSession, f"{CATALOG}.sources.{name}"
        )
        builder = self._iceberg.data.IcebergGenerics.read(table)
        if keys:
            builder = builder.project(table.schema().select(list(keys)))
        found = builder.build().iterator()
        while found.hasNext():
            yield found.next()

    def _parts(
        self, columns: Json, rows: Rows, schema_: Any, spec: Any
    ) -> Iterator[tuple[Any, list[Any]]]:
        records = list(self.records(columns, rows))
        if not spec.isPartitioned():
            yield None, records
            return
        for record in records:
            yield self._partition(record, schema_, spec), [record]

    def _partition(self, record: Any, schema_: Any, spec: Any) -> Any:
        key = self._iceberg.PartitionKey(spec, schema_)
        key.partition(self._iceberg.data.InternalRecordWrapper(schema_.asStruct()).wrap(record))
        return key

    def _output(self, format: str) -> Any:
        path = self._shop.directory / "data" / f"{self._shop.fresh('java').name}.{format}"
        path.parent.mkdir(exist_ok=True)
        return self._iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(
            self._iceberg.Files.localOutput(str(path))
        )

    def _format(self, name: str) -> Any:
        return self._iceberg.FileFormat.fromString(name)


# --- types ----------------------------------------------------------------------------------------

TYPES = {
    "id": required("long"),
    "t": "time",
    "u": "uuid",
    "fx": "fixed[4]",
    "dec": "decimal(38,6)",
    "ts": "timestamp",
    "tz": "timestamptz",
    "st": struct_of({"u": "uuid", "t": "time"}),
    "us": list_of("uuid"),
    "mp": map_of("int", struct_of({"fx": "fixed[2]"})),
}
NANOS = {"ns": "timestamp_ns", "nz": "timestamptz_ns", "nothing": "unknown"}

TYPE_ROWS: Rows = [
    {
        "id": i,
        "t": None if i % 5 == 4 else dt.time(i % 24, 59, 58, 999999 - i),
        "u": None if i % 5 == 3 else uuid.UUID(int=(2**128 - 1) // (i + 1)),
        "fx": None if i % 5 == 2 else bytes([255 - i, 0, i, 7]),
        "dec": None if i % 5 == 1 else Decimal(f"-{i}1234567890123456789.000001"),
        "ts": None if i % 5 == 0 else dt.datetime(1969 + i % 3, 12, 31, 23, 59, 59, i),
        "tz": dt.datetime(1969 + i % 3, 12, 31, 23, 59, 59, i, tzinfo=UTC),
        "ns": None if i % 4 == 1 else 1_700_000_000_000_000_001 * (-1 if i % 2 else 1) + i,
        "nz": None if i % 4 == 2 else -1 - i * 10**15,
        "st": None if i % 4 == 3 else {"u": uuid.UUID(int=i), "t": None},
        "us": None if i % 4 == 2 else [uuid.UUID(int=i), None][: i % 3],
        "mp": None if i % 4 == 1 else {i: {"fx": b"ab"}, -i - 1: None},
    }
    for i in range(12)
]

TYPE_LITERALS: dict[str, tuple[Any, ...]] = {
    "t": (dt.time(5, 59, 58, 999994), dt.time(0, 0)),
    "u": (uuid.UUID(int=(2**128 - 1) // 2), uuid.UUID(int=2**127)),
    "fx": (bytes([250, 0, 5, 7]), b"\x80\x00\x00\x00"),
    "dec": (Decimal("-51234567890123456789.000001"),),
    "ts": (dt.datetime(1969, 12, 31, 23, 59, 59, 3),),
}


def _types(format: str, *, nanos: bool, swept: bool = False) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        columns = schema({**TYPES, **(NANOS if nanos else {})})
        table = JavaTable(shop, columns, version=3 if nanos else 2)
        table.append(columns, TYPE_ROWS[:6], format)
        table.append(columns, TYPE_ROWS[6:], format)
        scans = [Scan(), Scan(select=("st.u", "us", "mp"))]
        if swept:
            scans += [s for c, values in TYPE_LITERALS.items() for s in sweep(c, *values)]
        if nanos:
            near = dt.datetime(2023, 11, 14, 22, 13, 20)
            scans += where(
                (">", "ns", near), ("<=", "ns", near), ("is-null", "nz"), ("is-null", "nothing")
            )
        return scans

    return make


def partitions(shop: Workshop) -> Sequence[Scan]:
    """Transforms of the types that Spark lacks.

    None of `fixed`: Iceberg's generic writer spoils a manifest with such a partition value.
    """
    columns = schema(TYPES)
    spec = [("t", "identity"), ("u", "bucket[3]"), ("dec", "truncate[1000]")]
    table = JavaTable(shop, columns, spec)
    table.append(columns, TYPE_ROWS)
    return [Scan(), *(s for c, values in TYPE_LITERALS.items() for s in sweep(c, *values)[::2])]


def mixed_formats(shop: Workshop) -> Sequence[Scan]:
    columns = schema(TYPES)
    table = JavaTable(shop, columns)
    for i, format in enumerate(("parquet", "avro", "orc")):
        table.append(columns, TYPE_ROWS[4 * i : 4 * i + 4], format)
    return [Scan(), *where(("=", "u", uuid.UUID(int=(2**128 - 1) // 6)), ("is-null", "t"))]


# --- equality deletes -----------------------------------------------------------------------------

KEYED = schema(
    {
        "id": required("long"),
        "k": "int",
        "name": "string",
        "day": "date",
        "who": struct_of({"a": "int", "b": "string"}),
    }
)


def keyed(first: int, last: int) -> Rows:
    return [
        {
            "id": i,
            "k": None if i % 6 == 5 else i % 6,
            "name": None if i % 4 == 3 else f"n{i % 4}",
            "day": dt.date(2024, 1, 1 + i % 3),
            "who": None if i % 7 == 6 else {"a": i % 3, "b": None if i % 2 else "x"},
        }
        for i in range(first, last)
    ]


KEYED_SCANS = [
    Scan(),
    Scan(select=("id",)),
    Scan(select=("who.b", "name")),
    *where(("=", "k", 2), ("!=", "k", 2), ("is-null", "name"), (">", "id", 20)),
]


def _equality(format: str, version: int = 2) -> Make:
    """Keys with nulls, several sets of keys, a nested key, and rows that come after the delete."""

    def make(shop: Workshop) -> Sequence[Scan]:
        table = JavaTable(shop, KEYED, version=version)
        table.append(KEYED, keyed(0, 20), format)
        table.delete_equal(KEYED, [{"id": 3}, {"id": 4}], ["id"], format)
        table.append(KEYED, keyed(3, 6), format)
        table.delete_equal(
            KEYED, [{"id": 0, "k": None, "name": "n1"}, {"id": 0, "k": 1, "name": None}],
            ["k", "name"], format,
        )  # fmt: skip
        table.delete_equal(KEYED, [{"id": 0, "name": "n2"}], ["name"], format)
        table.append(KEYED, keyed(20, 30), format)
        return KEYED_SCANS

    return make


def equality_partitioned(shop: Workshop) -> Sequence[Scan]:
    table = JavaTable(shop, KEYED, [("day", "identity")])
    table.append(KEYED, keyed(0, 12))
    table.delete_equal(KEYED, [{"id": 0, "k": 0, "day": dt.date(2024, 1, 1)}], ["k"])
    table.append(KEYED, keyed(12, 18))
    table.delete_equal(KEYED, [{"id": 0, "k": None, "day": dt.date(2024, 1, 3)}], ["k", "day"])
    return KEYED_SCANS


def equality_nested(shop: Workshop) -> Sequence[Scan]:
    table = JavaTable(shop, KEYED)
    table.append(KEYED, keyed(0, 20))
    table.delete_equal(KEYED, [{"id": 0, "who": {"a": 1}}], ["who.a"])
    return KEYED_SCANS


def equality_evolved(shop: Workshop) -> Sequence[Scan]:
    """The key is renamed, made wider and moved."""
    table = JavaTable(shop, KEYED)
    table.append(KEYED, keyed(0, 20))
    table.delete_equal(KEYED, [{"id": 0, "k": 2}, {"id": 0, "k": None}], ["k"])
    shop.sql(
        "alter table {t} rename column k to kk",
        "alter table {t} alter column kk type bigint",
        "alter table {t} alter column kk first",
        """insert into {t} values
           (2, 100, 'after', date '2024-01-02', named_struct('a', 1, 'b', 'y'))""",
    )
    return [Scan(), Scan(select=("name",)), *where(("=", "kk", 2), (">", "id", 10))]


def equality_dropped(shop: Workshop) -> Sequence[Scan]:
    """The key's column is dropped, but what it deleted stays deleted."""
    table = JavaTable(shop, KEYED)
    table.append(KEYED, keyed(0, 20))
    table.delete_equal(KEYED, [{"id": 0, "day": dt.date(2024, 1, 2)}], ["day"])
    shop.sql("alter table {t} drop column day")
    return [Scan(), *where((">", "id", 10))]


def equality_and_vectors(shop: Workshop) -> Sequence[Scan]:
    """Equality deletes by Java and deletion vectors by Spark, on the same files."""
    table = JavaTable(shop, KEYED, version=3, properties={"write.delete.mode": "merge-on-read"})
    table.append(KEYED, keyed(0, 20))
    table.delete_equal(KEYED, [{"id": 0, "k": 1}], ["k"])
    shop.sql("delete from {t} where id in (0, 2, 7)")
    table.table.refresh()
    table.delete_equal(KEYED, [{"id": 9}, {"id": 2}], ["id"])
    shop.sql("delete from {t} where id = 10")
    return KEYED_SCANS


# --- default values -------------------------------------------------------------------------------


def _defaults(format: str) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        columns = schema({"id": required("long"), "st": struct_of({"a": "int"})})
        table = JavaTable(shop, columns, version=3)
        table.append(
            columns, [{"id": i, "st": {"a": i} if i % 2 else None} for i in range(4)], format
        )
        iceberg = shop.jvm.org.apache.iceberg
        lit, types = iceberg.expressions.Expressions.lit, iceberg.types.Types
        (
            table.table.updateSchema()
            .addColumn("n", types.IntegerType.get(), lit(5))
            .addColumn("wide", types.LongType.get(), lit(7).to(types.LongType.get()))
            .addColumn("s", types.StringType.get(), lit("fresh"))
            .addColumn("d", types.DateType.get(), lit("2024-02-29").to(types.DateType.get()))
            .addColumn("x", types.DoubleType.get(), lit(0.5))
            .addRequiredColumn("must", types.BooleanType.get(), lit(True))
            .addColumn("st", "b", types.IntegerType.get(), lit(9))
            .commit()
        )
        evolved = schema(
            {
                "id": required("long"),
                "st": struct_of({"a": "int", "b": "int"}),
                "n": "int",
                "wide": "long",
                "s": "string",
                "d": "date",
                "x": "double",
                "must": required("boolean"),
            }
        )
        table.append(evolved, [{"id": 10, "must": False}, {"id": 11, "n": 6, "must": True}], format)
        return [
            Scan(),
            Scan(select=("s", "st.b")),
            *where(
                ("=", "n", 5), ("!=", "n", 5), ("is-null", "s"), ("=", "s", "fresh"),
                ("=", "st.b", 9), (">", "d", dt.date(2024, 1, 1)), ("=", "must", True),
                ("in", "wide", [6, 7]), ("<", "x", 1.0),
            ),
        ]  # fmt: skip

    return make


def variants(shop: Workshop) -> Sequence[Scan]:
    # py4j makes Java's Integer of a small number, and nothing makes a Long of it
    table = JavaTable(shop, schema({"id": required("int"), "v": "variant"}), version=3)
    jvm = shop.jvm
    make = jvm.org.apache.iceberg.variants
    metadata = make.Variants.metadata(table._strings(["a", "b"]))
    inner = make.Variants.object(metadata)
    inner.put("a", make.Variants.of("text"))
    inner.put("b", make.Variants.ofNull())
    array = make.Variants.array()
    array.add(make.Variants.of("x"))
    array.add(inner)
    values = [make.Variants.of("plain"), make.Variants.ofNull(), inner, array, None]
    schema_ = table.table.schema()
    factory = jvm.org.apache.iceberg.data.GenericAppenderFactory(schema_, table.table.spec())
    writer = factory.newDataWriter(table._output("parquet"), table._format("parquet"), None)
    for i, value in enumerate(values):
        record = jvm.org.apache.iceberg.data.GenericRecord.create(schema_)
        record.setField("id", i)
        if value is not None:
            record.setField("v", make.Variant.of(metadata, value))
        writer.write(record)
    writer.close()
    table.table.newAppend().appendFile(writer.toDataFile()).commit()
    return [Scan(), Scan(select=("id",))]


TABLES: dict[str, Make] = {
    "types_parquet": _types("parquet", nanos=False, swept=True),
    "types_avro": _types("avro", nanos=False),
    "types_orc": _types("orc", nanos=False),
    "nanos_parquet": _types("parquet", nanos=True),
    "nanos_avro": _types("avro", nanos=True),
    "nanos_orc": _types("orc", nanos=True),
    "partitions": partitions,
    "mixed_formats": mixed_formats,
    "equality_parquet": _equality("parquet"),
    "equality_avro": _equality("avro"),
    "equality_orc": _equality("orc"),
    "equality_v3": _equality("parquet", version=3),
    "equality_partitioned": equality_partitioned,
    "equality_nested": equality_nested,
    "equality_evolved": equality_evolved,
    "equality_dropped": equality_dropped,
    "equality_and_vectors": equality_and_vectors,
    "defaults_parquet": _defaults("parquet"),
    "defaults_avro": _defaults("avro"),
    "defaults_orc": _defaults("orc"),
    "variants": variants,
}
