"""That the lake holds TPC-H's rows, though deletes and evolution are between them and the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.embedded import open_table
from tests.sql.tpch.generated import TABLES, over_generated
from tests.sql.tpch.lake import NAMESPACE, write_lake
from tests.support.lake import EQUALITY_DELETES, POSITION_DELETES, TableWriter


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lake")
    write_lake(directory, 0.01)
    return directory / NAMESPACE


@pytest.mark.parametrize("name", TABLES)
def test_the_live_rows_are_those_of_the_generator(warehouse: Path, name: str) -> None:
    table = open_table((warehouse / name).as_uri())
    with over_generated(warehouse) as engine:
        names = [column for column, *_ in engine.execute(f"DESCRIBE {name}").fetchall()]
        engine.register("live", table.scan(select=names).to_table())
        engine.execute(
            f"(FROM live EXCEPT ALL FROM {name}) UNION ALL (FROM {name} EXCEPT ALL FROM live)"
        )
        assert engine.fetchall() == []


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
