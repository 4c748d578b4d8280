"""Tables in a real object store are read to the right rows, in as few requests as they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from floeberg.embedded import ScanOptions, open_table
from floeberg.protocol.errors import MissingFile
from tests.support.http_counting import CountingProxy
from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.services import Seaweed

COLUMNS = schema({"id": required("long"), "a": "double", "b": "double", "name": "string"})
PLAIN = FileLayout(codec="none", parquet={"use_dictionary": False})
OPTIONS = [
    ScanOptions(),
    ScanOptions(num_workers=3),
    ScanOptions(overlap_io=False),
    ScanOptions(split_size=256 << 10),
]


@dataclass
class Bucket:
    """A bucket of one test, reached through a proxy that counts."""

    name: str
    seaweed: Seaweed
    proxy: CountingProxy

    @property
    def properties(self) -> dict[str, str]:
        endpoint = f"http://127.0.0.1:{self.proxy.port}"
        return {**self.seaweed.s3_properties(), "s3.endpoint": endpoint}

    def upload(self, table: TableWriter) -> None:
        paths = [path for path in table.directory.rglob("*") if path.is_file()]
        keys = {f"t/{path.relative_to(table.directory)}": path.read_bytes() for path in paths}
        self.seaweed.put(self.name, keys)


@pytest.fixture
def bucket(request: pytest.FixtureRequest, seaweed: Seaweed) -> Iterator[Bucket]:
    name = request.node.name.split("[")[0].replace("_", "-")[:60].strip("-")
    seaweed.make_bucket(name)
    with CountingProxy(int(seaweed.s3_endpoint.rpartition(":")[2])) as proxy:
        yield Bucket(name, seaweed, proxy)


@pytest.fixture
def table(tmp_path: Path, bucket: Bucket) -> TableWriter:
    return TableWriter.create(tmp_path / "t", COLUMNS, location=f"s3://{bucket.name}/t")


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    ids = np.arange(first, first + count)
    names = [f"n{i % 7}" for i in ids]
    return pa.table({"id": ids, "a": rng.random(count), "b": rng.random(count), "name": names})


def test_files_of_every_size_give_their_rows(bucket: Bucket, table: TableWriter) -> None:
    written = []
    for first, count, group in ((0, 100, 10), (100, 30_000, 4000), (40_000, 900_000, 900_000)):
        layout = FileLayout(codec="none", row_group_size=group, parquet=PLAIN.parquet)
        written.append((rows(first, count), table.append(rows(first, count), layout=layout)[0]))
    table.delete_positions({written[1][1]: [0, 5, 29_999], written[2][1]: [899_999]})
    bucket.upload(table)
    expected = pa.concat_tables([part for part, _ in written])["id"].to_pylist()
    deleted = {100, 105, 30_099, 939_999}

    for options in OPTIONS:
        scan = open_table(f"s3://{bucket.name}/t", bucket.properties).scan()
        found = scan.to_table(options)
        assert sorted(found["id"].to_pylist()) == [i for i in expected if i not in deleted]
        few = scan.filter("id > 939990").select(["name", "a"]).to_table(options)
        assert few["name"].to_pylist() == [f"n{i % 7}" for i in range(939_991, 939_999)]


def test_small_files_take_a_request_each(bucket: Bucket, table: TableWriter) -> None:
    with table.commit() as commit:
        for first in range(0, 4000, 100):
            commit.append(rows(first, 100))
    bucket.upload(table)
    scan = open_table(f"s3://{bucket.name}/t", bucket.properties).scan()
    tasks = scan.plan_files()
    before = bucket.proxy.requests

    found = scan.to_batches_for_tasks(tasks)

    assert sum(batch.num_rows for batch in found) == 4000
    assert bucket.proxy.requests - before == 40


def test_a_large_row_group_takes_a_request_for_each_piece(
    bucket: Bucket, table: TableWriter
) -> None:
    table.append(rows(0, 800_000), layout=PLAIN)
    bucket.upload(table)
    scan = open_table(f"s3://{bucket.name}/t", bucket.properties).scan().select(["id", "a", "b"])
    (task,) = scan.plan_files()
    before = bucket.proxy.requests

    found = scan.to_batches_for_tasks([task])

    assert pa.Table.from_batches(found)["id"].to_pylist() == list(range(800_000))
    # the tail, and of 18 MB five slices of three columns
    assert bucket.proxy.requests - before == 1 + 5 * 3


def test_a_file_that_is_gone_is_named_in_its_turn(bucket: Bucket, table: TableWriter) -> None:
    files = [table.append(rows(first, 100))[0] for first in range(0, 1000, 100)]
    gone = files[4]
    table.local(gone.location).unlink()
    bucket.upload(table)
    scan = open_table(f"s3://{bucket.name}/t", bucket.properties).scan()
    tasks = scan.plan_files()
    place = [task.data_file.location for task in tasks].index(gone.location)

    with scan.to_batch_reader() as reader, pytest.raises(MissingFile, match=gone.location):
        reader.read_all()

    assert reader.rows == 100 * place
