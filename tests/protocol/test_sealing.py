from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import BadConfig
from floeberg.protocol.sealing import (
    NONCE_BYTES,
    OVERHEAD_BYTES,
    REGISTRATION,
    TICKET,
    Key,
    Keyring,
    open_message,
    seal_message,
)

KEYRING = Keyring((Key("a", bytes(range(32))), Key("b", bytes(32))))
SECRET = base64.urlsafe_b64encode(bytes(range(32))).decode()


@given(st.binary(max_size=200), st.binary(max_size=20))
def test_a_sealed_message_opens_with_what_it_was_sealed_with(message: bytes, associated: bytes):
    sealed = KEYRING.active.seal(TICKET, message, associated, os.urandom(NONCE_BYTES))

    assert len(sealed) == len(message) + OVERHEAD_BYTES
    assert message not in sealed or len(message) < 8
    assert KEYRING.active.open(TICKET, sealed, associated) == message
    assert KEYRING.active.open(TICKET, sealed, associated + b"x") is None
    assert KEYRING.active.open(REGISTRATION, sealed, associated) is None
    assert KEYRING.keys[1].open(TICKET, sealed, associated) is None


def test_every_flipped_bit_and_every_truncation_of_a_message_is_refused():
    raw = seal_message(KEYRING, REGISTRATION, b"worker w1 is at grpc://w1:8815")

    assert open_message(KEYRING, REGISTRATION, raw) == b"worker w1 is at grpc://w1:8815"
    for size in range(len(raw)):
        assert open_message(KEYRING, REGISTRATION, raw[:size]) is None
    for bit in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        assert open_message(KEYRING, REGISTRATION, bytes(flipped)) is None
    assert open_message(KEYRING, REGISTRATION, raw + b"\0") is None


def test_the_same_message_is_never_sealed_to_the_same_bytes():
    assert seal_message(KEYRING, TICKET, b"m") != seal_message(KEYRING, TICKET, b"m")


def test_a_nonce_of_another_size_is_refused():
    with pytest.raises(ValueError, match="24 bytes"):
        KEYRING.active.seal(TICKET, b"m", b"", bytes(12))


def test_keys_rotate_without_a_message_refused():
    old, new = Keyring.generate().active, Keyring.generate().active
    before, during, after = Keyring((old,)), Keyring((old, new)), Keyring((new, old))

    assert open_message(during, TICKET, seal_message(before, TICKET, b"m")) == b"m"
    assert open_message(after, TICKET, seal_message(before, TICKET, b"m")) == b"m"
    assert open_message(during, TICKET, seal_message(after, TICKET, b"m")) == b"m"
    assert open_message(before, TICKET, seal_message(after, TICKET, b"m")) is None


def test_a_message_does_not_open_with_another_key_of_the_same_id():
    raw = seal_message(Keyring((Key("a", bytes(32)),)), TICKET, b"m")

    assert open_message(KEYRING, TICKET, raw) is None


# --- the text form -------------------------------------------------------------------------------


def test_a_keyring_comes_back_from_its_text():
    keyring = Keyring(Keyring.generate().keys + Keyring.generate().keys)

    assert Keyring.from_text(keyring.to_text()) == keyring
    assert keyring.active == keyring.keys[0]


def test_the_environment_may_separate_keys_by_commas():
    zeros = base64.b64encode(bytes(32)).decode().rstrip("=")

    assert Keyring.from_text(f"# a, b\n a:{SECRET} , b:{zeros}\n\n") == KEYRING


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        SECRET,
        f"{SECRET}:a",
        f"a:{SECRET[:-2]}",
        f"a:{SECRET}AAAA",
        f"a:{SECRET[:-3]}?=",
        f"a b:{SECRET}",
        f"a:{SECRET}\na:{SECRET}",
        f"{'a' * 17}:{SECRET}",
    ],
)
def test_a_bad_keyring_is_refused_and_its_secrets_are_not_shown(text: str):
    with pytest.raises(BadConfig) as raised:
        Keyring.from_text(text)

    assert SECRET[:6] not in str(raised.value)
    assert raised.value.__cause__ is None


def test_reprs_hide_the_secrets():
    assert SECRET not in repr(KEYRING)
    assert repr(KEYRING) == "Keyring(keys=(Key(key_id='a'), Key(key_id='b')))"


# --- files ---------------------------------------------------------------------------------------


def test_a_written_keyring_is_its_owners_alone_and_never_overwritten(tmp_path: Path):
    path = tmp_path / "keys"

    KEYRING.write(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Keyring.from_file(path) == KEYRING
    with pytest.raises(BadConfig, match="File exists"):
        Keyring.generate().write(path)


@pytest.mark.parametrize(
    ("mode", "accepted"), [(0o400, True), (0o440, True), (0o644, False), (0o660, False)]
)
def test_a_keyring_that_others_may_use_is_refused(tmp_path: Path, mode: int, accepted: bool):
    path = tmp_path / "keys"
    KEYRING.write(path)
    path.chmod(mode)

    if accepted:
        assert Keyring.from_file(path) == KEYRING
    else:
        with pytest.raises(BadConfig, match=f"has mode {mode:04o}"):
            Keyring.from_file(path)


def test_a_file_that_is_no_keyring_is_named(tmp_path: Path):
    with pytest.raises(BadConfig, match="missing cannot be read: No such file"):
        Keyring.from_file(tmp_path / "missing")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    binary.chmod(0o600)
    with pytest.raises(BadConfig, match="binary is not text"):
        Keyring.from_file(binary)
