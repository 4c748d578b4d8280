from __future__ import annotations

import threading
from pathlib import Path

import pytest

from floeberg.process.background import Background
from floeberg.process.storage import open_storage
from floeberg.process.storage.abandonable import AbandonableStorage, Ask
from floeberg.protocol.errors import Cancelled, MissingFile
from floeberg.protocol.storage import Storage, StorageConfig
from tests.support.held import Holdup
from tests.support.waiting import wait_until


class Caller:
    """Somebody who waits, until they are gone."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    def check(self) -> None:
        if self.gone.is_set():
            raise Cancelled("over")

    def ask(self, background: Background) -> Ask:
        return lambda request: background.ask(request, self.check)


@pytest.fixture
def holdup() -> Holdup:
    return Holdup("slow")


@pytest.mark.parametrize("far", [True, False], ids=["far", "local"])
def test_requests_are_passed_on_until_the_caller_is_gone(
    tmp_path: Path, holdup: Holdup, far: bool
) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    path, caller = str(tmp_path / "a"), Caller()
    inner = holdup.storage(StorageConfig()) if far else open_storage()
    storage: Storage = AbandonableStorage(
        inner, caller.ask(Background(2, "ab-passed")), caller.check
    )

    assert storage.read(path) == b"abc"
    assert storage.read_ranges(path, [(1, 2)]) == [b"bc"]
    assert storage.read_many([(path, [(0, 1)])]) == [[b"a"]]
    assert storage.size(path) == 3
    assert list(storage.list(str(tmp_path))) == ["a"]
    assert not storage.is_directory(path)
    with storage.open(path) as file:
        assert file.read() == b"abc"
    assert storage.is_local(path) is not far
    with pytest.raises(MissingFile):
        storage.read(path + "b")
    caller.gone.set()
    with pytest.raises(Cancelled):
        storage.read(path)


def test_a_request_that_has_begun_is_left_and_one_that_has_not_never_begins(
    tmp_path: Path, holdup: Holdup
) -> None:
    for name in ("slow-1", "slow-2"):
        (tmp_path / name).write_bytes(b"abc")
    caller, background = Caller(), Background(1, "ab-left")
    inner = holdup.storage(StorageConfig())
    storage = AbandonableStorage(inner, caller.ask(background), caller.check)
    raised: list[Exception] = []

    def read(name: str) -> None:
        try:
            storage.read(str(tmp_path / name))
        except Cancelled as error:
            raised.append(error)

    threads = [threading.Thread(target=read, args=(f"slow-{n}",)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: holdup.held == 1, "a request to be held up")
    caller.gone.set()
    for thread in threads:
        thread.join(10)

    assert len(raised) == 2
    assert holdup.held == 1, "nobody waits for it, and it goes on"
    holdup.release()
    wait_until(lambda: holdup.held == 0, "the request to end")
