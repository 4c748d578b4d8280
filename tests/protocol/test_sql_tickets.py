from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import BadTicket, ExpiredTicket, PlanTooLarge
from floeberg.protocol.sealing import NONCE_BYTES, SQL_TICKET, TICKET, Key, Keyring
from floeberg.protocol.sql_tickets import (
    MAX_ENDPOINTS,
    MAX_INPUTS,
    MAX_SQL_CHARACTERS,
    InputEndpoint,
    SqlInput,
    SqlSettings,
    SqlTicket,
    decode_rows,
    encode_body,
    encode_rows,
    is_sql_ticket,
    open_sql_ticket,
    seal_sql_ticket,
)
from floeberg.protocol.ticket_heads import Origin, StreamLimits, TicketHead, encode_head
from floeberg.protocol.tickets import open_ticket

NOW = 1_700_000_000_000
EXPIRY = NOW + 300_000
KEYRING = Keyring((Key("k1", bytes(range(32))),))
HEADER = b"flq\x01\x02k1"
ORDERS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("tags", pa.list_(pa.string())), ("u", pa.uuid())]
)
TICKET_OF_SQL = SqlTicket(
    "select sum(id) as total from i0 join i1 using (id)",
    pa.schema([("total", pa.int64())]),
    (
        SqlInput(
            "i0",
            ORDERS,
            (
                InputEndpoint(b"sealed 1", ("grpc://10.0.0.1:8816", "grpc://10.0.0.2:8816")),
                InputEndpoint(b"sealed 2"),
            ),
        ),
        SqlInput("i1", pa.schema([])),
        SqlInput("i2", pa.schema([]), rows=b"rows"),
    ),
    principal="ann",
    expires_at_ms=EXPIRY,
    settings=SqlSettings("Europe/Berlin", 1 << 16),
    origin=Origin("q1", "r1", "lake.db.orders"),
    is_bound=True,
    limits=StreamLimits(rows=10, seconds=5.0, until_ms=NOW + 5000),
)


ROWS = pa.table({"id": [1, 2, None], "tags": [["a"], None, []]})


def opened(raw: bytes, keyring: Keyring = KEYRING) -> SqlTicket:
    return open_sql_ticket(raw, keyring, now_ms=NOW)


def sealed_body(body: bytes) -> bytes:
    """Return a ticket of bytes that only the holder of a key can seal."""
    content = encode_head(TicketHead(None, EXPIRY)) + body
    return HEADER + KEYRING.active.seal(SQL_TICKET, content, HEADER, bytes(NONCE_BYTES))


def test_a_ticket_says_what_was_sealed() -> None:
    raw = seal_sql_ticket(TICKET_OF_SQL, KEYRING)

    assert opened(raw) == TICKET_OF_SQL
    assert opened(raw).inputs[0].schema.equals(ORDERS, check_metadata=True)
    assert is_sql_ticket(raw)


names = st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True)
endpoints = st.builds(
    InputEndpoint, st.binary(max_size=20), st.lists(st.text(max_size=20), max_size=4).map(tuple)
)
schemas = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.sampled_from([pa.int64(), pa.string(), pa.decimal128(38, 0), pa.struct([("a", pa.null())])]),
    max_size=3,
).map(lambda columns: pa.schema(list(columns.items())))
inputs = st.builds(
    SqlInput, names, schemas, st.lists(endpoints, max_size=3).map(tuple), st.binary(max_size=20)
)
tickets = st.builds(
    SqlTicket,
    st.text(max_size=40),
    schemas,
    st.lists(inputs, max_size=3, unique_by=lambda one: one.name).map(tuple),
    st.none() | st.text(max_size=5),
    st.just(EXPIRY),
    is_bound=st.booleans(),
    is_part=st.booleans(),
)


@given(tickets)
def test_any_ticket_comes_back(ticket: SqlTicket) -> None:
    assert opened(seal_sql_ticket(ticket, KEYRING)) == ticket


def test_it_shows_nothing_but_its_key_id() -> None:
    raw = seal_sql_ticket(TICKET_OF_SQL, KEYRING)

    assert raw.startswith(HEADER)
    for secret in (b"select", b"ann", b"10.0.0.1", b"sealed", b"orders"):
        assert secret not in raw


def test_every_truncation_and_every_flipped_bit_is_refused() -> None:
    raw = seal_sql_ticket(TICKET_OF_SQL, KEYRING)

    for size in range(len(raw)):
        with pytest.raises(BadTicket):
            opened(raw[:size])
    with pytest.raises(BadTicket):
        opened(raw + b"\0")
    for bit in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadTicket):
            opened(bytes(flipped))


