from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from floeberg.protocol.errors import CorruptManifest, StorageUnavailable
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import decode_plainly
from floeberg.server.planning import ManifestCache, PlanRun
from floeberg.server.planning.manifest_loading import load_in_order
from floeberg.server.planning.manifest_source import ManifestSource
from tests.support.data_manifests import manifest_with
from tests.support.lake import TableWriter, required, schema
from tests.support.scans import RecordingStorage, scan_of
from tests.support.waiting import wait_until


class GatedStorage(RecordingStorage):
    """Holds up every read of a manifest until it is `opened`, and may refuse it then."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = threading.Event()
        self.refuses = False

    def read(self, location: str) -> bytes:
        raw = super().read(location)
        assert self.opened.wait(20)
        if self.refuses:
            raise StorageUnavailable(location)
        return raw


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    """A table of 40 manifests of one file each."""
    table = TableWriter.create(tmp_path, schema({"id": required("long")}))
    table.entries_per_manifest = 1
    with table.commit() as commit:
        for i in range(40):
            commit.append([{"id": i}])
    return table


@pytest.fixture
def manifests(table: TableWriter) -> Sequence[ManifestFile]:
    snapshot = scan_of(table).snapshot
    assert snapshot is not None
    source = ManifestSource(RecordingStorage(), ManifestCache(), "uuid", PlanRun())
    return source.manifests(snapshot).manifests


InThread = Callable[[ManifestSource, Sequence[ManifestFile]], Future[list[Any]]]


@pytest.fixture
def in_thread() -> Iterator[InThread]:
    """Reads all segments in a thread of its own."""
    with ThreadPoolExecutor(4) as pool:
        yield lambda source, manifests: pool.submit(lambda: list(source.segments(manifests)))


def source_of(storage: RecordingStorage, cache: ManifestCache) -> ManifestSource:
    return ManifestSource(storage, cache, "uuid", PlanRun())


def test_plans_that_need_the_same_at_once_load_it_once(manifests, in_thread):
    cache, first, second = ManifestCache(), GatedStorage(), GatedStorage()
    leader = in_thread(source_of(first, cache), manifests)
    wait_until(lambda: first.read_locations, "the first plan to begin")
    followers = source_of(second, cache)
    follower = in_thread(followers, manifests)
    second.opened.set()
    first.opened.set()

    assert [m for m, _ in leader.result(20)] == list(manifests)
    assert follower.result(20) == leader.result()

    read = [*first.read_locations, *second.read_locations]
    assert sorted(read) == sorted(m.location for m in manifests)
    assert followers.trace.manifests_fetched + followers.trace.manifests_cached == 40
    assert followers.trace.manifests_fetched == len(second.read_locations)


def test_what_fails_for_one_plan_does_not_fail_another(manifests, in_thread):
    cache, first, second = ManifestCache(), GatedStorage(), GatedStorage()
    first.refuses = True
    leader = in_thread(source_of(first, cache), manifests)
    wait_until(lambda: first.read_locations, "the first plan to begin")
    follower = in_thread(source_of(second, cache), manifests)
    second.opened.set()
    first.opened.set()

    with pytest.raises(StorageUnavailable):
        leader.result(20)
    assert [m for m, _ in follower.result(20)] == list(manifests)


def test_a_plan_that_is_given_up_takes_no_other_with_it(manifests, in_thread):
    cache, storage = ManifestCache(), RecordingStorage()
    given_up = source_of(storage, cache).segments(manifests)
    next(given_up)
    follower = in_thread(source_of(storage, cache), manifests)

    given_up.close()

    assert [m for m, _ in follower.result(20)] == list(manifests)


def test_closing_early_gives_up_what_was_not_begun(manifests, in_thread):
    storage = GatedStorage()
    blocked = in_thread(source_of(storage, ManifestCache()), manifests)
    wait_until(lambda: len(storage.read_locations) == 17, "every thread to be held up")
    other = RecordingStorage()
    few = source_of(other, ManifestCache()).segments(manifests)

    next(few)  # there is no thread but this one
    few.close()
    storage.opened.set()

    assert len(blocked.result(20)) == 40
    assert other.read_locations == [manifests[0].location]


def test_a_small_plan_does_not_wait_for_a_large_one(manifests, in_thread):
    storage = GatedStorage()
    large = in_thread(source_of(storage, ManifestCache()), manifests)
    wait_until(lambda: len(storage.read_locations) == 17, "every thread to be held up")

    small = source_of(RecordingStorage(), ManifestCache())

    assert len(list(small.segments(manifests[:3]))) == 3
    assert not large.done()
    storage.opened.set()
    assert len(large.result(20)) == 40


def test_no_more_bytes_are_loaded_ahead_than_is_allowed(manifests):
    storage = RecordingStorage()
    large = [replace(m, length=40 << 20) for m in manifests]
    segments = source_of(storage, ManifestCache()).segments(large)

    for read in range(1, 5):
        next(segments)
        assert len(storage.read_locations) == read
    segments.close()


def test_what_the_cache_has_no_room_for_is_right_all_the_same(manifests):
    storage, cache = RecordingStorage(), ManifestCache(max_bytes=0)

    for _ in range(2):
        found = list(source_of(storage, cache).segments([*manifests, manifests[0]]))
        assert [m for m, _ in found] == [*manifests, manifests[0]]
        assert all(segment.location == m.location for m, segment in found)
    assert cache.hits == 0


@pytest.mark.parametrize("blocks", [1, 8, 9, 100])
def test_the_blocks_of_the_only_manifest_come_in_their_order(blocks: int):
    raw, manifest = manifest_with(lambda i: {1: b"%d" % i}, 10 * blocks, per_block=10)

    (loaded,) = load_in_order([manifest], ManifestCache(), "uuid", lambda _: raw, PlanRun())

    assert loaded.segment.buffer == decode_plainly(raw, manifest).buffer
    assert len(loaded.segment) == 10 * blocks


def test_a_damaged_block_of_the_only_manifest_is_told():
    raw, manifest = manifest_with(lambda i: {}, 1000, per_block=10, codec="deflate")
    middle = len(raw) // 2
    raw = raw[:middle] + bytes(64) + raw[middle + 64 :]

    with pytest.raises(CorruptManifest, match=r"m\.avro cannot be decoded"):
        next(load_in_order([manifest], ManifestCache(), "uuid", lambda _: raw, PlanRun()))
