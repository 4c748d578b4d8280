from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import BadCommand
from floeberg.protocol.flight_sql import codes
from floeberg.protocol.flight_sql.actions import CancelResult, CloseResult, OptionError
from floeberg.protocol.flight_sql.wire import (
    CORE,
    MESSAGES,
    SQL,
    decode,
    describe_file,
    encode,
    pack,
    unpack,
    unpack_body,
)
from tests.support.flight_sql_driver import driver_file

FILES = {CORE: "Flight.proto", SQL: "FlightSql.proto"}


def messages(home: DescriptorProto, prefix: str = "") -> Iterator[tuple[str, DescriptorProto]]:
    name = prefix + home.name
    yield name, home
    for nested in home.nested_type:
        yield from messages(nested, f"{name}.")


def fields(message: DescriptorProto) -> dict[int, tuple[object, ...]]:
    """What of each field is seen on the wire, or by who reads it."""
    types = FieldDescriptorProto.Type
    return {
        f.number: (
            f.name,
            # they are written alike
            types.TYPE_INT32 if f.type == types.TYPE_ENUM else f.type,
            f.type_name if f.type == types.TYPE_MESSAGE else "",
            f.label,
            f.proto3_optional,
            f.HasField("oneof_index"),
        )
        for f in message.field
    }


@pytest.mark.parametrize("package", FILES)
def test_messages_are_those_of_a_stock_driver(package: str):
    ours = describe_file(package, MESSAGES[package])
    theirs = driver_file(FILES[package])
    known = {name: m for home in theirs.message_type for name, m in messages(home)}

    made = [pair for home in ours.message_type for pair in messages(home)]

    assert theirs.package == package
    assert len(made) > 10
    for name, message in made:
        assert fields(message) == fields(known[name]), name
        assert message.options.map_entry == known[name].options.map_entry


def test_codes_are_those_of_a_stock_driver():
    theirs = {
        e.name: {v.name: v.number for v in e.value} for e in driver_file(FILES[SQL]).enum_type
    }

    for name in (n for n in dir(codes) if n in theirs):
        for member in getattr(codes, name):
            assert theirs[name][member.name] == member.value
    # what it doesn't tell are versions of plans, which there are none of
    untold = set(theirs["SqlInfo"]) - {member.name for member in codes.SqlInfo}
    assert untold == {
        "FLIGHT_SQL_SERVER_SUBSTRAIT_MIN_VERSION",
        "FLIGHT_SQL_SERVER_SUBSTRAIT_MAX_VERSION",
    }


def test_results_of_actions_are_those_of_a_stock_driver():
    core = {m.name: m for m in driver_file(FILES[CORE]).message_type}

    def numbers(message: str, enum: str) -> dict[str, int]:
        (found,) = (e for e in core[message].enum_type if e.name == enum)
        return {v.name: v.number for v in found.value}

    errors = numbers("SetSessionOptionsResult", "ErrorValue")
    assert {e.name: e.value for e in OptionError} == {k: v for k, v in errors.items() if v}
    assert numbers("CloseSessionResult", "Status")["CLOSED"] == CloseResult.CLOSED
    (cancels,) = driver_file(FILES[CORE]).enum_type
    assert cancels.value[CancelResult.NOT_CANCELLABLE].name == "CANCEL_STATUS_NOT_CANCELLABLE"


def test_a_message_comes_back_from_its_wrapping():
    raw = pack("CommandStatementQuery", query="SELECT 1")

    assert unpack(raw) == (
        "CommandStatementQuery",
        encode("CommandStatementQuery", query="SELECT 1"),
    )
    assert AnyMessage.FromString(raw).type_url == f"type.googleapis.com/{SQL}.CommandStatementQuery"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b'{"table": "db.orders"}',
        b"flb\x01 a ticket",
        b"\x0a\xff",
        AnyMessage(type_url="type.googleapis.com/google.rpc.Status").SerializeToString(),
        AnyMessage(type_url=f"{SQL}x.CommandStatementQuery").SerializeToString(),
        b"\x12\x02hi",
    ],
)
def test_anything_else_is_no_message_of_flight_sql(raw: bytes):
    assert unpack(raw) is None
    with pytest.raises(BadCommand, match="it takes a ActionCreate"):
        unpack_body("ActionCreatePreparedStatementRequest", raw)


@given(st.binary(max_size=60))
def test_damaged_messages_are_refused_and_nothing_else_happens(raw: bytes):
    unpack(raw)
    for name in ("CommandGetTables", "SetSessionOptionsRequest"):
        with suppress(BadCommand):
            decode(name, raw)
