"""The large table in a real S3 store, reached at once or as from far away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import StaticTable, Table

from tests.bench.taxi.contenders import Place
from tests.bench.taxi.lake import LARGE, NAMESPACE, Lake
from tests.bench.taxi.queries import TIMES, Query
from tests.support.delaying_proxy import delaying_proxy
from tests.support.services import Seaweed, run_seaweed

_BUCKET = "bench"
_WAREHOUSE = f"s3://{_BUCKET}/lake"
_LOCATION = f"{_WAREHOUSE}/{NAMESPACE}/{LARGE}"
_PATH = 1  # where PyIceberg's record of a data file has it


@dataclass(frozen=True)
class StoredTable:
    """The table's metadata file in the store, and the properties that open it there."""

    metadata_file: str
    services: Seaweed

    @contextmanager
    def away(self, seconds: float) -> Iterator[Place]:
        """Give the warehouse behind a proxy that adds so much to each request, or none for 0."""
        properties = self.services.s3_properties()
        if not seconds:
            yield Place(_WAREHOUSE, properties)
            return
        port = urlsplit(self.services.s3_endpoint).port
        assert port is not None
        with delaying_proxy(port, seconds) as far:
            yield Place(_WAREHOUSE, {**properties, "s3.endpoint": f"http://127.0.0.1:{far}"})


@contextmanager
def stored(lake: Lake, folder: Path) -> Iterator[StoredTable]:
    """Run a store that keeps its data in `folder`, with a table of the large table's data files as
    they are, and metadata of PyIceberg's."""
    with run_seaweed(folder) as services:
        services.make_bucket(_BUCKET)
        local = StaticTable.from_metadata(str(lake.metadata_file(LARGE)))
        for path in lake.data_files(LARGE):
            services.put(_BUCKET, {_key(str(path), lake): path.read_bytes()})
        table = _created(_catalog(services.s3_properties()), local)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as new:
            for file in _data_files(local):
                file[_PATH] = f"s3://{_BUCKET}/{_key(file.file_path, lake)}"
                file.spec_id = table.spec().spec_id
                new.append_data_file(file)
        yield StoredTable(table.metadata_location, services)


def column_bytes(lake: Lake, query: Query) -> int:
    """Return how many bytes the columns of a query have in those files of the large table whose
    months it asks for."""
    conditions: list[tuple[str, str, str]] = [
        (c, op, str(value)) for c, op, value in query.conditions if c in TIMES
    ]
    columns = query.selected
    wanted = None if columns is None else {*columns, *(c for c, _, _ in query.conditions)}
    sizes = [_chunk_bytes(path, wanted, conditions) for path in lake.data_files(LARGE)]
    return sum(sizes)


def _chunk_bytes(
    path: Path, wanted: set[str] | None, conditions: list[tuple[str, str, str]]
) -> int:
    metadata = pq.read_metadata(path)
    chunks: list[Any] = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    for column, operation, value in conditions:
        statistics = [c.statistics for c in chunks if c.path_in_schema == column]
        least, most = min(s.min for s in statistics), max(s.max for s in statistics)
        is_beyond = least.isoformat() >= value if operation == "<" else most.isoformat() < value
        if is_beyond:
            return 0
    return sum(
        int(c.total_compressed_size) for c in chunks if wanted is None or c.path_in_schema in wanted
    )


def _key(location: str, lake: Lake) -> str:
    below = location.removeprefix("file://").removeprefix(str(lake.warehouse))
    return f"lake{below}"


def _catalog(properties: Mapping[str, str]) -> Catalog:
    return load_catalog("bench-store", type="in-memory", warehouse=_WAREHOUSE, **properties)


def _created(catalog: Catalog, local: Table) -> Table:
    catalog.create_namespace(NAMESPACE)
    return catalog.create_table(
        (NAMESPACE, LARGE), local.schema(), location=_LOCATION, partition_spec=local.spec()
    )


def _data_files(table: Table) -> Iterator[DataFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io):
            yield entry.data_file
