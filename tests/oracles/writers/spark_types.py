"""Tables by Spark: every type in every file format, codecs, partition transforms."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from tests.oracles.scans import Scan, sweep, where
from tests.oracles.workshop import Make, Workshop
from tests.oracles.writers.rows import UTC, every_type, people

COLUMNS = """
    id bigint, b boolean, i int, l bigint, f float, d double, dec9 decimal(9,2),
    dec18 decimal(18,4), dec38 decimal(38,10), day date, ts timestamp_ntz, tz timestamp, s string,
    bin binary, st struct<x: int, y: string>, ls array<bigint>, mp map<string, int>,
    deep array<struct<k: string, v: array<double>>>
"""

LITERALS = {
    "b": (True, False),
    "i": (7, 2**31 - 1, -42),
    "l": (7, -(2**63)),
    "f": (1.5, 0.0, float("inf")),
    "d": (1.5, -0.0, float("-inf")),
    "dec9": (Decimal("1.50"), Decimal("-9999999.99")),
    "dec18": (Decimal("-1.5000"),),
    "dec38": (Decimal("1.5000000000"), Decimal("9999999999999999999999999999.9999999999")),
    "day": (dt.date(2024, 2, 29), dt.date(1969, 12, 31)),
    "ts": (dt.datetime(2024, 2, 29, 12), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    "tz": (dt.datetime(2024, 2, 29, 12, tzinfo=UTC), dt.datetime(1969, 1, 1, tzinfo=UTC)),
    "s": ("ab", "a" * 40, "ä€😀", ""),
    "bin": (b"abc", b"\x80"),
    "st.x": (2, 1),
    "st.y": ("a", "c"),
}

PROJECTIONS = [
    Scan(),
    Scan(select=("s", "id")),
    Scan(select=("st.y", "deep")),
    Scan(filter=("is-null", "mp"), select=("id", "ls")),
    Scan(filter=("not", ("or", ("=", "i", 7), ("is-null", "s")))),
]


def _rows(format: str) -> pa.Table:
    # pyarrow can't read all times from ORC; `orc_far_times` has them
    return every_type(far_times=format != "orc")


def orc_far_times(shop: Workshop) -> Sequence[Scan]:
    shop.create(COLUMNS, write__format__default="orc")
    shop.insert(every_type())
    return [Scan(select=("id", "ts")), Scan(select=("id", "s"))]


def _types(format: str, version: int, *, swept: bool) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        shop.create(COLUMNS, write__format__default=format, format_version=str(version))
        shop.insert(_rows(format), files=2)
        swept_columns = LITERALS if swept else {}
        return [
            *PROJECTIONS,
            *(s for c, values in swept_columns.items() for s in sweep(c, *values)),
        ]

    return make


def _codec(format: str, codec: str) -> Make:
    def make(shop: Workshop) -> Sequence[Scan]:
        key = f"write__{format}__compression_codec"
        shop.create(COLUMNS, write__format__default=format, **{key: codec})
        shop.insert(_rows(format))
        return [Scan(), *where((">", "i", 0))]

    return make


def small_row_groups(shop: Workshop) -> Sequence[Scan]:
    """Several row groups and pages a file, dictionaries that overflow, a Bloom filter."""
    shop.create(
        "id bigint, name string, age int, region string",
        write__parquet__row_group_size_bytes="2000",
        write__parquet__row_group_check_min_record_count="50",
        write__parquet__row_group_check_max_record_count="50",
        write__parquet__page_row_limit="20",
        write__parquet__dict_size_bytes="200",
        write__parquet__bloom_filter_enabled__column__name="true",
    )
    shop.insert(people(0, 2000))
    return [
        Scan(),
        *where(("=", "name", "n1500"), ("=", "name", "n0015"), (">", "id", 1990), ("<", "id", 3)),
    ]


def metrics_modes(shop: Workshop) -> Sequence[Scan]:
    shop.create(
        "id bigint, name string, age int, region string",
        write__metadata__metrics__default="none",
        write__metadata__metrics__column__id="counts",
        write__metadata__metrics__column__name="truncate(2)",
    )
    shop.insert(people(0, 40), files=2)
    return where(("=", "id", 3), ("is-null", "age"), ("=", "name", "n030"), (">", "name", "n02"))


# --- partition transforms -------------------------------------------------------------------------


def _partitioned(fields: str, columns: Sequence[str], version: int = 2) -> Make:
    """Every row falls into a partition of its own, and each column is swept with its filters."""

    def make(shop: Workshop) -> Sequence[Scan]:
        shop.create(
            COLUMNS,
            f"partitioned by ({fields})",
            format_version=str(version),
            write__distribution_mode="none",
            write__spark__fanout__enabled="true",
        )
        shop.insert(every_type())
        swept = [s for column in columns for s in sweep(column, *LITERALS[column])]
        return [
            Scan(),
            Scan(select=("id", "_partition", "_spec_id")),
            # operators are covered over the columns of a transform together
            *swept[::2],
        ]

    return make


TABLES: dict[str, Make] = {
    "types_parquet": _types("parquet", 2, swept=True),
    "types_avro": _types("avro", 2, swept=False),
    "types_orc": _types("orc", 2, swept=False),
    "types_v1": _types("parquet", 1, swept=False),
    "types_v3": _types("parquet", 3, swept=False),
    **{f"parquet_{c}": _codec("parquet", c) for c in ("uncompressed", "snappy", "gzip", "lz4")},
    **{f"avro_{c}": _codec("avro", c) for c in ("uncompressed", "snappy", "zstd")},
    **{f"orc_{c}": _codec("orc", c) for c in ("none", "snappy", "zstd", "lz4")},
    "orc_far_times": orc_far_times,
    "small_row_groups": small_row_groups,
    "metrics_modes": metrics_modes,
    "identity": _partitioned("b, i, day, s, dec9", ("b", "i", "day", "s", "dec9")),
    "identity_v1": _partitioned("l, ts, tz, bin", ("l", "ts", "tz", "bin"), version=1),
    "identity_floats": _partitioned("f, d", ("f", "d")),
    "bucket": _partitioned(
        ", ".join(f"bucket(4, {c})" for c in ("i", "l", "dec9", "dec38", "day", "s", "bin")),
        ("i", "l", "dec9", "dec38", "day", "s", "bin"),
    ),
    "bucket_times": _partitioned("bucket(4, ts), bucket(4, tz)", ("ts", "tz")),
    "truncate": _partitioned(
        "truncate(3, i), truncate(3, l), truncate(3, dec18), truncate(3, s), truncate(3, bin)",
        ("i", "l", "dec18", "s", "bin"),
    ),
    "years": _partitioned("years(day), years(ts), years(tz)", ("day", "ts", "tz")),
    "months": _partitioned("months(day), months(ts), months(tz)", ("day", "ts", "tz")),
    "days": _partitioned("days(day), days(ts), days(tz)", ("day", "ts", "tz")),
    "hours": _partitioned("hours(ts), hours(tz)", ("ts", "tz")),
}
