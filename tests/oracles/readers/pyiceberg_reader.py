"""Read with PyIceberg, from the metadata file alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.table import DataScan, StaticTable, Table

from tests.oracles.scans import Scan
from tests.oracles.workshop import Made
from tests.support.pyiceberg_filters import pyiceberg_expression


class PyIcebergReader:
    name = "pyiceberg"

    def read(self, made: Made, scan: Scan) -> pa.Table:
        table = StaticTable.from_metadata(str(made.metadata_file))
        return asked_of_pyiceberg(table, scan).to_arrow()


def asked_of_pyiceberg(table: Table, scan: Scan) -> DataScan:
    """Return the scan as PyIceberg is asked for it."""
    options: dict[str, Any] = {}
    if scan.filter is not None:
        options["row_filter"] = pyiceberg_expression(scan.filter)
    if scan.select is not None:
        options["selected_fields"] = scan.select
    if scan.snapshot_id is not None:
        options["snapshot_id"] = scan.snapshot_id
    if scan.as_of_ms is not None:
        snapshot = table.snapshot_as_of_timestamp(scan.as_of_ms)
        assert snapshot is not None
        options["snapshot_id"] = snapshot.snapshot_id
    planned = table.scan(**options)
    return planned if scan.ref is None else planned.use_ref(scan.ref)
