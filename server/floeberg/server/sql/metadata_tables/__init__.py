"""Metadata tables: what a table is made of, as rows that SQL can ask for.

`db.orders.files`, or `db.orders$files`, has a row a file. Names, order and types of the columns are
those of Iceberg's Java library, and so of Spark. They tell of all rows of their table: of `files`,
`entries`, `manifests` and `partitions` that is bounds, partition values, paths and counts; of
`snapshots`, `history` and `refs` counts, locations and names. So they are for those alone who may
read the whole table (`Caller.check_full`).
"""

from floeberg.server.sql.metadata_tables.schemas import metadata_schema
from floeberg.server.sql.metadata_tables.tables import metadata_table

__all__ = ["metadata_schema", "metadata_table"]
