import threading

import pytest

from floeberg.server.catalogs.bounded_calls import BoundedCalls


def test_a_call_gives_what_it_returns_or_raises():
    calls = BoundedCalls("test", 10)

    assert calls.run(lambda: 42) == 42
    with pytest.raises(KeyError, match="lost"):
        calls.run(lambda: {}["lost"])


def test_a_call_that_hangs_is_given_up_and_holds_its_thread():
    calls = BoundedCalls("test", 0.05, max_threads=1)
    release = threading.Event()

    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        calls.run(release.wait)
    with pytest.raises(TimeoutError, match="earlier calls are still waiting"):
        calls.run(lambda: 1)

    release.set()
    assert calls.run(lambda: 1) == 1


def test_a_timeout_of_the_call_itself_is_its_own():
    def call():
        raise TimeoutError("the socket's")

    with pytest.raises(TimeoutError, match="the socket's"):
        BoundedCalls("test", 10).run(call)


def test_threads_hold_up_no_exit():
    daemons = BoundedCalls("test", 10).run(lambda: threading.current_thread().daemon)

    assert daemons
