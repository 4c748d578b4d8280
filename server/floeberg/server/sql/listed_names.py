"""How tables are called in SQL: a catalog, a schema and a table, whatever the namespace's depth."""

from __future__ import annotations

from dataclasses import dataclass

TABLE = "table"
"""The one type of table. It is in lower case, by which SQLAlchemy's ADBC dialect tells tables."""


@dataclass(frozen=True, order=True, slots=True)
class SqlName:
    """A table's name in SQL. `schema` is the namespace with dots between its parts, and empty for a
    table without a namespace."""

    catalog: str
    schema: str
    table: str

    @classmethod
    def of(cls, catalog: str, identifier: tuple[str, ...]) -> SqlName:
        """Return the name of a table, by its identifier in its catalog.

        >>> SqlName.of("lake", ("sales", "eu", "orders")).schema
        'sales.eu'
        """
        return cls(catalog, ".".join(identifier[:-1]), identifier[-1])

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.schema, self.table) if part)
