"""Iceberg tables for tests and the demo, written without floeberg, so that its mistakes can't
cancel out here.

Only fastavro, pyarrow and pyroaring stand below. Schemas are Iceberg's JSON (Appendix C), rows are
plain Python or Arrow. `TableWriter` writes tables of format versions 1 to 3 with every kind of
delete, including what no Python library writes: equality deletes, deletion vectors, files without
field ids.
"""

from tests.support.lake.commit import Commit
from tests.support.lake.files import FileLayout
from tests.support.lake.manifests import (
    DATA,
    EQUALITY_DELETES,
    POSITION_DELETES,
    Entry,
    Metrics,
    WrittenFile,
)
from tests.support.lake.schemas import Column, list_of, map_of, required, schema, struct
from tests.support.lake.table import TableWriter

__all__ = [
    "DATA",
    "EQUALITY_DELETES",
    "POSITION_DELETES",
    "Column",
    "Commit",
    "Entry",
    "FileLayout",
    "Metrics",
    "TableWriter",
    "WrittenFile",
    "list_of",
    "map_of",
    "required",
    "schema",
    "struct",
]
