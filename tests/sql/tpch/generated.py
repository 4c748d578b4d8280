"""TPC-H's data as its generator writes it, and what DuckDB answers over that.

`tpchgen-cli` gives the rows that the specification's dbgen does, as Parquet whose columns are
numbered from 1.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_SMALL = TABLES[:3]

QUERIES = {
    int(path.stem.removeprefix("q")): path.read_text()
    for path in sorted(Path(__file__).with_name("queries").glob("q*.sql"))
}
"""The 22 queries by their number, with the parameters that the specification validates with."""


def generate(directory: Path, scale: float, parts: int) -> None:
    """Write each table as `directory/<table>/<table>.<n>.parquet`, the large ones as so many."""
    for tables, count in ((_SMALL, 1), (TABLES[3:], parts)):
        subprocess.run(
            [
                *(_generator(), "parquet", "--quiet", "--scale-factor", str(scale)),
                *("--tables", ",".join(tables), "--parts", str(count), "--num-threads", "1"),
                *("--output-dir", str(directory)),
            ],
            check=True,
        )


def part_of(directory: Path, table: str, number: int) -> Path:
    """Return the file that holds part `number`, from 1, of a table."""
    return directory / table / f"{table}.{number}.parquet"


def over_generated(directory: Path) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB that reads what `generate` wrote; `close` it."""
    connection = duckdb.connect()
    for table in TABLES:
        files = directory / table / f"{table}.*.parquet"
        connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{files}')")
    return connection


def _generator() -> str:
    """Return the binary beside this Python, whatever the PATH says."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    assert found, "no `tpchgen-cli` here: install the extra `dev`, which brings it"
    return found
