"""Masked columns are read as null from every kind of file, and deletes that look at them apply."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from floeberg.client import connect
from floeberg.protocol.errors import NotPermitted
from tests.support.all_types import COLUMNS, VALUES, write_all_types
from tests.support.callers import secret_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import FileLayout, TableWriter, map_of, required, schema
from tests.support.orders import live_ids, write_orders

TOKEN = "the-token-of-eve-for-tests"
# a dot in a rule's column reaches into a struct
MASKED_ORDERS = ["id", "region", "amount", "placed_at", "customer", "note"]


@pytest.fixture(scope="module", autouse=True)
def no_tracebacks() -> Iterator[None]:
    sys.tracebacklimit = 0
    yield
    del sys.tracebacklimit


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("lake")
    write_orders(lake / "db" / "orders")
    write_all_types(lake / "db" / "all_types")
    plain = {"id": required("long"), "secret": required("string"), "day": "date"}
    for name in ("parquet", "avro", "orc"):
        table = TableWriter.create(
            lake / "db" / name, schema(plain), [("secret", "identity")], format_version=2
        )
        rows = [{"id": n, "secret": f"s{n % 2}", "day": n} for n in range(10)]
        table.append(rows, layout=FileLayout(format=name))
        # and as imported: by names, without the column that is partitioned by
        mapping = [{"field-id": f["id"], "names": [f["name"]]} for f in table.schema["fields"]]
        table.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
        if name != "orc":
            layout = FileLayout(format=name, field_ids=False, omit=["secret"])
            table.append([{**row, "id": row["id"] + 10} for row in rows], layout=layout)
    maps = TableWriter.create(lake / "db" / "maps", schema({"m": map_of("string", "long")}))
    maps.append([{"m": [("k", 1)]}])
    return lake


@pytest.fixture(scope="module")
def fleet(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    folder = tmp_path_factory.mktemp("auth")

    def rule(table: str, mask: list[str], more: str = "") -> str:
        head = f'[[rule]]\nprincipals = ["eve"]\ntables = ["warehouse.db.{table}"]\n'
        return f"{head}mask = {json.dumps(mask)}\n{more}\n"

    rules = [
        rule("orders", MASKED_ORDERS, "rows = \"region = 'eu' OR region = 'us'\""),
        rule("all_types", list(COLUMNS)),
        *(rule(name, ["secret"]) for name in ("parquet", "avro", "orc")),
        rule("maps", ["m.key"]),
    ]
    (folder / "policies").write_text("".join(rules))
    flags = {
        "auth_tokens": secret_file(folder / "tokens", f"eve:{TOKEN}\n"),
        "policies": str(folder / "policies"),
    }
    with local_fleet(lake, **flags) as fleet:
        yield fleet


def rows(fleet: LocalFleet, table: str, **scan: object) -> pa.Table:
    with connect(fleet.location, TOKEN) as lake:
        return lake.table(f"db.{table}").scan(**scan).to_arrow()


def test_a_column_of_any_type_can_be_masked(fleet: LocalFleet):
    found = rows(fleet, "all_types")

    assert found.column_names == list(VALUES)
    assert found.to_pylist() == [dict.fromkeys(VALUES)] * 2
    found.validate(full=True)


@pytest.mark.parametrize("name", ["parquet", "avro", "orc"])
def test_a_masked_column_is_null_in_every_kind_of_file(fleet: LocalFleet, name: str):
    found = rows(fleet, name).sort_by("id")

    assert set(found["secret"].to_pylist()) == {None}
    assert found["id"].to_pylist() == list(range(10 if name == "orc" else 20))
    assert None not in found["day"].to_pylist()
    assert rows(fleet, name, filter="secret = 's1'").num_rows == 0
    assert rows(fleet, name, select=["secret"]).num_rows == found.num_rows


def test_deletes_and_rows_look_at_what_is_masked(fleet: LocalFleet):
    """Position and equality deletes, the latter by a masked key."""
    found = rows(fleet, "orders")
    expected = [n for n in live_ids() if n % 3 != 2]

    assert found.num_rows == len(expected)
    assert found.to_pylist() == [dict.fromkeys(MASKED_ORDERS)] * len(expected)
    with connect(fleet.location, TOKEN) as lake:
        assert lake.table("db.orders").scan(filter="id IS NULL").count() == len(expected)


def test_a_part_of_a_map_is_not_masked_alone(fleet: LocalFleet):
    with pytest.raises(NotPermitted):
        rows(fleet, "maps")
