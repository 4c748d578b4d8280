"""What the cache on disk gives is what was put in, whatever happens to its files."""

from __future__ import annotations

import errno
import logging
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.process.storage.ranges import Range
from floeberg.worker.blocks.cache import BlockCache
from floeberg.worker.blocks.layout import HEADER_BYTES
from floeberg.worker.blocks.objects import StoredObject
from tests.support.waiting import wait_until

MB = 1 << 20
SIZE = 5 * MB // 2
CONTENT = (bytes(range(251)) * (SIZE // 251 + 1))[:SIZE]
OBJECT = StoredObject.of("store", "s3://b/f.parquet", SIZE)
ROOM = 64 * MB


def put(cache: BlockCache, start: int, length: int, of: StoredObject = OBJECT) -> None:
    cache.put(of, [(start, CONTENT[start : start + length])])
    wait_until(lambda: cache.pending_bytes == 0, "the block to be written")


def got(cache: BlockCache, start: int, length: int, of: StoredObject = OBJECT) -> bytes | None:
    """Return the bytes of a range, None where not all of them are kept."""
    target = bytearray(length)
    return None if cache.fill(of, start, memoryview(target)) else bytes(target)


def missing(cache: BlockCache, start: int, length: int) -> list[Range]:
    """Return what is missing of a range; the rest is as it was put in."""
    target = bytearray(length)
    ranges = cache.fill(OBJECT, start, memoryview(target))
    expected = bytearray(CONTENT[start : start + length])
    for first, count in ranges:
        assert start <= first < first + count <= start + length
        target[first - start : first - start + count] = bytes(count)
        expected[first - start : first - start + count] = bytes(count)
    assert target == expected
    return ranges


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory / "blocks"))


def path_of(directory: Path, index: int = 0) -> Path:
    return directory / "blocks" / f"{OBJECT.block(index).hex()}.block"


def in_a_process(code: str, directory: Path) -> subprocess.CompletedProcess[str]:
    head = "import os, sys; from tests.worker.blocks.test_cache import *\n"
    return subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code), str(directory)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# --- what is kept ---------------------------------------------------------------------------------

ranges = st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE)).map(
    lambda r: (r[0], min(r[1], SIZE - r[0]))
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), ranges), max_size=8))
def test_what_is_given_is_what_was_put_in(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, tuple[int, int]]]
) -> None:
    cache = BlockCache(tmp_path_factory.mktemp("cache"), ROOM)

    for is_put, (start, length) in steps:
        if is_put:
            put(cache, start, length)
            assert got(cache, start, length) == CONTENT[start : start + length]
        missing(cache, start, length)
    assert cache.counts().damaged == cache.counts().failures == 0


def test_another_process_finds_what_was_kept(tmp_path: Path) -> None:
    put(BlockCache(tmp_path, ROOM), 100, 2 * MB)

    cache = BlockCache(tmp_path, ROOM)

    assert got(cache, 100, 2 * MB) == CONTENT[100 : 100 + 2 * MB]
    assert got(cache, MB - 7, 9) == CONTENT[MB - 7 : MB + 2]
    assert (cache.hits, cache.misses) == (5, 0)
    assert cache.counts().read_bytes == 2 * MB + 9
    wait_until(lambda: cache.size_bytes > 2 * MB, "a look at the directory")


def test_only_what_was_fetched_is_kept_and_what_is_missing_is_told(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 1000, 500)
    put(cache, MB, 500)

    assert missing(cache, 900, 2 * MB) == [(900, 2 * MB)]
    assert missing(cache, 1200, 300) == []
    assert missing(cache, MB - 10, 510) == [(MB - 10, 10)]
    assert missing(cache, MB, 501) == [(MB, 501)]
    assert sum(path.stat().st_size for path in (tmp_path / "blocks").iterdir()) == 1000 + 2 * 512


def test_what_touches_becomes_one_and_what_is_known_is_not_written_again(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    for start in (0, 2000, 1000):
        put(cache, start, 1000)
    written = cache.counts().written_bytes

    put(cache, 500, 2000)

    assert cache.counts().written_bytes == written
    assert got(cache, 0, 3000) == CONTENT[:3000]


def test_whatever_an_object_is_known_by_makes_another_one(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 0, 100)

    for other in (
        StoredObject.of("store", "s3://b/f.parquet", SIZE + 1),
        StoredObject.of("store", "s3://b/g.parquet", SIZE),
        StoredObject.of("other", "s3://b/f.parquet", SIZE),
    ):
        assert got(cache, 0, 100, other) is None


def test_nobody_else_can_look_into_it(tmp_path: Path) -> None:
    put(BlockCache(tmp_path / "cache", ROOM), 0, 100)

    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "cache" / "blocks").stat().st_mode) == 0o700
    assert stat.S_IMODE(path_of(tmp_path / "cache").stat().st_mode) == 0o400


def test_what_is_forgotten_is_gone(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 0, SIZE)
    assert len(names(tmp_path)) == 3

    cache.forget(OBJECT)

    assert names(tmp_path) == []
    assert cache.size_bytes == 0
    assert got(cache, 0, 10) is None


