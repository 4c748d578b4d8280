"""Files are there as a whole or not at all; what the directory's users do with them is tested with
these."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from floeberg.process.cache_directory import CacheDirectory, bytes_on_disk


def test_a_file_is_written_whole_however_little_the_system_takes_at_once(tmp_path: Path) -> None:
    def slowly(file: int, parts: Sequence[bytes | memoryview]) -> int:
        return os.write(file, parts[0][:3])

    directory = CacheDirectory(tmp_path / "a" / "b", "files")
    directory.write("x", [b"0123456", b"", memoryview(b"789"), b"a"], slowly)

    path = tmp_path / "a" / "b" / "files" / "x"
    assert path.read_bytes() == b"0123456789a"
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert directory.swept(0) == ["x"]


def test_of_a_file_that_could_not_be_written_nothing_is_left(tmp_path: Path) -> None:
    def full(file: int, parts: Sequence[bytes | memoryview]) -> int:
        os.write(file, b"half of it")
        raise OSError(errno.ENOSPC, "full")

    directory = CacheDirectory(tmp_path, "files")
    directory.write("x", [b"as it was"], os.writev)
    with pytest.raises(OSError, match="full"):
        directory.write("x", [b"anew"], full)

    assert os.listdir(tmp_path / "files") == ["x"]
    assert (tmp_path / "files" / "x").read_bytes() == b"as it was"


def test_who_has_a_file_open_keeps_it_when_it_is_replaced(tmp_path: Path) -> None:
    directory = CacheDirectory(tmp_path, "files")
    directory.write("x", [b"before"], os.writev)
    file = directory.open("x")

    directory.write("x", [b"after"], os.writev)

    assert os.pread(file, 10, 0) == b"before"
    os.close(file)


def test_what_lies_under_the_name_of_an_unfinished_file_is_removed_and_not_followed(
    tmp_path: Path,
) -> None:
    directory = CacheDirectory(tmp_path / "cache", "files")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("another's")
    link, pipe = (tmp_path / "cache" / "files" / f".{n:032x}.part" for n in (1, 2))
    link.symlink_to(elsewhere)
    os.mkfifo(pipe)

    assert directory.swept(0) == []
    assert directory.swept(0) == []

    assert not link.is_symlink()
    assert not pipe.exists()
    assert elsewhere.read_text() == "another's"


def test_sizes_on_disk() -> None:
    assert [bytes_on_disk(n) for n in (0, 1, 4096, 4097)] == [0, 4096, 4096, 8192]
