from __future__ import annotations

import pytest

from floeberg.protocol.errors import BadCommand
from floeberg.protocol.flight_sql.actions import (
    CANCEL_FLIGHT_INFO,
    CANCEL_QUERY,
    OptionError,
    OptionValue,
    Prepared,
    PrepareRequest,
    encode_bound,
    encode_closed,
    encode_not_cancellable,
    encode_option_errors,
    encode_options,
    encode_options_to_set,
    handle_to_close,
    options_to_set,
    parse_bound,
    parse_option_errors,
)
from floeberg.protocol.flight_sql.wire import decode, encode, pack, unpack_body

OPTIONS: dict[str, OptionValue] = {
    "text": "main",
    "empty": "",
    "flag": False,
    "number": -(1 << 63),
    "part": 0.5,
    "list": ("a", "b"),
    "nothing listed": (),
}


def test_a_request_to_prepare_is_read():
    raw = pack("ActionCreatePreparedStatementRequest", query="SELECT ?")

    assert PrepareRequest.parse(raw) == PrepareRequest("SELECT ?", None)
    with pytest.raises(BadCommand, match="it takes a ActionCreatePreparedStatementRequest"):
        PrepareRequest.parse(pack("CommandStatementQuery", query="SELECT ?"))


def test_what_was_prepared_is_told_whole():
    raw = Prepared(b"handle", b"rows", b"parameters").encode()

    told = unpack_body("ActionCreatePreparedStatementResult", raw)
    assert told.prepared_statement_handle == b"handle"
    assert (told.dataset_schema, told.parameter_schema) == (b"rows", b"parameters")
    # said, and not only left at its default
    assert told.HasField("is_update")
    assert not told.is_update


def test_handles_travel():
    closing = pack("ActionClosePreparedStatementRequest", prepared_statement_handle=b"h")
    bound = decode("DoPutPreparedStatementResult", encode_bound(b"other"))

    assert handle_to_close(closing) == b"h"
    assert bound.prepared_statement_handle == b"other"


def test_options_of_every_kind_come_back():
    # the two messages are alike
    assert options_to_set(encode_options(OPTIONS)) == OPTIONS


def test_an_option_without_a_value_is_to_be_erased():
    value = decode("SessionOptionValue", b"")

    assert options_to_set(encode("SetSessionOptionsRequest", session_options={"ref": value})) == {
        "ref": None
    }


def test_problems_with_options_are_told_by_name():
    raw = encode_option_errors({"a": OptionError.INVALID_NAME, "b": OptionError.INVALID_VALUE})

    told = decode("SetSessionOptionsResult", raw).errors
    assert {name: error.value for name, error in told.items()} == {"a": 1, "b": 2}


def test_the_other_answers():
    assert decode("CloseSessionResult", encode_closed()).status == 1
    assert decode("CancelFlightInfoResult", encode_not_cancellable(CANCEL_FLIGHT_INFO)).status == 3
    cancelled = unpack_body("ActionCancelQueryResult", encode_not_cancellable(CANCEL_QUERY))
    assert cancelled.result == 3


# --- floeberg's own client -----------------------------------------------------------------------


def test_what_a_client_sends_is_what_a_server_reads():
    for request in (PrepareRequest("SELECT ?"), PrepareRequest("SELECT 1", b"t")):
        assert PrepareRequest.parse(request.encode()) == request
    assert options_to_set(encode_options_to_set(OPTIONS)) == OPTIONS


def test_what_a_server_answers_is_what_a_client_reads():
    prepared = Prepared(b"handle", b"rows", b"parameters")
    errors = {"a": OptionError.INVALID_NAME, "b": OptionError.INVALID_VALUE}
    of_a_later_version = b"\x0a\x07\x0a\x01c\x12\x02\x08\x07"  # errors: {"c": {value: 7}}

    assert Prepared.parse(prepared.encode()) == prepared
    assert parse_bound(encode_bound(b"other")) == b"other"
    assert parse_option_errors(encode_option_errors(errors)) == errors
    assert parse_option_errors(of_a_later_version) == {"c": OptionError.ERROR}
