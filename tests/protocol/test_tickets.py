from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import BadTicket, ExpiredTicket, PlanTooLarge
from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.plans import ReadOptions, ReadPlan
from floeberg.protocol.schema import Schema
from floeberg.protocol.sealing import NONCE_BYTES, REGISTRATION, TICKET, Key, Keyring
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.tasks import FileScanTask
from floeberg.protocol.tickets import (
    START,
    OpenTicket,
    Origin,
    ResumePlace,
    StreamLimits,
    decode_place,
    encode_place,
    encode_plan,
    open_ticket,
    seal_ticket,
    with_resume,
)
from tests.support.plan_strategies import METADATA, SCHEMA, read_plans

NOW = 1_700_000_000_000
EXPIRY = NOW + 300_000
KEYRING = Keyring((Key("k1", bytes(range(32))),))
PLAN = ReadPlan(
    METADATA,
    SCHEMA.schema_id,
    Schema(SCHEMA.fields[:1], SCHEMA.schema_id),
    (
        FileScanTask(DataFile("s3://lake/a.parquet", FileFormat.PARQUET, 10, 1000, 0)),
        FileScanTask(DataFile("s3://lake/b.parquet", FileFormat.PARQUET, 20, 2000, 0)),
    ),
    StorageConfig({"s3.secret-access-key": "hunter2"}, {"s3://lake": "/copy"}),
    ReadOptions(limit=5),
)
HEADER_BYTES = len(b"flb\x01\x02k1")
PLACE_BYTES = 12


def sealed(plan: ReadPlan = PLAN, keyring: Keyring = KEYRING) -> bytes:
    return seal_ticket(plan, keyring, principal="ann", expires_at_ms=EXPIRY)


def opened(raw: bytes) -> OpenTicket:
    return open_ticket(raw, KEYRING, now_ms=NOW)


@given(read_plans, st.none() | st.text(max_size=10))
def test_a_ticket_says_what_was_sealed(plan: ReadPlan, principal: str | None):
    raw = seal_ticket(plan, KEYRING, principal=principal, expires_at_ms=EXPIRY)

    ticket = opened(raw)

    assert encode_plan(ticket.plan) == encode_plan(plan)
    assert replace(ticket.plan, tasks=()) == replace(plan, tasks=())
    assert (ticket.principal, ticket.expires_at_ms) == (principal, EXPIRY)
    assert ticket.resume == START


@given(st.builds(Origin, *[st.none() | st.text(max_size=10)] * 4))
def test_a_ticket_says_where_it_comes_from(origin: Origin):
    raw = seal_ticket(PLAN, KEYRING, principal=None, expires_at_ms=EXPIRY, origin=origin)

    assert opened(raw).origin == origin


@given(
    st.builds(
        StreamLimits,
        st.none() | st.integers(0),
        st.none() | st.floats(0.1, 1e6),
        st.none() | st.integers(0),
        st.booleans(),
    )
)
def test_a_ticket_says_what_workers_hold_it_to(limits: StreamLimits):
    raw = seal_ticket(PLAN, KEYRING, principal=None, expires_at_ms=EXPIRY, limits=limits)

    assert opened(raw).limits == limits


def test_a_limit_that_is_no_number_is_refused_and_never_left_out():
    limits = StreamLimits(rows="many")  # type: ignore[arg-type]
    raw = seal_ticket(PLAN, KEYRING, principal=None, expires_at_ms=EXPIRY, limits=limits)

    with pytest.raises(BadTicket, match="another version"):
        opened(raw)


def test_a_ticket_shows_nothing_but_its_key_id():
    raw = sealed()

    assert raw[:HEADER_BYTES] == b"flb\x01\x02k1"
    assert raw[HEADER_BYTES : HEADER_BYTES + PLACE_BYTES] == bytes(PLACE_BYTES)
    for secret in (b"hunter2", b"lake", b"ann", b"parquet"):
        assert secret not in raw
    assert sealed() != raw
    assert "hunter2" not in repr(opened(raw))


def test_every_truncation_and_extension_is_refused():
    raw = sealed()

    for size in range(len(raw)):
        with pytest.raises(BadTicket):
            opened(raw[:size])
    with pytest.raises(BadTicket):
        opened(raw + b"\0")


def test_every_flipped_bit_is_refused_but_for_another_place_within_bounds():
    raw = sealed()
    place = range(HEADER_BYTES * 8, (HEADER_BYTES + PLACE_BYTES) * 8)
    whole = opened(raw)

    for bit in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            ticket = opened(bytes(flipped))
        except BadTicket:
            continue
        assert bit in place
        assert ticket.plan == whole.plan
        assert ticket.resume != START
        assert ticket.resume.task < 2 or ticket.resume == (2, 0)


def test_a_ticket_of_another_key_is_refused():
    with pytest.raises(BadTicket, match="damaged, or sealed with another key"):
        opened(sealed(keyring=Keyring((Key("k1", bytes(32)),))))
    with pytest.raises(BadTicket, match="key 'k2', which this process does not have"):
        opened(sealed(keyring=Keyring((Key("k2", bytes(range(32))),))))


