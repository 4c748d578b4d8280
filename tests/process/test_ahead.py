import os
import subprocess
import sys
import threading
from contextlib import closing

import pyarrow as pa
import pytest

from floeberg.process.ahead import read_as_they_come, read_in_order


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [number]})


def numbers(batches) -> list[int]:
    return [n for b in batches for n in b["n"].to_pylist()]


def three_each(source: int):
    return (batch(source * 10 + i) for i in range(3))


@pytest.mark.parametrize("in_flight", [1, 2, 7])
def test_order_is_the_sources_order_at_any_width(in_flight):
    read = numbers(read_in_order(range(5), three_each, in_flight=in_flight))

    assert read == [s * 10 + i for s in range(5) for i in range(3)]


@pytest.mark.parametrize("in_flight", [1, 2, 7])
def test_as_they_come_delivers_each_batch_once_and_keeps_a_sources_order(in_flight):
    read = numbers(read_as_they_come(range(5), three_each, in_flight=in_flight))

    assert sorted(read) == [s * 10 + i for s in range(5) for i in range(3)]
    for source in range(5):
        assert [n for n in read if n // 10 == source] == [source * 10 + i for i in range(3)]


@pytest.mark.parametrize("read_all", [read_in_order, read_as_they_come])
def test_a_failure_is_raised_after_the_batches_before_it(read_all):
    def failing(source: int):
        yield batch(source)
        raise OSError("the disk is gone")

    batches = read_all([1], failing, in_flight=2)

    assert next(batches)["n"].to_pylist() == [1]
    with pytest.raises(OSError, match="disk is gone"):
        next(batches)


@pytest.mark.parametrize("read_all", [read_in_order, read_as_they_come])
def test_what_is_held_is_bounded_and_closing_stops_the_reading(read_all):
    produced: list[int] = []
    stopped = threading.Event()

    def endless(source: int):
        try:
            for i in range(1_000_000):
                produced.append(i)
                yield batch(i)
        finally:
            stopped.set()

    with closing(read_all([1], endless, in_flight=1)) as batches:
        next(batches)

    assert stopped.wait(10)
    assert len(produced) < 20


def test_no_sources_give_no_batches():
    assert numbers(read_in_order([], three_each, in_flight=2)) == []
    assert numbers(read_as_they_come([], three_each, in_flight=2)) == []


@pytest.mark.parametrize("read_all", [read_in_order, read_as_they_come])
def test_closing_interrupts_a_read_that_waits(read_all):
    interrupted = threading.Event()

    def waits_after_one(source: int):
        yield batch(source)
        assert interrupted.wait(10)

    batches = read_all([1], waits_after_one, in_flight=1, on_stop=interrupted.set)
    next(batches)
    batches.close()

    assert interrupted.is_set()


def test_a_source_after_the_window_is_not_started():
    started: list[int] = []

    def read(source: int):
        started.append(source)
        yield from three_each(source)

    with closing(read_in_order(range(50), read, in_flight=2)) as batches:
        next(batches)

    assert len(started) <= 3


@pytest.mark.parametrize("read_all", ["read_in_order", "read_as_they_come"])
def test_a_stream_left_open_does_not_keep_the_process(read_all):
    script = f"""
import itertools, pyarrow as pa
from floeberg.process.ahead import {read_all} as read_all

one = pa.RecordBatch.from_pydict({{"n": [1]}})
batches = read_all([1, 2, 3], lambda source: itertools.repeat(one), in_flight=2)
print(next(batches).num_rows)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=30
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
