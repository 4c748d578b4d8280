from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.process.storage import open_storage
from floeberg.process.storage.interruptible import InterruptibleStorage
from floeberg.protocol.errors import Cancelled


def test_a_storage_reads_no_more_once_it_is_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    over: list[bool] = []

    def check() -> None:
        if over:
            raise Cancelled("over")

    storage = InterruptibleStorage(open_storage(), check)
    path = str(tmp_path / "a")

    assert storage.read(path) == b"abc"
    assert storage.read_ranges(path, [(1, 2)]) == [b"bc"]
    assert storage.read_many([(path, [(0, 1)])]) == [[b"a"]]
    assert storage.size(path) == 3
    assert list(storage.list(str(tmp_path))) == ["a"]
    assert not storage.is_directory(path)
    assert storage.is_local(path)
    with storage.open(path) as file:
        assert file.read() == b"abc"
    over.append(True)
    with pytest.raises(Cancelled):
        storage.read(path)
