"""Every table, by title: `<who wrote it>.<what it is about>`."""

from __future__ import annotations

from tests.oracles.workshop import Make
from tests.oracles.writers import (
    fixture_tables,
    java_tables,
    pyiceberg_tables,
    spark_changes,
    spark_types,
)

TABLES: dict[str, Make] = {
    f"{writer}.{name}": make
    for writer, tables in (
        ("spark", spark_types.TABLES),
        ("spark", spark_changes.TABLES),
        ("java", java_tables.TABLES),
        ("pyiceberg", pyiceberg_tables.TABLES),
        ("fixtures", fixture_tables.TABLES),
    )
    for name, make in tables.items()
}
