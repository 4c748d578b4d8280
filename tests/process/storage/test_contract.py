"""What every storage does, proven on local files and on a real S3, by either library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from floeberg.process.storage import open_storage
from floeberg.process.storage.remote import RemoteStorage
from floeberg.protocol.errors import MissingFile
from floeberg.protocol.storage import Storage, StorageConfig

ODD_NAMES = [
    "a%2Fb",
    "a%20b+c",
    "a b",
    "a#b",
    "a{b}=c",
    "a?b&c=d",
    "a:b;c,d",
    "*[z]!",
    "ü–é.parquet",
    "day=2026-01-01 00%3A00%3A00/part-0.parquet",
    "a'\"b",
]


@dataclass(frozen=True)
class Place:
    """A storage, an empty directory in it, and a way to put files there."""

    storage: Storage
    base: str
    put: Callable[[Mapping[str, bytes]], None]


@pytest.fixture(scope="module")
def bucket(seaweed) -> str:
    seaweed.make_bucket("storage-contract")
    return "storage-contract"


@pytest.fixture(scope="module")
def s3(seaweed) -> Storage:
    return open_storage(StorageConfig(seaweed.s3_properties()))


@pytest.fixture(scope="module")
def s3fs(seaweed) -> Storage:
    return RemoteStorage("s3", seaweed.s3_properties())


@pytest.fixture(params=["local", "s3", "s3fs"])
def place(request, tmp_path) -> Place:
    if request.param == "local":

        def put(files: Mapping[str, bytes]) -> None:
            for name, data in files.items():
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)

        return Place(open_storage(), f"file://{tmp_path}", put)
    seaweed = request.getfixturevalue("seaweed")
    name = request.getfixturevalue("bucket")
    storage = request.getfixturevalue(request.param)
    directory = os.urandom(4).hex()

    def put_objects(files: Mapping[str, bytes]) -> None:
        seaweed.put(name, {f"{directory}/{key}": data for key, data in files.items()})

    return Place(storage, f"s3://{name}/{directory}", put_objects)


def test_names_are_taken_as_they_are(place: Place):
    place.put({name: name.encode() for name in ODD_NAMES})

    for name in ODD_NAMES:
        location = f"{place.base}/{name}"
        raw = name.encode()
        assert place.storage.read(location) == raw
        assert place.storage.size(location) == len(raw)
        assert place.storage.read_ranges(location, [(1, 2), (0, 1)]) == [raw[1:3], raw[:1]]
        with place.storage.open(location) as file:
            assert file.read() == raw
    top = {name.partition("/")[0] for name in ODD_NAMES}
    assert place.storage.list(place.base) == sorted(top)


def test_ranges_come_in_the_order_asked_for_and_short_beyond_the_end(place: Place):
    data = os.urandom(1000)
    place.put({"x": data})
    ranges = [(900, 100), (0, 10), (5, 10), (990, 50), (1000, 10), (5000, 10), (3, 0), (0, 1000)]

    parts = place.storage.read_ranges(f"{place.base}/x", ranges)

    assert parts == [data[start : start + length] for start, length in ranges]
    assert place.storage.read_ranges(f"{place.base}/x", []) == []


def test_many_files_are_read_at_once_and_fail_one_by_one(place: Place):
    files = {f"f{i}": os.urandom(100 + i) for i in range(5)}
    place.put(files)
    none = f"{place.base}/none"
    requests = [(f"{place.base}/{name}", [(10, 5), (0, 2), (90, 999)]) for name in files]

    *found, last, empty = place.storage.read_many([*requests, (none, [(0, 1)]), (none, [])])

    assert found == [[data[10:15], data[:2], data[90:]] for data in files.values()]
    assert isinstance(last, MissingFile)
    assert none in str(last)
    assert empty == [] or isinstance(empty, MissingFile)
    assert place.storage.read_many([]) == []


def test_an_empty_file_is_a_file(place: Place):
    place.put({"empty": b""})
    location = f"{place.base}/empty"

    assert place.storage.read(location) == b""
    assert place.storage.size(location) == 0
    assert place.storage.read_ranges(location, [(0, 8)]) == [b""]
    with place.storage.open(location) as file:
        assert file.read() == b""


def test_a_file_is_read_at_random(place: Place):
    table = pa.table({"id": list(range(5000)), "text": [f"row {i}" for i in range(5000)]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=1000)
    place.put({"t.parquet": sink.getvalue().to_pybytes()})

    with place.storage.open(f"{place.base}/t.parquet") as file:
        read = pq.ParquetFile(file, pre_buffer=False).read_row_group(3, columns=["id"])
        assert read["id"].to_pylist() == list(range(3000, 4000))
        file.seek(0)
        assert file.read(4) == b"PAR1"
        assert file.tell() == 4


def test_directories_list_only_what_is_directly_below(place: Place):
    place.put({"a/x": b"1", "a/b/y": b"2", "a/b/z": b"3", "ab": b"4"})

    assert place.storage.list(place.base) == ["a", "ab"]
    assert place.storage.list(f"{place.base}/a") == ["b", "x"]
    assert place.storage.list(f"{place.base}/a/") == ["b", "x"]
    assert place.storage.list(f"{place.base}/ab") == []
    assert place.storage.list(f"{place.base}/none") == []
    kinds = {name: place.storage.is_directory(f"{place.base}/{name}") for name in ("a", "ab", "c")}
    assert kinds == {"a": True, "ab": False, "c": False}
    assert place.storage.is_directory(f"{place.base}/a/b/")


def test_what_is_not_a_file_is_missing_and_named(place: Place):
    place.put({"a/x": b"1"})

    for name in ("none", "a", "a/x/y"):
        location = f"{place.base}/{name}"
        for call in (
            place.storage.read,
            place.storage.size,
            place.storage.open,
            lambda where: place.storage.read_ranges(where, [(0, 1)]),
        ):
            with pytest.raises(MissingFile, match=location):
                call(location)


def test_a_listing_shows_what_was_just_written(place: Place):
    place.put({"metadata/v1": b"1"})
    assert place.storage.list(f"{place.base}/metadata") == ["v1"]

    place.put({"metadata/v2": b"2"})
    assert place.storage.list(f"{place.base}/metadata") == ["v1", "v2"]


def test_threads_share_a_storage(place: Place):
    files = {f"f{i}": os.urandom(2000) for i in range(20)}
    place.put(files)

    def read(name: str) -> bool:
        location = f"{place.base}/{name}"
        data = files[name]
        return (
            place.storage.read(location) == data
            and place.storage.read_ranges(location, [(10, 5)]) == [data[10:15]]
            and place.storage.open(location).read() == data
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, list(files) * 3))
