"""What was asked for beforehand answers the read that it is for, once, and every other read goes on
to storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.process.background import Background
from floeberg.process.storage.abandonable import AbandonableStorage, Ask
from floeberg.protocol.errors import Cancelled, MissingFile
from floeberg.worker.reading.primed import PrimedStorage
from tests.support.reads import CountingStorage
from tests.support.waiting import wait_until


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    return [str(tmp_path / name) for name in ("a", "b", "none")]


@pytest.fixture
def counting() -> CountingStorage:
    return CountingStorage(is_far=True)


def test_one_round_answers_many_reads(files: list[str], counting: CountingStorage) -> None:
    first, second, _ = files
    storage = PrimedStorage(counting, Background(1, "test-prime"))
    storage.prime([(first, (0, 3)), (second, (90, 10)), (first, (0, 3))])

    assert storage.read_ranges(second, [(90, 10)]) == [b"b" * 10]
    assert storage.read_ranges(first, [(0, 3)]) == [b"aaa"]
    assert counting.rounds == [[first, second]]

    assert storage.read_ranges(first, [(0, 3)]) == [b"aaa"]
    assert storage.read_ranges(first, [(0, 4), (5, 1)]) == [b"aaaa", b"a"]
    assert counting.rounds == [[first, second], [first], [first]]


def test_a_file_that_is_missing_fails_alone(files: list[str], counting: CountingStorage) -> None:
    first, _, none = files
    storage = PrimedStorage(counting, Background(1, "test-prime"))
    storage.prime([(none, (0, 1)), (first, (0, 1))])

    with pytest.raises(MissingFile, match=none):
        storage.read_ranges(none, [(0, 1)])
    assert storage.read_ranges(first, [(0, 1)]) == [b"a"]


def test_what_ends_a_round_ends_the_reads_that_it_is_for(
    files: list[str], counting: CountingStorage
) -> None:
    def over() -> None:
        raise Cancelled("over")

    requests = Background(1, "test-request")
    ask: Ask = lambda request: requests.ask(request, over)  # noqa: E731
    storage = PrimedStorage(
        AbandonableStorage(counting, ask, over),
        Background(1, "test-prime"),
    )
    storage.prime([(files[0], (0, 1)), (files[1], (0, 1))])

    for location in files[:2]:
        with pytest.raises(Cancelled):
            storage.read_ranges(location, [(0, 1)])


def test_it_says_what_has_come(files: list[str], counting: CountingStorage) -> None:
    part = (files[0], (0, 1))
    storage = PrimedStorage(counting, Background(1, "test-prime"))
    assert storage.has_come([part])  # reading it waits for nothing that was asked for

    storage.prime([part])
    wait_until(lambda: storage.has_come([part]), "the part to come")
    storage.forget([part])

    storage.read_ranges(files[0], [(0, 1)])
    assert len(counting.rounds) == 2
