from __future__ import annotations

import pytest

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import BadCommand, Unauthenticated
from floeberg.protocol.registration import (
    CLOCK_TOLERANCE_MS,
    LEAVE_WORKER,
    AskCredentials,
    AskWorker,
    LeaveWorker,
    LentByPrefix,
    LentCredentials,
    RegisterWorker,
    RenewWorker,
    ReplayGuard,
    Sealed,
    WorkerAnswer,
    WorkerLoad,
    open_registration,
    seal_registration,
)
from floeberg.protocol.sealing import REGISTRATION, TICKET, Keyring, seal_message

NOW = 1_700_000_000_000
KEYRING = Keyring.generate()
REGISTER = RegisterWorker(
    worker_id="w1",
    location="grpc://w1.example:8816",
    max_streams=32,
    max_bytes=1 << 30,
    version="0.1.0",
    zone="eu-1a",
    http_address="http://w1.example:8817",
)
RENEW = RenewWorker(
    worker_id="w1", state="draining", load=WorkerLoad(streams=2, bytes_in_flight=4096)
)


ASK = AskWorker(coordinator_id="c1", question="q" * 24, lease_seconds=10.0)
ASK_CREDENTIALS = AskCredentials(worker_id="w1", question="q" * 24, table="dGFibGU=", refused="f")
LENT = LentCredentials(
    question="q" * 24,
    properties={"s3.secret-access-key": "hunter2"},
    credentials=(LentByPrefix(prefixes=("s3://b/",), properties={"s3.session-token": "hunter2"}),),
)
ANSWER = WorkerAnswer(question="q" * 24, introduction=REGISTER, state="draining", load=RENEW.load)


@pytest.mark.parametrize(
    "message",
    [REGISTER, RENEW, LeaveWorker(worker_id="w1"), ASK, ANSWER, ASK_CREDENTIALS, LENT],
    ids=lambda message: type(message).__name__,
)
def test_a_message_comes_through_once(message: Sealed):
    raw = seal_registration(message, KEYRING, now_ms=NOW)
    guard = ReplayGuard()

    assert open_registration(type(message), raw, KEYRING, guard, now_ms=NOW + 5) == message
    with pytest.raises(Unauthenticated, match="sent before"):
        open_registration(type(message), raw, KEYRING, guard, now_ms=NOW + 6)


def test_credentials_are_in_no_repr_and_in_clear_in_no_message():
    assert "hunter2" not in repr(LENT)
    assert b"hunter2" not in seal_registration(LENT, KEYRING, now_ms=NOW)


@pytest.mark.parametrize(
    ("off_ms", "words"),
    [(CLOCK_TOLERANCE_MS + 1, "behind"), (-CLOCK_TOLERANCE_MS - 1, "ahead of")],
)
def test_a_message_of_another_time_is_refused(off_ms: int, words: str):
    raw = seal_registration(REGISTER, KEYRING, now_ms=NOW)

    with pytest.raises(Unauthenticated, match=f"60 s {words} this process's clock"):
        open_registration(RegisterWorker, raw, KEYRING, ReplayGuard(), now_ms=NOW + off_ms)


def test_what_another_fleet_sealed_is_refused():
    raw = seal_registration(REGISTER, Keyring.generate(), now_ms=NOW)

    for sealed in (raw, b"", b"{}", seal_message(KEYRING, TICKET, b"{}")):
        with pytest.raises(Unauthenticated, match="not sealed with a key"):
            open_registration(RegisterWorker, sealed, KEYRING, ReplayGuard(), now_ms=NOW)


def test_a_message_is_not_taken_for_another_action():
    raw = seal_registration(LeaveWorker(worker_id="w1"), KEYRING, now_ms=NOW)

    with pytest.raises(Unauthenticated, match=r"floeberg\.leave-worker was sent as"):
        open_registration(RenewWorker, raw, KEYRING, ReplayGuard(), now_ms=NOW)


def test_a_refused_message_names_its_wrong_key():
    envelope = {"action": LEAVE_WORKER, "issued_at_ms": NOW, "nonce": "0" * 24}
    for body, words in (
        ({}, "key 'worker_id' is missing"),
        ({"worker_id": 7}, "key 'worker_id': is not text"),
    ):
        raw = seal_message(KEYRING, REGISTRATION, dump_json({**envelope, "body": body}))

        with pytest.raises(BadCommand, match=words):
            open_registration(LeaveWorker, raw, KEYRING, ReplayGuard(), now_ms=NOW)


def test_a_newer_worker_may_say_more():
    body = {"worker_id": "w1", "load": {"streams": 1, "gpu": 0}, "mood": "good"}
    envelope = {
        "action": "floeberg.renew-worker",
        "issued_at_ms": NOW,
        "nonce": "0" * 24,
        "body": body,
    }
    raw = seal_message(KEYRING, REGISTRATION, dump_json(envelope))

    opened = open_registration(RenewWorker, raw, KEYRING, ReplayGuard(), now_ms=NOW)

    assert opened == RenewWorker(worker_id="w1", load=WorkerLoad(streams=1))


def test_the_guard_forgets_what_no_longer_counts():
    guard = ReplayGuard()

    assert guard.is_new("a", NOW, NOW)
    assert not guard.is_new("a", NOW, NOW + CLOCK_TOLERANCE_MS)
    assert guard.is_new("b", NOW + CLOCK_TOLERANCE_MS + 1, NOW + CLOCK_TOLERANCE_MS + 1)
    assert guard.is_new("a", NOW, NOW + CLOCK_TOLERANCE_MS + 1)
