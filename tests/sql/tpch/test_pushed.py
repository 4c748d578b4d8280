"""What each of TPC-H's queries reads: the columns that it names, and the rows that it can use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from floeberg.protocol.expressions.json_form import expression_to_json
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.schema import Schema
from floeberg.server.sql.names import Session, TableReference
from floeberg.server.sql.splitting import Input, split
from floeberg.server.sql.statements import parse_statement
from tests.sql.tpch.generated import QUERIES, TABLES
from tests.sql.tpch.lake import NAMESPACE, generated_schema

EUROPE = ["=", "r_name", "EUROPE"]
GERMANY = ["=", "n_name", "GERMANY"]
FRANCE = ["=", "n_name", "FRANCE"]


def within(column: str, begin: str, end: str) -> list[Any]:
    return ["and", [">=", column, begin], ["<", column, end]]


def between(column: str, low: Any, high: Any) -> list[Any]:
    return ["and", [">=", column, low], ["<=", column, high]]


def made(brand: str, size: str, kinds: list[str], greatest: int) -> list[Any]:
    containers = ["in", "p_container", [f"{size} {kind}" for kind in kinds]]
    return ["and", ["=", "p_brand", brand], containers, ["<=", "p_size", greatest]]


PUSHED: dict[int, list[tuple[str, list[Any]]]] = {
    1: [("lineitem", ["<=", "l_shipdate", "1998-09-02"])],
    2: [("part", ["=", "p_size", 15]), ("region", EUROPE), ("region", EUROPE)],
    3: [
        ("customer", ["=", "c_mktsegment", "BUILDING"]),
        ("orders", ["<", "o_orderdate", "1995-03-15"]),
        ("lineitem", [">", "l_shipdate", "1995-03-15"]),
    ],
    4: [("orders", within("o_orderdate", "1993-07-01", "1993-10-01"))],
    5: [
        ("orders", within("o_orderdate", "1994-01-01", "1995-01-01")),
        ("region", ["=", "r_name", "ASIA"]),
    ],
    6: [
        (
            "lineitem",
            [
                *within("l_shipdate", "1994-01-01", "1995-01-01"),
                between("l_discount", 0.05, 0.07),
                ["<", "l_quantity", 24],
            ],
        ),
    ],
    7: [
        ("lineitem", between("l_shipdate", "1995-01-01", "1996-12-31")),
        ("nation", ["or", FRANCE, GERMANY]),
        ("nation", ["or", GERMANY, FRANCE]),
    ],
    8: [
        ("part", ["=", "p_type", "ECONOMY ANODIZED STEEL"]),
        ("orders", between("o_orderdate", "1995-01-01", "1996-12-31")),
        ("region", ["=", "r_name", "AMERICA"]),
    ],
    10: [
        ("orders", within("o_orderdate", "1993-10-01", "1994-01-01")),
        ("lineitem", ["=", "l_returnflag", "R"]),
    ],
    11: [("nation", GERMANY), ("nation", GERMANY)],
    12: [
        (
            "lineitem",
            [
                "and",
                ["in", "l_shipmode", ["MAIL", "SHIP"]],
                *within("l_receiptdate", "1994-01-01", "1995-01-01")[1:],
            ],
        ),
    ],
    14: [("lineitem", within("l_shipdate", "1995-09-01", "1995-10-01"))],
    15: [("lineitem", within("l_shipdate", "1996-01-01", "1996-04-01"))],
    16: [
        (
            "part",
            [
                "and",
                ["!=", "p_brand", "Brand#45"],
                ["not-starts-with", "p_type", "MEDIUM POLISHED"],
                ["in", "p_size", [49, 14, 23, 45, 19, 3, 36, 9]],
            ],
        ),
    ],
    17: [("part", ["and", ["=", "p_brand", "Brand#23"], ["=", "p_container", "MED BOX"]])],
    19: [
        (
            "lineitem",
            [
                "and",
                ["in", "l_shipmode", ["AIR", "AIR REG"]],
                ["=", "l_shipinstruct", "DELIVER IN PERSON"],
                ["or", *(between("l_quantity", low, low + 10) for low in (1, 10, 20))],
            ],
        ),
        (
            "part",
            [
                "and",
                [">=", "p_size", 1],
                [
                    "or",
                    made("Brand#12", "SM", ["CASE", "BOX", "PACK", "PKG"], 5),
                    made("Brand#23", "MED", ["BAG", "BOX", "PKG", "PACK"], 10),
                    made("Brand#34", "LG", ["CASE", "BOX", "PACK", "PKG"], 15),
                ],
            ],
        ),
    ],
    20: [
        ("nation", ["=", "n_name", "CANADA"]),
        ("part", ["starts-with", "p_name", "forest"]),
        ("lineitem", within("l_shipdate", "1994-01-01", "1995-01-01")),
    ],
    21: [("orders", ["=", "o_orderstatus", "F"]), ("nation", ["=", "n_name", "SAUDI ARABIA"])],
    22: [("customer", [">", "c_acctbal", 0])],
}
"""The tables that are not read whole, as they stand in each query, with their filters."""


@pytest.fixture(scope="session")
def schemas(lake: Path) -> Mapping[str, Schema]:
    warehouse = lake / NAMESPACE
    return {table: Schema.from_json(generated_schema(warehouse, table)) for table in TABLES}


def inputs(text: str, schemas: Mapping[str, Schema]) -> tuple[Input, ...]:
    def schema_of(reference: TableReference) -> Schema:
        return schemas[reference.parts[-1]]

    return split(parse_statement(text), Session(["lake"], "lake", ("tpch",)), schema_of).inputs


@pytest.mark.parametrize("number", QUERIES)
def test_a_query_reads_the_rows_that_its_conditions_leave(
    number: int, schemas: Mapping[str, Schema]
) -> None:
    filters = [
        (str(each.table), expression_to_json(each.filter))
        for each in inputs(QUERIES[number], schemas)
        if each.filter != TRUE
    ]

    assert filters == PUSHED.get(number, [])


@pytest.mark.parametrize("number", QUERIES)
def test_a_query_reads_the_columns_that_it_names(
    number: int, schemas: Mapping[str, Schema]
) -> None:
    words = set(re.findall(r"\w+", QUERIES[number]))

    for each in inputs(QUERIES[number], schemas):
        if (number, str(each.table)) != (9, "nation"):  # whose item `nation` might be a whole row
            assert {column.name for column in each.columns} <= words