def test_an_older_key_still_opens():
    newer = Keyring((Key("k2", bytes(32)), *KEYRING.keys))

    assert open_ticket(sealed(), newer, now_ms=NOW).plan == opened(sealed()).plan


def test_a_ticket_expires():
    assert open_ticket(sealed(), KEYRING, now_ms=EXPIRY - 1).principal == "ann"
    with pytest.raises(ExpiredTicket, match="expired 7 s ago"):
        open_ticket(sealed(), KEYRING, now_ms=EXPIRY + 7999)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_named(version: int):
    raw = bytearray(sealed())
    raw[3] = version

    with pytest.raises(BadTicket, match=f"version {version}; this version of floeberg reads 1"):
        opened(bytes(raw))


@given(st.binary(max_size=80))
def test_other_bytes_are_not_tickets(raw: bytes):
    for candidate in (raw, b"flb\x01" + raw, b"flb\x01\x02k1" + raw):
        with pytest.raises(BadTicket):
            opened(candidate)


def test_a_ticket_beyond_any_size_is_not_looked_into(monkeypatch: pytest.MonkeyPatch):
    raw = sealed()
    monkeypatch.setattr("floeberg.protocol.tickets.MAX_TICKET_BYTES", 10)

    with pytest.raises(BadTicket, match="at most 10 are read"):
        opened(raw)
    with pytest.raises(PlanTooLarge, match="10 are read; narrow the filter"):
        sealed()


# --- sealed, but not by this version -------------------------------------------------------------


def sealed_content(content: bytes, header: bytes = b"flb\x01\x02k1") -> bytes:
    body = KEYRING.active.seal(TICKET, content, header, bytes(NONCE_BYTES))
    return header + bytes(PLACE_BYTES) + body


def with_head(head: object, plan: bytes) -> bytes:
    packed = dump_json(head)
    return sealed_content(struct.pack(">I", len(packed)) + packed + plan)


GOOD_HEAD = {"principal": None, "expires_at_ms": EXPIRY}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (sealed_content(b""), "its head"),
        (sealed_content(b"\xff\xff\xff\xff"), "its head"),
        (with_head([], b""), "its head"),
        (with_head({"principal": 7, "expires_at_ms": EXPIRY}, b""), "its head"),
        (with_head({"principal": None, "expires_at_ms": "soon"}, b""), "its head"),
        (with_head(GOOD_HEAD, b""), "plan of kind None"),
        (with_head(GOOD_HEAD, b"\x03"), "plan of kind 3; this version reads 1 and 2"),
        (with_head(GOOD_HEAD, b"\x01"), "plan that can't be decoded"),
    ],
)
def test_content_of_another_form_is_refused(raw: bytes, words: str):
    with pytest.raises(BadTicket, match=words):
        opened(raw)


def test_what_was_sealed_for_something_else_is_no_ticket():
    header = b"flb\x01\x02k1"
    body = KEYRING.active.seal(REGISTRATION, b"", header, bytes(NONCE_BYTES))

    with pytest.raises(BadTicket, match="damaged, or sealed with another key"):
        opened(header + bytes(PLACE_BYTES) + body)


# --- the resume place ----------------------------------------------------------------------------


@pytest.mark.parametrize("place", [(0, 0), (0, 2**63 - 1), (1, 17), (2, 0)])
def test_a_ticket_resumes_where_it_is_told(place: tuple[int, int]):
    raw = with_resume(sealed(), ResumePlace(*place))

    assert opened(raw).resume == place
    assert opened(with_resume(raw, START)).resume == START


@pytest.mark.parametrize("place", [(2, 1), (3, 0), (2**32 - 1, 0), (0, 2**63), (0, 2**64 - 1)])
def test_a_place_out_of_bounds_is_refused(place: tuple[int, int]):
    with pytest.raises(BadTicket, match="ticket with 2 tasks to resume at"):
        opened(with_resume(sealed(), ResumePlace(*place)))


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (2**32, 0), (0, 2**64)])
def test_a_place_that_does_not_fit_is_refused(place: tuple[int, int]):
    with pytest.raises(BadTicket, match="not a place to resume at"):
        encode_place(ResumePlace(*place))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_place_comes_back(task: int, row: int, more: bytes):
    assert decode_place(encode_place(ResumePlace(task, row)) + more) == (task, row)


def test_a_place_cut_short_is_refused():
    with pytest.raises(BadTicket, match="12 bytes, not 11"):
        decode_place(bytes(11))


def test_resuming_what_is_no_ticket_is_refused():
    for raw in (b"", b"hello", sealed()[: HEADER_BYTES + 3]):
        with pytest.raises(BadTicket):
            with_resume(raw, START)


@pytest.mark.parametrize("bound", [False, True])
def test_a_ticket_says_whether_it_is_bound_to_its_principal(bound: bool):
    raw = seal_ticket(PLAN, KEYRING, principal="ann", bound=bound, expires_at_ms=EXPIRY)

    assert open_ticket(raw, KEYRING, now_ms=0).is_bound is bound
