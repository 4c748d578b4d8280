from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.files import DataFile, FileFormat, ManifestContent, ManifestFile, Metrics
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.storage import StorageConfig
from floeberg.server.planning.manifest_cache import ListKey, ManifestCache, ManifestKey
from floeberg.server.planning.manifest_list import ManifestList


def key(number: int, **facts: Any) -> ManifestKey:
    manifest = ManifestFile(
        f"s3://b/{number}",
        **{"length": 1, "spec_id": 0, "sequence_number": 1, "added_snapshot_id": 1, **facts},
    )
    return ManifestKey.of(manifest, "uuid")


def segment(count: int, columns: int = 0) -> Segment:
    metrics = Metrics(value_counts=dict.fromkeys(range(columns), 7))
    files = [
        DataFile(f"s3://b/{i:01000}", FileFormat.PARQUET, 1, 1, 0, metrics=metrics)
        for i in range(count)
    ]
    entries = [ManifestEntry(EntryStatus.ADDED, 1, file) for file in files]
    return pack_entries(entries, ManifestFile("s3://b/m", 1, 0))


def found(cache: ManifestCache, wanted: ManifestKey) -> Segment | None:
    return cache.segments([wanted])[0]


def test_what_was_kept_is_found_again():
    cache, kept = ManifestCache(), segment(2)
    cache.keep_segment(key(1), kept)
    listed = ManifestList([ManifestFile("m", 1, 0)], "uuid")
    cache.keep_manifest_list(ListKey("uuid", "l"), listed)

    assert cache.segments([key(1), key(2)]) == [kept, None]
    assert cache.manifest_list(ListKey("uuid", "l")) is listed
    assert (cache.hits, cache.misses) == (2, 1)


def test_copies_of_a_table_in_two_stores_are_kept_apart():
    cache, kept = ManifestCache(), segment(2)
    here = StorageConfig(rebase={"s3://b": "/data/here"}).store
    there = StorageConfig(rebase={"s3://b": "/data/there"}).store

    cache.within(here).keep_segment(key(1), kept)

    assert found(cache.within(here), key(1)) is kept
    assert found(cache.within(there), key(1)) is None


def test_what_entries_inherit_keeps_them_apart():
    cache = ManifestCache()
    cache.keep_segment(key(1), segment(2))

    others = [
        key(1, first_row_id=1000),
        key(1, sequence_number=2),
        key(1, added_snapshot_id=2),
        key(1, spec_id=1),
        key(1, length=2),
        key(1, content=ManifestContent.DELETES),
    ]
    assert cache.segments(others) == [None] * len(others)
    assert cache.manifest_list(ListKey("another table", "l")) is None


def test_the_least_recently_used_goes_first():
    size = segment(10).memory_bytes
    cache = ManifestCache(max_bytes=size * 5 // 2 * 8 // 7)  # an eighth is for lists
    cache.keep_segment(key(1), segment(10))
    cache.keep_segment(key(2), segment(10))
    assert found(cache, key(1))

    cache.keep_segment(key(3), segment(10))

    assert found(cache, key(2)) is None
    assert found(cache, key(1))
    assert found(cache, key(3))
    assert cache.evictions == 1


def test_what_is_too_large_is_not_kept():
    cache = ManifestCache(max_bytes=20_000)
    cache.keep_segment(key(1), segment(2))

    cache.keep_segment(key(1), segment(2, columns=1000))

    assert found(cache, key(1)) is None
    assert cache.size_bytes == 0


_USES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 12), st.booleans(), st.booleans()), max_size=60
)


@given(max_bytes=st.integers(0, 60_000), uses=_USES)
def test_it_holds_the_most_recent_that_have_room_and_no_more(max_bytes, uses):
    cache = ManifestCache(max_bytes)
    room = max_bytes - max_bytes // 8
    expected: OrderedDict[int, int] = OrderedDict()

    for number, rows, only_reads, has_columns in uses:
        if only_reads:
            assert (found(cache, key(number)) is not None) == (number in expected)
            if number in expected:
                expected.move_to_end(number)
            continue
        kept = segment(rows, columns=20 * has_columns)
        cache.keep_segment(key(number), kept)
        expected.pop(number, None)
        if kept.memory_bytes <= room:
            expected[number] = kept.memory_bytes
        while sum(expected.values()) > room:
            expected.popitem(last=False)
        assert cache.size_bytes == sum(expected.values()) <= max_bytes

    kept_now = [number for number in range(7) if cache.segment_if_kept(key(number))]
    assert kept_now == sorted(expected)


def test_threads_may_share_it():
    cache = ManifestCache(max_bytes=50_000)
    segments = [segment(count) for count in range(1, 4)]

    def use(number: int) -> None:
        for i in range(200):
            cache.keep_segment(key(i % 13), segments[(number + i) % 3])
            assert found(cache, key(i % 7)) in (None, *segments)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))

    assert cache.size_bytes <= 50_000
    assert cache.hits + cache.misses == 8 * 200
