"""Tables with a column of every type that SQL can compare, and conditions on them as SQL text.

Values and literals come from the same few, at the edges of their types, so that they meet. All of
it comes from the `random.Random` that is handed in. Comparisons of numbers are marked, to be
written by `tests.support.sql_floats`.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from floeberg.embedded import open_table
from tests.support.lake import TableWriter, list_of, required, schema, struct
from tests.support.sql_floats import marked

COLUMNS: dict[str, Any] = {
    "id": required("long"),
    "i": "int",
    "l": "long",
    "f": "float",
    "d": "double",
    "p": "decimal(9, 2)",
    "wide": "decimal(38, 10)",
    "day": "date",
    "clock": "time",
    "ts": "timestamp",
    "tz": "timestamptz",
    "tn": "timestamp_ns",
    "s": "string",
    "b": "boolean",
    "u": "uuid",
    "raw": "binary",
    "fx": "fixed[2]",
    "n": "unknown",
    "st": struct({"a": "int", "Deep": struct({"s": "string"}), "r": required("double")}),
    "Mixed": "int",
    "a b": "string",
    "tags": list_of("string"),
}

NAN, INF = float("nan"), float("inf")
_DAY = 86_400_000_000
_SUMMER = 1_719_784_800_000_000
VALUES: dict[str, list[Any]] = {
    "i": [0, 1, 2, -1, 7, 2**31 - 1, -(2**31), 16_777_217],
    "l": [0, 1, 7, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    "f": [0.0, -0.0, 1.0, 2.5, 0.10000000149011612, NAN, INF, -INF, 16_777_216.0],
    "d": [0.0, -0.0, 1.0, 2.5, 0.1, NAN, INF, -INF, 9_007_199_254_740_992.0, 1e300],
    "p": ["0.00", "1.00", "14.20", "-0.05", "9999999.99", "2.50"],
    "wide": ["0", "1", "14.2", "1234567890123456789012345678.0000000001", "-0.0000000001"],
    "day": [0, 1, -1, 19_904, 19_905],
    "clock": [0, 1, 81_068_123_456, 86_399_999_999],
    "ts": [0, 1, -1, _DAY, _SUMMER, _SUMMER + _DAY // 2, 19_904 * _DAY],
    "tz": [0, 1, -1, _DAY, _SUMMER, _SUMMER + _DAY // 2, 19_904 * _DAY],
    "tn": [0, 1, -1, 1000, _SUMMER * 1000, 19_904 * _DAY * 1000],
    "s": ["", "a", "ab", "abc", "b", "é", "a%b", "7", "%", "a_", "it's", "2024-07-01"],
    "b": [True, False],
    "u": [bytes(16), bytes(15) + b"\x01", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")],
    "raw": [b"", b"\x00\xff", b"ab", b"a"],
    "fx": [b"\x00\xff", b"ab", b"\xff\x00"],
    "n": [None],
    "Mixed": [0, 1, 7],
    "a b": ["x", "", "ab"],
    "tags": [[], ["a"], [None, "b"]],
    "st": [
        {"a": None, "Deep": None, "r": 0.0},
        {"a": 7, "Deep": {"s": "a"}, "r": NAN},
        {"a": -1, "Deep": {"s": None}, "r": 2.5},
    ],
}

_NUMBERS = [
    "0", "1", "7", "-1", "2.5", "1.0", "0.1", "-0.05", "14.20", "14.2", "14.205", "1e0", "2.5e0",
    "0.1e0", "1e-1", "2147483647", "2147483648", "-2147483648", "9007199254740993", "16777217",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "9999999.99",
    "9999999.995", "1234567890123456789012345678.0000000001", "0.00000000005", "1e300", "1e39",
    "16777217.0", "0.1::FLOAT", "1::DOUBLE", "0.1::DOUBLE", "7::BIGINT", "1::SMALLINT",
    "14.2::DECIMAL(5, 1)", "'nan'::DOUBLE", "'-inf'::DOUBLE", "'nan'::FLOAT", "-(-7)", "1_0", ".5",
    "5.", "'7'::INT", "0.30000001192092896", "0.3::DOUBLE", "99999999999999999999999999999999999.5",
    "6 + 1", "2.5 - 2.4", "14 + 0.2", "0 - 1",
]  # fmt: skip
_DATES = [
    "'1970-01-01'", "DATE '1970-01-01'", "'2024-07-01'", "DATE '2024-07-01'", "DATE '2024-06-30'",
    "TIMESTAMP '2024-07-01 12:00:00'", "TIMESTAMP '2024-07-01'", "'2024-07-01T00:00:00'",
    "'2024-07-01 12:00:00.000001'", "'1970-01-01 00:00:00.0000005'", "'2024-06-30T22:00:00Z'",
    "'2024-07-01T00:00:00+02:00'", "TIMESTAMPTZ '2024-07-01 00:00:00'", "'1970-1-1'",
    "TIMESTAMPTZ '2024-06-30 22:00:00+00'", "'2024-03-31 02:30:00'", "'1969-12-31'",
    "TIMESTAMP_NS '1970-01-01 00:00:00.000000001'", "'9999-12-31'", "'infinity'",
    "'2024-07-01'::DATE::TIMESTAMP", "'2024-07-01 12:00:00 Europe/Amsterdam'", "'0001-01-01'",
    "CAST('2024-07-01' AS TIMESTAMPTZ)", "'2024-07-01 00:00'", "DATE '1970-01-02'",
    "DATE '2024-05-31' + INTERVAL '1' MONTH", "DATE '2024-07-31' - INTERVAL '30' DAY",
    "DATE '2024-07-02' - 1", "TIMESTAMP '2024-07-01 13:00:00' - INTERVAL '1' HOUR",
]  # fmt: skip
_TEXTS = [
    "''", "'a'", "'ab'", "'b'", "'é'", "'a%b'", "'7'", "'it''s'", "'a'::VARCHAR", "'zz'",
    "'2024-07-01'", "'nan'", "'NaN'", "'Infinity'", "'14.2'", "'14.205'", "'0.1'", "' 7 '", "'1.5'",
    "'-1'", "'1e1'", "'true'",
]  # fmt: skip
_PATTERNS = [
    "'a%'",
    "'%'",
    "'ab'",
    "'a_'",
    "'%b'",
    "'a%b'",
    "'a\\%%'",
    "''",
    "'é%'",
    "NULL",
    "'a%%'",
]
_OTHERS: dict[str, list[str]] = {
    "clock": [
        "'00:00:00'", "TIME '22:31:08.123456'", "'22:31:08.1234567'", "'23:59:59'", "'24:00:00'",
        "'1:2:3'",
    ],
    "u": [
        "'00000000-0000-0000-0000-000000000001'", "'F79C3E09-677c-4bbd-a479-3f349cb785e7'",
        "UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "'f79c3e09677c4bbda4793f349cb785e7'",
    ],
    "raw": ["'ab'", "'\\x00\\xFF'", "'a'::BLOB", "''", "'\\xff'::BLOB"],
    "fx": ["'ab'", "'\\x00\\xFF'", "'a'", "'abc'", "'\\x80\\x00'::BLOB"],
    "b": ["TRUE", "FALSE", "true", "'true'", "1"],
}  # fmt: skip
_NUMERIC = ["i", "l", "f", "d", "p", "wide", "st.a", "st.r", "t.st.r", "Mixed", "MIXED", "id"]
_LITERALS: dict[str, list[str]] = {
    **dict.fromkeys(_NUMERIC, _NUMBERS + _TEXTS[6:]),
    **dict.fromkeys(["day", "ts", "tz", "tn", "ts::DATE", "CAST(tn AS DATE)"], _DATES),
    **dict.fromkeys(["s", '"a b"', "st.deep.s", "st['Deep'].s", "s::VARCHAR"], _TEXTS),
    **_OTHERS,
    "i::INT": ["7", "'7'"],
    "l::BIGINT": ["7"],
    "i::BIGINT": ["7"],
}
OPERATORS = ["=", "<>", "!=", "<", "<=", ">", ">=", "=", "==", "IS DISTINCT FROM"]


def write_table(directory: Path, rng: random.Random, files: int = 3) -> TableWriter:
    """Write a table of a few files, some partitioned by a column."""
    spec = rng.choice([[], [], [("day", "month")], [("i", "identity")], [("s", "truncate[1]")]])
    table = TableWriter.create(directory, schema(COLUMNS), spec, format_version=3)
    count = 0
    for _ in range(files):
        rows = []
        for _ in range(rng.randint(1, 25)):
            row: dict[str, Any] = {"id": count}
            count += 1
            for name, values in VALUES.items():
                row[name] = rng.choice(values) if rng.random() < 0.85 else None
            rows.append(row)
        table.append(rows)
    return table


def read_whole(table: TableWriter) -> pa.Table:
    return open_table(table.location).scan().to_table()


def connection(zone: str = "UTC") -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(f"SET TimeZone = '{zone}'")
    made.execute("SET threads = 1")
    return made


def condition(rng: random.Random, depth: int = 2, prefix: str = "") -> str:
    """Return a condition on the columns of `COLUMNS`, each named with `prefix` before it."""
    if depth and rng.random() < 0.5:
        parts = [condition(rng, depth - 1, prefix) for _ in range(rng.choice([2, 2, 3]))]
        joined = f" {rng.choice(['AND', 'OR'])} ".join(parts)
        return f"({joined})" if rng.random() < 0.7 else f"NOT ({joined})"
    leaf = _leaf(rng, prefix)
    return f"NOT {leaf}" if rng.random() < 0.2 else leaf


def _leaf(rng: random.Random, prefix: str) -> str:
    name = rng.choice(list(_LITERALS))
    literals = _LITERALS[name]
    column = name if name.startswith(("t.", "CAST")) else prefix + name
    if prefix:
        column = column.replace("CAST(", f"CAST({prefix}").removeprefix("t.")
        if name.startswith("t."):
            column = prefix + name[2:]

    def literal() -> str:
        if rng.random() < 0.05:
            return "NULL"
        if rng.random() < 0.03:
            return rng.choice(rng.choice(list(_LITERALS.values())))
        return rng.choice(literals)

    def compared(operator: str, *operands: str) -> str:
        if name in _NUMERIC and operator != "IS DISTINCT FROM":
            return marked(operator, *operands)
        left, *others = operands
        match operator.rsplit(maxsplit=1):
            case [*negation, "in"]:
                return f"{left} {' '.join(negation)} IN ({', '.join(others)})"
            case [*negation, "between"]:
                return f"{left} {' '.join(negation)} BETWEEN {others[0]} AND {others[1]}"
            case _:
                return f"{left} {operator} {others[0]}"

    match rng.randint(0, 11):
        case 0:
            return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
        case 1:
            some = [literal() for _ in range(rng.randint(1, 4))]
            return compared(rng.choice(["in", "not in"]), column, *some)
        case 2:
            return compared(rng.choice(["between", "not between"]), column, literal(), literal())
        case 3:
            text = rng.choice(["s", '"a b"', "st.deep.s"])
            pattern = rng.choice(_PATTERNS)
            return f"{prefix}{text} {rng.choice(['', 'NOT '])}LIKE {pattern}"
        case 4:
            flag = rng.choice(["", " IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT FALSE"])
            return f"{prefix}b{flag}"
        case 5:
            return rng.choice(
                [
                    f"isnan({prefix}{rng.choice('fd')})",
                    marked(rng.choice(["=", "<", ">="]), f"{prefix}f", f"{prefix}d"),
                    marked(rng.choice(["<>", "<=", ">"]), f"{prefix}d", f"{prefix}f + 1"),
                    marked(rng.choice(["<", ">"]), f"{prefix}i", f"{prefix}d / 2"),
                    f"starts_with({prefix}s, 'a')",
                    f"{prefix}s ^@ 'ab'",
                    f"{prefix}i = {prefix}l",
                    f"{prefix}i + 1 > 2",
                    f"length({prefix}s) > 1",
                    f"{prefix}tags IS NULL",
                    f"{prefix}st IS NOT NULL",
                    f"{prefix}n IS NULL",
                    f"({prefix}i = 7) IS NOT TRUE",
                    f"{prefix}i = 7 IS TRUE",
                    "1 = 1",
                    "'a' <> 'a'",
                    "NULL",
                ]
            )
        case 6:
            return compared(rng.choice(OPERATORS), literal(), column)
        case _:
            return compared(rng.choice(OPERATORS), column, literal())
