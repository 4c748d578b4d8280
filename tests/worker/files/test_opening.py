"""A file is read in as few rounds as its size allows, and no byte of it twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from floeberg.process.background import Background
from floeberg.protocol.files import DataFile, FileFormat
from floeberg.worker.cache import LoadingCache
from floeberg.worker.files.footers import Footers
from floeberg.worker.files.opening import open_rows
from floeberg.worker.files.ranges import TAIL_BYTES
from floeberg.worker.files.row_groups import WINDOW_BYTES
from floeberg.worker.files.rows import Share
from floeberg.worker.files.windows import Ahead
from tests.support.avro_container import container
from tests.support.decoded import table_of
from tests.support.reads import CountingStorage

MB = 1 << 20
NUMBER = 8


@pytest.fixture(params=["at need", "ahead"])
def ahead(request: pytest.FixtureRequest) -> Ahead | None:
    return Ahead(Background(2, "test-fetch")) if request.param == "ahead" else None


@pytest.fixture
def storage() -> CountingStorage:
    return CountingStorage(is_far=True)


def numbers(columns: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    names = [f"n{i}" for i in range(columns)]
    return pa.Table.from_arrays([pa.array(rng.random(rows)) for _ in names], names=names)


def written(directory: Path, table: pa.Table, rows_a_group: int) -> DataFile:
    path = directory / "f.parquet"
    pq.write_table(
        table, path, row_group_size=rows_a_group, compression="none", use_dictionary=False
    )
    size = path.stat().st_size
    return DataFile(str(path), FileFormat.PARQUET, table.num_rows, size, spec_id=0)


def rows_of(
    storage: CountingStorage, file: DataFile, ahead: Ahead | None, leaves: Iterator[int] | range
) -> pa.Table:
    with open_rows(storage, file, ahead=ahead) as opened:
        chunks = [chunk.rows for chunk in opened.chunks(frozenset(leaves))]
        assert opened.unread_bytes == 0
    names = [column.name for column in opened.decoded(frozenset(leaves))]
    return table_of(chunks, names)


def test_a_small_file_takes_one_request(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    table = numbers(4, 1000)
    file = written(tmp_path, table, 100)

    found = rows_of(storage, file, ahead, range(4))

    assert found.equals(table)
    assert storage.requests == {file.location: 1}
    assert storage.bytes_read == {file.location: file.size_bytes}


def test_row_groups_come_a_window_at_a_time(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    rows_a_group = 7 * MB // (2 * NUMBER)
    table = numbers(2, 6 * rows_a_group)
    file = written(tmp_path, table, rows_a_group)

    found = rows_of(storage, file, ahead, range(2))

    assert found.equals(table)
    assert len(storage.rounds) == 1 + 3  # the tail, and windows of two row groups
    assert storage.requests == {file.location: 1 + 3}
    # all but what is before the first page
    assert storage.bytes_read == {file.location: file.size_bytes - 4}


def test_a_row_group_larger_than_a_window_comes_in_slices(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    table = numbers(8, 5 * MB // NUMBER - 2000)
    file = written(tmp_path, table, table.num_rows)

    found = rows_of(storage, file, ahead, range(8))

    slices = 5  # of 8 MB: a megabyte of each column, for which a request is worth it
    assert found.equals(table)
    assert len(storage.rounds) == 1 + slices
    # where one column's last piece meets the next one's first, they are in different slices
    assert storage.requests == {file.location: 1 + slices * 8}
    assert file.size_bytes - 4 == storage.bytes_read[file.location]


def test_columns_of_other_widths_are_read_from_the_same_slices(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    """Texts get longer and shorter, so that columns advance through their bytes at other paces."""
    rng = np.random.default_rng(2)
    lengths = np.linspace(10, 400, 100_000).astype(int)
    letters = rng.bytes(400).hex()
    grows = [letters[i % 300 :][:n] for i, n in enumerate(lengths)]
    table = pa.table({"grows": grows, "shrinks": grows[::-1], "n": rng.random(100_000)})
    file = written(tmp_path, table, table.num_rows)
    assert file.size_bytes > 2 * WINDOW_BYTES

    found = rows_of(storage, file, ahead, range(3))

    assert found.equals(table)
    assert storage.bytes_read[file.location] <= file.size_bytes
    assert len(storage.rounds) <= 1 + file.size_bytes // (4 * MB) + 1


def test_one_column_of_twenty_takes_its_bytes_only(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    table = numbers(20, MB // NUMBER)
    file = written(tmp_path, table, table.num_rows)

    found = rows_of(storage, file, ahead, range(7, 8))

    assert found["n7"].equals(table["n7"])
    assert len(storage.rounds) == 2
    assert storage.requests == {file.location: 2}
    assert 0 < storage.bytes_read[file.location] - TAIL_BYTES - MB < 2000


def test_an_avro_file_is_fetched_once(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    fields = [{"name": "id", "type": "long", "field-id": 1}, {"name": "text", "type": "string"}]
    records = [{"id": i, "text": f"{i} " * 200} for i in range(3000)]
    schema = {"type": "record", "name": "r", "fields": fields}
    path = tmp_path / "f.avro"
    path.write_bytes(container(schema, records, codec="null", records_per_block=50))
    size = path.stat().st_size
    assert size > 4 * TAIL_BYTES
    file = DataFile(str(path), FileFormat.AVRO, 3000, size, spec_id=0)

    found = rows_of(storage, file, ahead, range(1))

    assert found.num_rows == 3000
    assert storage.requests == {file.location: 1}
    assert storage.bytes_read == {file.location: size}


def test_shares_of_a_file_read_its_footer_once(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    rows_a_group = MB // (2 * NUMBER)
    table = numbers(2, 4 * rows_a_group)
    file = written(tmp_path, table, rows_a_group)
    footers = Footers(LoadingCache())

    parts = []
    for start in range(0, 4 * MB, MB):
        with open_rows(storage, file, ahead=ahead, footers=footers) as opened:
            chunks = opened.chunks(frozenset({0, 1}), Share(start, MB if start < 3 * MB else 0))
            parts += [chunk.rows for chunk in chunks]

    assert table_of(parts, table.column_names).equals(table)
    assert len(storage.rounds) == 1 + 4
    # the last share lies in part in the tail that came with the footer, and was not kept
    assert file.size_bytes <= storage.bytes_read[file.location] <= file.size_bytes + TAIL_BYTES


def opened_twice(
    storage: CountingStorage, ahead: Ahead | None, first: DataFile, second: DataFile
) -> list[tuple[int, int]]:
    """Open two files with the same footers kept; return the requests and bytes of each opening."""
    footers, counts = Footers(LoadingCache()), []
    for file in (first, second):
        storage.requests.clear()
        storage.bytes_read.clear()
        with open_rows(storage, file, ahead=ahead, footers=footers) as rows:
            assert rows.num_rows == file.record_count
        counts.append((storage.requests.total(), storage.bytes_read.total()))
    return counts


def test_a_footer_that_is_kept_is_not_asked_for_again(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    table = numbers(2, 4 * MB // NUMBER)
    file = written(tmp_path, table, table.num_rows)

    assert opened_twice(storage, ahead, file, file) == [(1, TAIL_BYTES), (0, 0)]


def test_of_a_large_file_only_what_the_footer_says_is_kept(
    tmp_path: Path, storage: CountingStorage
) -> None:
    table = numbers(2, 4 * MB // NUMBER)
    file, cache = written(tmp_path, table, table.num_rows), LoadingCache()

    open_rows(storage, file, footers=Footers(cache)).close()

    assert 0 < cache.size_bytes < TAIL_BYTES // 8


def test_a_small_file_is_kept_whole(
    tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    table = numbers(2, 1000)
    file, footers = written(tmp_path, table, 1000), Footers(LoadingCache())

    for _ in range(2):
        with open_rows(storage, file, ahead=ahead, footers=footers) as rows:
            chunks = [chunk.rows for chunk in rows.chunks(frozenset({0, 1}))]
            assert table_of(chunks, table.column_names).equals(table)

    assert storage.requests == {file.location: 1}


@pytest.mark.parametrize("rows", [1000, 4 * MB // NUMBER], ids=["small", "large"])
def test_a_file_of_another_size_under_the_same_name_is_another_file(
    rows: int, tmp_path: Path, storage: CountingStorage, ahead: Ahead | None
) -> None:
    first = written(tmp_path, numbers(2, rows), rows)
    footers = Footers(LoadingCache())
    open_rows(storage, first, ahead=ahead, footers=footers).close()
    table = numbers(2, rows + 1)
    second = written(tmp_path, table, rows + 1)
    assert second.location == first.location

    with open_rows(storage, second, ahead=ahead, footers=footers) as opened:
        chunks = [chunk.rows for chunk in opened.chunks(frozenset({0, 1}))]

    assert table_of(chunks, table.column_names).equals(table)
