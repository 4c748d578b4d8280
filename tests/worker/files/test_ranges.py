"""A file over ranges reads as the object does, with the requests that were expected of it."""

from __future__ import annotations

import io
import weakref
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.background import Background
from floeberg.process.storage import open_storage
from floeberg.worker.files import ranges
from floeberg.worker.files.ranges import RangeFile
from floeberg.worker.files.windows import Ahead
from tests.support.reads import CountingStorage

spans = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), max_size=8)


@given(
    windows=st.lists(spans, max_size=3),
    reads=st.lists(st.tuples(st.integers(0, 300), st.integers(-1, 80)), max_size=10),
    read_ahead=st.integers(0, 100),
    has_tail=st.booleans(),
    ahead=st.sampled_from([None, Ahead(Background(2, "test-fetch"))]),
)
def test_reads_the_bytes_of_the_object_whatever_was_expected(
    windows: list[list[tuple[int, int]]],
    reads: list[tuple[int, int]],
    read_ahead: int,
    has_tail: bool,
    ahead: Ahead | None,
) -> None:
    content = bytes(i % 251 for i in range(260))
    file = RangeFile(_Memory(content), "x", len(content), read_ahead, ahead)
    if has_tail:
        file.fetch_tail()
    file.expect(windows)
    plain = io.BytesIO(content)

    for start, length in reads:
        plain.seek(start)
        file.seek(start)
        assert file.read(length) == plain.read(length)
        assert file.tell() == max(plain.tell(), start)


class _Memory(CountingStorage):
    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        parts = [self._content[start : start + length] for start, length in ranges]
        return self._counted([(location, parts)])


def test_a_window_is_one_request() -> None:
    storage = _Memory(bytes(1000))
    file = RangeFile(storage, "x", 1000)
    file.expect([[(0, 10), (500, 10)], [(900, 10)]])

    for start in (0, 500, 5, 900, 905, 500):
        file.seek(start)
        file.read(5)

    assert len(storage.rounds) == 2


def test_the_tail_of_a_small_file_is_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    file = RangeFile(open_storage(), str(path), 3)

    file.fetch_tail()
    path.unlink()

    assert file.read() == b"abc"
    assert ranges.TAIL_BYTES > 3


def test_a_file_is_gone_with_its_last_user(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1000))
    file = RangeFile(open_storage(), str(tmp_path / "x"), 1000)
    file.expect([[(0, 10)]])
    file.read(10)
    gone = weakref.ref(file)

    del file

    assert gone() is None, "what it has fetched is not left to the collector of cycles"
