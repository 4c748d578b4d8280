from __future__ import annotations

import errno
import logging
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from floeberg.protocol.files import DataFile, FileFormat, ManifestFile
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.server.planning.segment_files import FileKey, SegmentFiles

LOCATION = "s3://b/m.avro"
KEY = FileKey.of(LOCATION, "uuid", 1)


def segment(rows: int, location: str = LOCATION) -> Segment:
    files = [DataFile(f"s3://b/{i:099}", FileFormat.PARQUET, i, i, 0) for i in range(rows)]
    entries = [ManifestEntry(EntryStatus.ADDED, 1, file) for file in files]
    return pack_entries(entries, ManifestFile(location, 1, 0))


SMALL, LARGE = segment(30), segment(5000)
"""One is read, the other mapped."""


@pytest.fixture(params=[SMALL, LARGE], ids=["read", "mapped"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Segment:
    SegmentFiles(tmp_path).put(KEY, request.param)
    return request.param


def path_of(directory: Path, key: FileKey = KEY) -> Path:
    return directory / "manifests" / key.name


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory / "manifests"))


def in_a_process(code: str, directory: Path) -> subprocess.CompletedProcess[str]:
    head = "import os, sys; from tests.server.planning.test_segment_files import *\n"
    return subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code), str(directory)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# --- what is kept ---------------------------------------------------------------------------------


def test_another_process_finds_what_was_kept(kept, tmp_path):
    files = SegmentFiles(tmp_path)

    found = files.get(KEY)

    assert found is not None
    assert bytes(found.buffer) == bytes(kept.buffer)
    assert found.entries() == kept.entries()
    assert (files.hits, files.misses) == (1, 0)


def test_whatever_a_segment_depends_on_makes_another_key(kept, tmp_path):
    files = SegmentFiles(tmp_path)

    others = [
        FileKey.of(LOCATION, "uuid", 2),
        FileKey.of(LOCATION, "uuid", "1"),
        FileKey.of(LOCATION, "other", 1),
        FileKey.of("s3://b/n.avro", "uuid", 1),
    ]

    assert [files.get(other) for other in others] == [None] * 4
    assert files.misses == 4


def test_nobody_else_can_look_into_it(kept, tmp_path):
    assert stat.S_IMODE(path_of(tmp_path).parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path_of(tmp_path).stat().st_mode) == 0o400


def test_a_file_that_is_removed_or_replaced_stays_valid_where_it_is_used(kept, tmp_path):
    files = SegmentFiles(tmp_path)
    found = files.get(KEY)
    assert found is not None
    files.put(KEY, SMALL)
    path_of(tmp_path).unlink()

    assert bytes(found.buffer) == bytes(kept.buffer)
    assert files.get(KEY) is None


def test_mapped_files_take_no_descriptors(tmp_path):
    files = SegmentFiles(tmp_path)
    files.put(KEY, LARGE)
    before = len(os.listdir("/dev/fd"))

    found = [files.get(KEY) for _ in range(20)]

    assert None not in found
    assert len(os.listdir("/dev/fd")) == before


# --- what is damaged ------------------------------------------------------------------------------


def changed(directory: Path, change: Callable[[bytes], bytes]) -> None:
    assert SegmentFiles(directory).get(KEY) is not None  # as it is
    path = path_of(directory)
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(change(whole))


def assert_not_believed(directory: Path) -> None:
    files = SegmentFiles(directory)
    assert files.get(KEY) is None
    assert files.damaged == 1
    assert names(directory) == []


