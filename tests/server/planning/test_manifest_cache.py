from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from floeberg.protocol.files import DataFile, FileFormat, ManifestFile, Metrics
from floeberg.protocol.manifests import EntryStatus, ManifestEntry
from floeberg.protocol.storage import StorageConfig
from floeberg.server.planning.manifest_cache import ListKey, ManifestCache, ManifestKey


def key(number: int, **inherited: int) -> ManifestKey:
    facts = {"spec_id": 0, "sequence_number": 1, "added_snapshot_id": 1, "first_row_id": 0}
    return ManifestKey("uuid", f"s3://b/{number}", **{**facts, **inherited})


def entries(count: int, columns: int = 0) -> tuple[ManifestEntry, ...]:
    metrics = Metrics(value_counts=dict.fromkeys(range(columns), 1))
    file = DataFile("s3://b/f", FileFormat.PARQUET, 1, 1, 0, metrics=metrics)
    return (ManifestEntry(EntryStatus.ADDED, 1, file),) * count


def test_what_was_kept_is_found_again():
    cache = ManifestCache()
    cache.keep_entries(key(1), entries(2))
    cache.keep_manifest_list(ListKey("uuid", "l"), (ManifestFile("m", 1, 0),))

    assert cache.entries(key(1)) == entries(2)
    assert cache.manifest_list(ListKey("uuid", "l")) == (ManifestFile("m", 1, 0),)
    assert cache.entries(key(2)) is None
    assert (cache.hits, cache.misses) == (2, 1)


def test_copies_of_a_table_in_two_stores_are_kept_apart():
    cache = ManifestCache()
    here = StorageConfig(rebase={"s3://b": "/data/here"}).store
    there = StorageConfig(rebase={"s3://b": "/data/there"}).store

    cache.within(here).keep_entries(key(1), entries(2))

    assert cache.within(here).entries(key(1)) == entries(2)
    assert cache.within(there).entries(key(1)) is None


def test_what_entries_inherit_keeps_them_apart():
    cache = ManifestCache()
    cache.keep_entries(key(1), entries(2))

    assert cache.entries(key(1, first_row_id=1000)) is None
    assert cache.entries(key(1, sequence_number=2)) is None
    assert cache.manifest_list(ListKey("another table", "l")) is None


def test_the_least_recently_used_goes_first():
    cache = ManifestCache(max_bytes=20_000)
    cache.keep_entries(key(1), entries(5))
    cache.keep_entries(key(2), entries(5))
    assert cache.entries(key(1))

    cache.keep_entries(key(3), entries(5))

    assert cache.entries(key(2)) is None
    assert cache.entries(key(1))
    assert cache.entries(key(3))
    assert cache.size_bytes <= 20_000


def test_what_is_too_large_is_not_kept():
    cache = ManifestCache(max_bytes=20_000)
    cache.keep_entries(key(1), entries(2))

    cache.keep_entries(key(1), entries(2, columns=1000))

    assert cache.entries(key(1)) is None
    assert cache.size_bytes == 0


def test_threads_may_share_it():
    cache = ManifestCache(max_bytes=50_000)

    def use(number: int) -> None:
        for i in range(200):
            cache.keep_entries(key(i % 13), entries(1 + (number + i) % 3))
            found = cache.entries(key(i % 7))
            assert found is None or 1 <= len(found) <= 3

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))

    assert cache.size_bytes <= 50_000
    assert cache.hits + cache.misses == 8 * 200
