from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.requests import (
    RequestContext,
    adopt,
    current_request,
    new_request_id,
    request_of,
    trace_id_of,
    working_on,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def test_a_client_names_its_request() -> None:
    assert request_of({"x-request-id": ["nightly-7"]}) == RequestContext("nightly-7")
    assert request_of({"x-request-id": [b"nightly-7"]}) == RequestContext("nightly-7")


def test_a_trace_names_it_where_nothing_else_does() -> None:
    named = request_of({"traceparent": [TRACEPARENT]})
    both = request_of({"traceparent": [TRACEPARENT], "x-request-id": ["mine"]})

    assert named == RequestContext(TRACE, TRACEPARENT)
    assert both == RequestContext("mine", TRACEPARENT)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "00",
        TRACEPARENT.upper(),
        TRACEPARENT[:-1],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-b7ad6b7169203331-01",
    ],
)
def test_what_is_no_trace_context_is_passed_over(bad: str) -> None:
    assert trace_id_of(bad) is None
    assert request_of({"traceparent": [bad]}, lambda: "new") == RequestContext("new")


@given(st.text() | st.binary())
def test_what_a_client_sends_is_an_id_that_logs_can_hold_or_is_replaced(sent: str | bytes) -> None:
    request = request_of({"x-request-id": [sent], "traceparent": [sent]})

    assert 1 <= len(request.request_id) <= 64
    assert request.request_id.isascii()
    assert request.request_id.isprintable()
    assert " " not in request.request_id


def test_new_ids_differ() -> None:
    assert len({new_request_id() for _ in range(100)}) == 100


def test_a_thread_works_on_one_request_at_a_time() -> None:
    outer, inner, found = RequestContext("outer"), RequestContext("inner"), RequestContext("found")
    assert current_request() is None
    with working_on(outer):
        with working_on(inner):
            assert current_request() == inner
            adopt(found)
            assert current_request() == found
        assert current_request() == outer
        seen: list[RequestContext | None] = []
        thread = threading.Thread(target=lambda: seen.append(current_request()))
        thread.start()
        thread.join()
    assert seen == [None]
    assert current_request() is None
    adopt(found)
    assert current_request() is None