def cuts(size: int) -> Iterator[int]:
    yield from (0, 1, 8, 63, 64, 65, 100, 64 + 40, size // 2, size - 4096, size - 65, size - 1)


@pytest.mark.parametrize("whole", [SMALL, LARGE], ids=["read", "mapped"])
def test_a_truncated_file_is_not_believed(whole, tmp_path):
    for cut in cuts(64 + whole.size_bytes):
        SegmentFiles(tmp_path).put(KEY, whole)
        changed(tmp_path, lambda raw, cut=cut: raw[: max(cut, 0)])
        assert_not_believed(tmp_path)


@pytest.mark.parametrize("whole", [SMALL, LARGE], ids=["read", "mapped"])
def test_a_file_of_which_a_bit_is_flipped_is_not_believed(whole, tmp_path):
    size = 64 + whole.size_bytes
    for place in [*range(0, 128, 3), *range(128, size, size // 40), size - 1]:
        SegmentFiles(tmp_path).put(KEY, whole)

        def flip(raw: bytes, place: int = place) -> bytes:
            return raw[:place] + bytes([raw[place] ^ (1 << place % 8)]) + raw[place + 1 :]

        changed(tmp_path, flip)
        assert_not_believed(tmp_path)


def with_checksum(head: bytes) -> bytes:
    return head[:60] + zlib.crc32(head[:60]).to_bytes(4, "little")


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: with_checksum(raw[:8] + b"\x02\0\0\0" + raw[12:60]) + raw[64:],
        lambda raw: with_checksum(b"ANOTHER!" + raw[8:60]) + raw[64:],
        lambda raw: raw[:64] + bytes(SMALL.buffer)[:8] + b"\x63\0\0\0" + raw[64 + 12 :],
        lambda raw: raw + b"\0",
        lambda raw: raw[:64] + bytes(segment(31).buffer),
        lambda raw: bytes(len(raw)),  # what a crash of the machine may leave
        lambda raw: b"",
    ],
    ids=["version", "magic", "format", "longer", "another's header", "zeros", "empty"],
)
def test_a_file_that_is_not_of_this_version_or_kind_is_not_believed(change, tmp_path):
    SegmentFiles(tmp_path).put(KEY, SMALL)

    changed(tmp_path, change)

    assert_not_believed(tmp_path)


def test_a_file_under_anothers_name_is_not_believed(tmp_path):
    files, other = SegmentFiles(tmp_path), FileKey.of(LOCATION, "another table", 1)
    files.put(KEY, SMALL)
    files.put(other, LARGE)
    os.replace(path_of(tmp_path, other), path_of(tmp_path))

    assert_not_believed(tmp_path)


def test_a_segment_of_another_manifest_is_not_believed(tmp_path):
    SegmentFiles(tmp_path).put(KEY, segment(3, "s3://b/other.avro"))

    assert_not_believed(tmp_path)


# --- writers that do not finish -------------------------------------------------------------------


def test_what_a_killed_writer_leaves_is_swept_and_nothing_is_lost(tmp_path):
    files = SegmentFiles(tmp_path)
    files.put(KEY, SMALL)

    ended = in_a_process(
        """
        def die(file, parts):
            os.write(file, b"".join(parts)[:1000])
            os.kill(os.getpid(), 9)

        SegmentFiles(sys.argv[1], write=die).put(KEY, SMALL)
        """,
        tmp_path,
    )

    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert len(names(tmp_path)) == 2
    assert SegmentFiles(tmp_path).get(KEY) is not None
    assert names(tmp_path) == [KEY.name]


def test_what_is_being_written_is_not_swept(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def slowly(file: int, parts: Sequence[bytes | memoryview]) -> int:
        begun.set()
        assert go_on.wait(20)
        return os.write(file, parts[0][:777])  # and not all at once

    files = SegmentFiles(tmp_path, write=slowly)
    writer = threading.Thread(target=files.put, args=(KEY, SMALL))
    writer.start()
    assert begun.wait(20)

    other = SegmentFiles(tmp_path)
    assert len(names(tmp_path)) == 1
    assert other.get(KEY) is None
    go_on.set()
    writer.join(20)

    assert names(tmp_path) == [KEY.name]
    assert other.get(KEY) is not None


# --- disks that do not let it ---------------------------------------------------------------------


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


NOT_KEPT = "manifests are not kept on disk as they should be"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_is_warned_of_once_and_tried_again_later(error, tmp_path, warnings):
    now = 1000.0
    tried = 0

    def refuse(file: int, parts: Sequence[bytes | memoryview]) -> int:
        nonlocal tried
        tried += 1
        if tried % 2:
            return os.write(file, parts[0][:10])
        raise OSError(error, os.strerror(error))

    files = SegmentFiles(tmp_path, write=refuse, now_seconds=lambda: now)
    for _ in range(3):
        files.put(KEY, SMALL)
    assert tried == 2
    now += 61
    files.put(KEY, SMALL)

    assert tried == 4
    assert names(tmp_path) == []
    assert warnings() == [NOT_KEPT]
    assert files.get(KEY) is None


def test_a_limit_on_the_size_of_files_is_no_catastrophe(tmp_path):
    ended = in_a_process(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        files = SegmentFiles(sys.argv[1])
        files.put(KEY, LARGE)
        assert files.get(KEY) is None
        """,
        tmp_path,
    )

    assert ended.returncode == 0, ended.stderr
    assert names(tmp_path) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20_000


def test_a_path_that_is_no_directory_is_warned_of_once(tmp_path, warnings):
    (tmp_path / "file").write_text("no directory")

    files = SegmentFiles(tmp_path / "file")
    files.put(KEY, SMALL)

    assert files.get(KEY) is None
    assert warnings() == [NOT_KEPT]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_lies_in_a_directory_without_leave_to_write_is_read(kept, tmp_path, warnings):
    path_of(tmp_path).parent.chmod(0o500)
    files = SegmentFiles(tmp_path)

    files.put(FileKey.of("another"), SMALL)

    assert files.get(KEY) is not None
    assert warnings() == [NOT_KEPT]
    path_of(tmp_path).parent.chmod(0o700)


def test_a_directory_that_was_removed_is_made_again(tmp_path, warnings):
    now = 1000.0
    files = SegmentFiles(tmp_path / "cache", now_seconds=lambda: now)
    (tmp_path / "cache" / "manifests").rmdir()
    (tmp_path / "cache").rmdir()

    files.put(KEY, SMALL)
    now += 61
    files.put(KEY, SMALL)

    assert files.get(KEY) is not None
    assert warnings() == [NOT_KEPT]


# --- others on the machine ------------------------------------------------------------------------


def test_a_link_in_place_of_the_directory_is_refused(tmp_path, warnings):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "manifests").symlink_to(tmp_path / "elsewhere")

    files = SegmentFiles(tmp_path / "cache")
    files.put(KEY, SMALL)

    assert os.listdir(tmp_path / "elsewhere") == []
    assert warnings() == [NOT_KEPT]


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o777])
def test_a_directory_that_others_may_look_into_is_refused(mode, tmp_path, warnings):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests").chmod(mode)

    SegmentFiles(tmp_path).put(KEY, SMALL)

    assert names(tmp_path) == []
    assert warnings() == [NOT_KEPT]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_and_files_of_another_user_are_refused(tmp_path, warnings):
    files = SegmentFiles(tmp_path)
    files.put(KEY, SMALL)
    os.chown(path_of(tmp_path), 12345, 12345)
    assert files.get(KEY) is None
    assert files.damaged == 1
    os.chown(path_of(tmp_path).parent, 12345, 12345)

    SegmentFiles(tmp_path).put(KEY, SMALL)

    assert names(tmp_path) == []
    assert NOT_KEPT in warnings()


def test_a_link_in_place_of_a_file_is_removed_and_not_followed(tmp_path):
    files = SegmentFiles(tmp_path / "cache")
    files.put(KEY, SMALL)
    target = tmp_path / "target"
    path_of(tmp_path / "cache").rename(target)
    path_of(tmp_path / "cache").symlink_to(target)

    assert files.get(KEY) is None
    assert files.damaged == 1
    files.put(KEY, LARGE)

    assert files.get(KEY) is not None
    assert target.stat().st_size == 64 + SMALL.size_bytes


def test_a_pipe_in_place_of_a_file_holds_nobody_up(tmp_path):
    files = SegmentFiles(tmp_path)
    os.mkfifo(path_of(tmp_path), 0o600)
    os.mkfifo(tmp_path / "manifests" / f".{'0' * 32}.part", 0o600)

    assert files.get(KEY) is None
    files.put(KEY, SMALL)
    assert SegmentFiles(tmp_path).get(KEY) is not None


# --- bounds ---------------------------------------------------------------------------------------


def test_the_least_recently_used_are_removed(tmp_path):
    each = 64 + SMALL.size_bytes
    room = -(-each // 4096) * 4096
    files = SegmentFiles(tmp_path, max_bytes=10 * room)
    keys = [FileKey.of(LOCATION, i) for i in range(30)]
    for i, key in enumerate(keys):
        files.put(key, SMALL)
        if path_of(tmp_path, key).exists():
            os.utime(path_of(tmp_path, key), (i, i))
        if keys[0].name in names(tmp_path):
            assert files.get(keys[0]) is not None  # which makes it the last one used

        assert len(names(tmp_path)) <= 10

    assert files.evictions >= 20
    assert set(names(tmp_path)) >= {keys[0].name, keys[28].name, keys[29].name}


def test_what_is_larger_than_all_of_it_is_not_written(tmp_path):
    files = SegmentFiles(tmp_path, max_bytes=1000)

    files.put(KEY, SMALL)

    assert names(tmp_path) == []
    assert files.written_bytes == 0