@given(st.data())
def test_a_body_that_another_version_wrote_is_a_bad_ticket_or_a_whole_one(
    data: st.DataObject,
) -> None:
    body = bytearray(encode_body(TICKET_OF_SQL))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        match data.draw(st.sampled_from(["set", "cut", "insert"])):
            case "set":
                body[at] = data.draw(st.integers(0, 255))
            case "cut":
                del body[at : at + data.draw(st.integers(1, 8))]
            case _:
                body[at:at] = data.draw(st.binary(min_size=1, max_size=8))

    try:
        ticket = opened(sealed_body(bytes(body)))
    except BadTicket:
        return
    assert isinstance(ticket.sql, str)
    assert all(isinstance(e.ticket, bytes) for one in ticket.inputs for e in one.endpoints)


@given(st.binary(max_size=200))
def test_noise_is_a_bad_ticket(noise: bytes) -> None:
    for raw in (noise, b"flq" + noise, HEADER + noise, sealed_body(noise)):
        with pytest.raises(BadTicket):
            opened(raw)


def test_kinds_of_tickets_are_not_taken_for_one_another() -> None:
    raw = seal_sql_ticket(TICKET_OF_SQL, KEYRING)
    content = encode_head(TicketHead(None, EXPIRY)) + encode_body(TICKET_OF_SQL)
    other = HEADER + KEYRING.active.seal(TICKET, content, HEADER, bytes(NONCE_BYTES))

    with pytest.raises(BadTicket, match="not a ticket"):
        open_ticket(raw, KEYRING, now_ms=NOW)
    with pytest.raises(BadTicket, match="sealed with another key"):
        opened(other)


def test_a_ticket_expires_and_its_key_must_be_known() -> None:
    raw = seal_sql_ticket(TICKET_OF_SQL, KEYRING)

    with pytest.raises(ExpiredTicket, match="2 s ago"):
        open_sql_ticket(raw, KEYRING, now_ms=EXPIRY + 2000)
    with pytest.raises(BadTicket, match="key 'k1', which this process does not have"):
        opened(raw, Keyring.generate())
    with pytest.raises(BadTicket, match="version 2"):
        opened(raw[:3] + b"\x02" + raw[4:])


def test_what_would_not_be_read_is_not_sealed() -> None:
    many = (InputEndpoint(b""),) * (MAX_ENDPOINTS + 1)
    for too_large in (
        replace(TICKET_OF_SQL, sql="x" * (MAX_SQL_CHARACTERS + 1)),
        replace(TICKET_OF_SQL, inputs=(SqlInput("i0", ORDERS, many),)),
        replace(
            TICKET_OF_SQL,
            inputs=tuple(SqlInput(f"i{n}", ORDERS) for n in range(MAX_INPUTS + 1)),
        ),
    ):
        with pytest.raises(PlanTooLarge):
            seal_sql_ticket(too_large, KEYRING)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(TICKET_OF_SQL, inputs=TICKET_OF_SQL.inputs * 2),
        replace(TICKET_OF_SQL, inputs=(SqlInput('i0"; drop', ORDERS),)),
        replace(TICKET_OF_SQL, settings=SqlSettings(timezone="x'; set a=1")),
        replace(TICKET_OF_SQL, settings=SqlSettings(batch_bytes=0)),
        replace(TICKET_OF_SQL, settings=SqlSettings(batch_bytes=1 << 40)),
        replace(
            TICKET_OF_SQL,
            schema=pa.schema([("d", pa.list_(pa.dictionary(pa.int8(), pa.string())))]),
        ),
        replace(
            TICKET_OF_SQL,
            inputs=(SqlInput("i0", ORDERS, (InputEndpoint(b"", ("x" * 2000,)),)),),
        ),
    ],
    ids=["names", "name", "timezone", "no batch", "large batch", "dictionary", "location"],
)
def test_what_no_coordinator_seals_is_refused(wrong: SqlTicket) -> None:
    with pytest.raises(BadTicket):
        opened(seal_sql_ticket(wrong, KEYRING))


def test_an_input_may_have_rows_in_itself() -> None:
    raw = seal_sql_ticket(
        replace(TICKET_OF_SQL, inputs=(SqlInput("i0", ROWS.schema, rows=encode_rows(ROWS)),)),
        KEYRING,
    )

    (one,) = opened(raw).inputs
    assert pa.Table.from_batches(decode_rows(one.rows), one.schema) == ROWS
