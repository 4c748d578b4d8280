from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from floeberg.protocol.arrow import arrow_schema
from floeberg.server.sql.described import DESCRIBED, describe_rows, describe_table
from tests.support.all_types import write_all_types
from tests.support.lake import TableWriter, required, schema
from tests.support.scans import scan_of

VALUES = """
    true AS a, 1::TINYINT AS b, 1::SMALLINT AS c, 1 AS d, 1::BIGINT AS e, 1::UTINYINT AS f,
    1::USMALLINT AS g, 1::UINTEGER AS h, 1::UBIGINT AS i, 1.5::DOUBLE AS j, 1.5 AS k,
    DATE '2024-01-01' AS l, TIME '10:00' AS m, TIMESTAMP '2024-01-01' AS n,
    TIMESTAMP_S '2024-01-01' AS o, TIMESTAMP_MS '2024-01-01' AS p, TIMESTAMP_NS '2024-01-01' AS q,
    TIMESTAMPTZ '2024-01-01' AS r, 'x' AS s, 'x'::BLOB AS t, INTERVAL 1 DAY AS v,
    [[1]] AS w, [1, 2]::INTEGER[2] AS x, {'a b': 1, 'c': [DATE '2024-01-01']} AS y,
    MAP {'a': 1.25} AS z, NULL AS aa
"""


def test_a_query_is_described_as_duckdb_describes_it():
    with duckdb.connect() as connection:
        query = connection.sql(f"SELECT {VALUES}")
        described = connection.sql(f"DESCRIBE SELECT {VALUES}").fetchall()
        rows = query.to_arrow_table().schema

    found = describe_rows(rows).to_pylist()
    assert [(r["column_name"], r["column_type"], r["null"]) for r in found] == [
        row[:3] for row in described
    ]


def test_a_table_is_described_with_what_is_said_of_its_columns(tmp_path: Path):
    columns = schema({"id": required("long"), "price": "decimal(9,2)"})
    columns["fields"][0]["doc"] = "the order"
    table = TableWriter.create(tmp_path / "t", columns)
    nothing = {"key": None, "default": None, "extra": None}

    found = describe_table(scan_of(table).schema)

    assert found.schema == DESCRIBED
    assert found.to_pylist() == [
        {"column_name": "id", "column_type": "BIGINT", "null": "NO", "comment": "the order"}
        | nothing,
        {"column_name": "price", "column_type": "DECIMAL(9,2)", "null": "YES", "comment": None}
        | nothing,
    ]


def test_rows_of_a_table_are_described_as_the_table(tmp_path: Path):
    known = scan_of(write_all_types(tmp_path / "t")).schema

    assert describe_rows(arrow_schema(known)).equals(describe_table(known))


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (pa.dictionary(pa.int8(), pa.string()), "VARCHAR"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "BIGINT"),
        (pa.large_list(pa.large_string()), "VARCHAR[]"),
        (pa.binary(4), "BLOB"),
        (pa.uuid(), "UUID"),
        (pa.float16(), "halffloat"),
    ],
)
def test_other_types_of_arrow_have_names_too(type_: pa.DataType, name: str):
    (row,) = describe_rows(pa.schema([("a", type_)])).to_pylist()
    assert row["column_type"] == name