# --- what is damaged ------------------------------------------------------------------------------

LENGTH = 5000


def changed(directory: Path, change: Callable[[bytes], bytes]) -> None:
    path = path_of(directory)
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(change(whole))


def assert_replaced(cache: BlockCache, directory: Path) -> None:
    """Assert that the block is taken for damaged, is gone, and can be kept again."""
    before = cache.counts().damaged
    assert got(cache, 0, LENGTH) is None
    assert cache.counts().damaged == before + 1
    assert names(directory) == []
    put(cache, 0, LENGTH)
    assert got(cache, 0, LENGTH) == CONTENT[:LENGTH]


def test_a_truncated_block_is_not_believed(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 0, LENGTH)
    size = HEADER_BYTES + LENGTH
    for cut in (0, 1, 8, 47, 48, 508, 511, 512, 513, size // 2, size - 4096, size - 1):
        changed(tmp_path, lambda raw, cut=cut: raw[:cut])
        assert_replaced(cache, tmp_path)


def test_a_block_of_which_a_bit_is_flipped_is_not_believed(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 0, LENGTH)
    size = HEADER_BYTES + LENGTH
    for place in [*range(0, HEADER_BYTES, 17), *range(HEADER_BYTES, size, 111), size - 1]:

        def flip(raw: bytes, place: int = place) -> bytes:
            return raw[:place] + bytes([raw[place] ^ (1 << place % 8)]) + raw[place + 1 :]

        changed(tmp_path, flip)
        assert_replaced(cache, tmp_path)


def test_what_is_damaged_is_not_carried_on_when_more_is_added(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 0, LENGTH)
    changed(tmp_path, lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]))

    put(cache, LENGTH, 100)

    assert got(cache, LENGTH, 100) == CONTENT[LENGTH : LENGTH + 100]
    assert got(cache, 0, LENGTH) is None
    assert cache.counts().damaged == 0  # it was replaced unread


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw + b"\0",
        lambda raw: bytes(len(raw)),  # what a crash of the machine may leave
        lambda raw: raw[:HEADER_BYTES] + bytes(len(raw) - HEADER_BYTES),
        lambda raw: raw[HEADER_BYTES:],
    ],
    ids=["longer", "zeros", "zeros behind the header", "no header"],
)
def test_what_was_not_written_so_is_not_believed(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, 0, LENGTH)

    changed(tmp_path, change)

    assert_replaced(cache, tmp_path)


