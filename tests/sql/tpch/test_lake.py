"""That the lake holds TPC-H's rows, though deletes and evolution are between them and the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.embedded import open_table
from tests.sql.tpch.generated import TABLES, over_generated
from tests.sql.tpch.lake import NAMESPACE
from tests.support.lake import EQUALITY_DELETES, POSITION_DELETES, TableWriter


@pytest.fixture
def warehouse(lake: Path) -> Path:
    return lake / NAMESPACE


@pytest.mark.parametrize("name", TABLES)
def test_the_live_rows_are_those_of_the_generator(warehouse: Path, name: str) -> None:
    table = open_table((warehouse / name).as_uri())
    with over_generated(warehouse) as engine:
        names = [column for column, *_ in engine.execute(f"DESCRIBE {name}").fetchall()]
        rows = table.scan(select=names).to_table()
        engine.register("live", rows)
        assert engine.execute(f"SELECT count(*) FROM {name}").fetchall() == [(rows.num_rows,)]
        assert engine.execute(f"FROM live EXCEPT ALL FROM {name}").fetchall() == []


def test_deletes_are_of_every_kind(warehouse: Path) -> None:
    kinds = {}
    for name in TABLES:
        table = TableWriter.open(warehouse / name)
        deletes = [e.file for e in table.entries(table.snapshot_id) if e.file.content]
        kinds[name] = {(file.content, file.format) for file in deletes}

    assert kinds == {
        **{name: set() for name in TABLES},
        "lineitem": {(POSITION_DELETES, "parquet"), (EQUALITY_DELETES, "parquet")},
        "customer": {(POSITION_DELETES, "parquet"), (EQUALITY_DELETES, "parquet")},
        "orders": {(POSITION_DELETES, "puffin")},
        "partsupp": {(POSITION_DELETES, "parquet"), (POSITION_DELETES, "puffin")},
    }
