"""A DuckDB of a query's own, which can reach nothing but its inputs.

Neither files nor the network, no extension but those that are built in, no names of Python; its
settings can't be changed any more. `checking` sees to what can be asked of it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import duckdb


def open_connection(
    *, memory_bytes: int, threads: int, spill: Path | None, spill_bytes: int, timezone: str
) -> duckdb.DuckDBPyConnection:
    """Return a new connection to a new database in memory, locked down; `close` it. Cursors of it
    are so as well.

    It holds `memory_bytes` at most of what DuckDB counts, and puts `spill_bytes` of the rest into
    the directory `spill`, if there is one. Raises duckdb.Error for an unknown timezone.
    """
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
        },
    )
    directory = "" if spill is None else str(spill).replace("'", "''")
    try:
        connection.execute(f"SET memory_limit = '{memory_bytes // 1024}KiB'")
        connection.execute(f"SET threads = {threads}")
        connection.execute(f"SET temp_directory = '{directory}'")
        size = 0 if spill is None else spill_bytes // 1024
        connection.execute(f"SET max_temp_directory_size = '{size}KiB'")
        # GLOBAL, or cursors would not have them. Without the first, a name that is no table would
        # be looked for among the variables of our own code
        connection.execute("SET GLOBAL python_enable_replacements = false")
        connection.execute(f"SET GLOBAL TimeZone = '{timezone}'")
        # after the directory for temporary files, which could not be set any more
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


@lru_cache(maxsize=1)
def known_timezones() -> frozenset[str]:
    """Return the names of the time zones that a connection may have, those of the IANA database
    that are built in."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT name FROM pg_timezone_names()").fetchall()
    return frozenset(name for (name,) in rows)
