from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from floeberg.process.lifecycle import Stop, wait_until, write_ready_file
from floeberg.protocol.errors import BadConfig


@pytest.fixture
def signals_restored() -> Iterator[None]:
    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals_restored")
def test_a_signal_asks_to_stop_and_a_second_one_to_hurry() -> None:
    stop = Stop()
    stop.on_signals()

    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(5)
    assert not stop.at_once.is_set()

    os.kill(os.getpid(), signal.SIGINT)
    assert stop.at_once.wait(5)


def test_the_end_of_the_parent_s_pipe_stops_at_once() -> None:
    reading, writing = os.pipe()
    stop = Stop()
    stop.on_end_of(reading)
    os.write(writing, b"noise is not an end")
    assert not stop.asked

    os.close(writing)

    assert stop.wait(5)
    assert stop.at_once.is_set()


def test_waiting_ends_with_the_condition_the_time_or_the_hurry() -> None:
    calm, hurry = threading.Event(), threading.Event()
    hurry.set()
    answers = iter([False, False, True])

    assert wait_until(lambda: next(answers), seconds=5, hurry=calm, every=0.001)
    assert not wait_until(lambda: False, seconds=0.01, hurry=calm, every=0.001)
    assert not wait_until(lambda: False, seconds=600, hurry=hurry)


def test_a_ready_file_holds_the_addresses_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_ready_file(tmp_path / "ready.json", {"coordinator": "grpc+tcp://127.0.0.1:1"})
    write_ready_file(None, {})

    assert [p.name for p in tmp_path.iterdir()] == ["ready.json"]
    ready = json.loads((tmp_path / "ready.json").read_text())
    assert ready == {"coordinator": "grpc+tcp://127.0.0.1:1"}


def test_a_ready_file_that_cannot_be_written_is_a_mistake_in_the_configuration(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadConfig, match=r"'ready_file': .*gone/ready\.json cannot be written: No"):
        write_ready_file(tmp_path / "gone" / "ready.json", {})