def test_a_block_under_anothers_name_is_not_believed(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    put(cache, MB, LENGTH)
    os.replace(path_of(tmp_path, 1), path_of(tmp_path, 0))

    assert_replaced(cache, tmp_path)


# --- writers that do not finish, and that fall behind ---------------------------------------------


def test_what_a_killed_writer_leaves_is_swept_and_nothing_is_lost(tmp_path: Path) -> None:
    put(BlockCache(tmp_path, ROOM), 0, LENGTH)

    ended = in_a_process(
        """
        def die(file, parts):
            os.write(file, b"".join(parts)[:1000])
            os.kill(os.getpid(), 9)

        put(BlockCache(sys.argv[1], ROOM, write=die), 4000, LENGTH)
        """,
        tmp_path,
    )

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert len(names(tmp_path)) == 2
    cache = BlockCache(tmp_path, ROOM)
    assert got(cache, 0, LENGTH) == CONTENT[:LENGTH]
    wait_until(lambda: len(names(tmp_path)) == 1, "what was left to be swept")


def test_processes_that_write_and_read_at_once_see_whole_blocks_only(tmp_path: Path) -> None:
    code = """
        import random
        cache = BlockCache(sys.argv[1], 3 * MB)
        at = random.Random(os.getpid())
        for _ in range(150):
            start = at.randrange(SIZE - 1)
            length = min(at.randrange(1, MB), SIZE - start)
            cache.put(OBJECT, [(start, CONTENT[start:start + length])])
            missing(cache, start, length)
        wait_until(lambda: cache.pending_bytes == 0, "the rest to be written")
        counts = cache.counts()
        assert (counts.damaged, counts.failures) == (0, 0), counts
        assert counts.hits
    """
    ended: list[subprocess.CompletedProcess[str]] = []
    threads = [
        threading.Thread(target=lambda: ended.append(in_a_process(code, tmp_path)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert [one.returncode for one in ended] == [0, 0, 0], [one.stderr for one in ended]


class Gate:
    """Writes nothing until it is opened."""

    def __init__(self) -> None:
        self.is_open, self.waits = threading.Event(), threading.Event()

    def write(self, file: int, parts: Sequence[bytes | memoryview]) -> int:
        self.waits.set()
        assert self.is_open.wait(20)
        return os.writev(file, parts)


def test_what_comes_while_too_much_waits_is_not_kept_and_nobody_waits(tmp_path: Path) -> None:
    gate = Gate()
    cache = BlockCache(tmp_path, 1 << 40, write=gate.write)
    part = CONTENT[:MB]
    objects = [StoredObject.of("store", f"s3://b/{i}", MB) for i in range(100)]

    for one in objects:
        cache.put(one, [(0, part)])

    assert gate.waits.wait(20)
    assert cache.counts().dropped == 100 - 64
    assert cache.pending_bytes == 64 * MB
    gate.is_open.set()
    wait_until(lambda: cache.pending_bytes == 0, "the rest to be written")
    assert len(names(tmp_path)) == 64


# --- disks that do not let it ---------------------------------------------------------------------

NOT_KEPT = "blocks are not kept on disk as they should be"


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_is_told_of_once_and_tried_again_later(
    error: int, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    now, tried = 1000.0, 0

    def refuse(file: int, parts: Sequence[bytes | memoryview]) -> int:
        nonlocal tried
        tried += 1
        if tried % 2:
            return os.write(file, parts[0][:10])
        raise OSError(error, os.strerror(error))

    cache = BlockCache(tmp_path, ROOM, write=refuse, now_seconds=lambda: now)
    for _ in range(3):
        put(cache, 0, LENGTH)
    assert tried == 2
    now += 61
    put(cache, 0, LENGTH)

    assert tried == 4
    assert names(tmp_path) == []
    assert warnings() == [NOT_KEPT]
    assert cache.counts().failures == 2
    assert got(cache, 0, LENGTH) is None


def test_a_path_that_is_no_directory_is_told_of_once(
    tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    (tmp_path / "file").write_text("no directory")

    cache = BlockCache(tmp_path / "file", ROOM)
    put(cache, 0, LENGTH)

    assert got(cache, 0, LENGTH) is None
    assert warnings() == [NOT_KEPT]
    assert cache.counts().failures == 1


def test_a_directory_that_was_removed_is_made_again(
    tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    now = 1000.0
    cache = BlockCache(tmp_path / "cache", ROOM, now_seconds=lambda: now)
    (tmp_path / "cache" / "blocks").rmdir()
    (tmp_path / "cache").rmdir()

    put(cache, 0, LENGTH)
    now += 61
    put(cache, 0, LENGTH)

    assert got(cache, 0, LENGTH) == CONTENT[:LENGTH]
    assert warnings() == [NOT_KEPT]


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o777])
def test_a_directory_that_others_may_look_into_is_refused(
    mode: int, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks").chmod(mode)

    put(BlockCache(tmp_path, ROOM), 0, LENGTH)

    assert names(tmp_path) == []
    assert warnings() == [NOT_KEPT]


def a_link(path: Path) -> None:
    target = path.parent / "target"
    target.write_bytes(b"not to be touched")
    path.symlink_to(target)


@pytest.mark.parametrize("make", [a_link, lambda path: os.mkfifo(path, 0o600)])
def test_what_is_no_file_is_removed_and_holds_nobody_up(make: Any, tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, ROOM)
    make(path_of(tmp_path))

    assert got(cache, 0, LENGTH) is None
    assert cache.counts().damaged == 1
    put(cache, 0, LENGTH)
    assert got(cache, 0, LENGTH) == CONTENT[:LENGTH]


# --- bounds ---------------------------------------------------------------------------------------


def test_it_stays_within_its_bytes_and_what_was_used_least_recently_goes(tmp_path: Path) -> None:
    room = 10 * (MB + 4096)
    cache = BlockCache(tmp_path, room)
    objects = [StoredObject.of("store", f"s3://b/{i}", MB) for i in range(30)]

    for times, one in enumerate(objects, 1):
        for _ in range(min(times, 15)):  # asked for ever more often
            got(cache, 0, MB, one)
        put(cache, 0, MB, one)
        assert got(cache, 0, 10, objects[0]) is not None  # which makes it the last one used
        on_disk = sum(path.stat().st_size for path in (tmp_path / "blocks").iterdir())
        assert on_disk <= room

    counts = cache.counts()
    assert counts.evictions + counts.refused == 20
    assert got(cache, 0, MB, objects[0]) is not None


def test_another_process_counts_what_is_there(tmp_path: Path) -> None:
    objects = [StoredObject.of("store", f"s3://b/{i}", MB) for i in range(20)]
    cache = BlockCache(tmp_path, ROOM)
    for i, one in enumerate(objects):
        put(cache, 0, MB, one)
        path = tmp_path / "blocks" / f"{one.block(0).hex()}.block"
        os.utime(path, (1000 + i, 1000 + i))

    BlockCache(tmp_path, 16 * MB)
    wait_until(lambda: len(names(tmp_path)) == 15, "what is too much to be removed")

    assert got(cache, 0, MB, objects[0]) is None
    assert got(cache, 0, MB, objects[19]) is not None


def test_checksums_are_of_the_bytes_as_they_were_put_in(tmp_path: Path) -> None:
    put(BlockCache(tmp_path, ROOM), 7, 100)

    raw = path_of(tmp_path).read_bytes()

    assert raw[HEADER_BYTES:] == CONTENT[7:107]
    assert zlib.crc32(CONTENT[7:107]).to_bytes(4, "little") in raw[:HEADER_BYTES]
