from __future__ import annotations

import base64
from pathlib import Path

import pytest

from floeberg.process.auth import Gate, Principal
from floeberg.process.auth.key_sets import FileKeySet
from floeberg.process.auth.passwords import PasswordList, hash_password
from floeberg.process.auth.tokens import TokenList
from floeberg.process.auth.watched import WatchedFile
from floeberg.process.auth.web_tokens import JwtRules, JwtVerifier
from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.sealing import Keyring
from tests.support.identity_provider import AUDIENCE, ISSUER, IdentityProvider

KEYS = Keyring.generate()
TOKEN = "a-token-of-24-letters-xx"
ANN = hash_password("correct horse")


class Clock:
    now_ms = 1_000_000
    now = 0.0

    def __call__(self) -> float:
        return self.now


def secret_file(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def users(tmp_path: Path) -> Path:
    return secret_file(tmp_path / "users", PasswordList({"ann": ANN}).to_text())


@pytest.fixture
def gate(tmp_path: Path, users: Path, clock: Clock) -> Gate:
    tokens = secret_file(tmp_path / "tokens", f"bob:{TOKEN}\n")
    return Gate(
        KEYS,
        tokens=WatchedFile("auth_tokens", tokens, TokenList.parse, clock=clock),
        passwords=WatchedFile("auth_passwords", users, PasswordList.parse, clock=clock),
        session_seconds=3600,
        now_ms=lambda: clock.now_ms,
    )


def basic(username: str, password: str) -> list[str]:
    return ["Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()]


def test_a_gate_without_a_way_to_tell_lets_everybody_through():
    gate = Gate(KEYS)

    assert not gate.demands
    assert gate.admit([]) is None
    assert gate.admit(["Bearer for-a-proxy-on-the-way"]) is None
    assert gate.admit(["made-up"]) is None


def test_a_worker_that_was_told_nothing_knows_who_has_logged_in(gate: Gate):
    session = gate.log_in(basic("ann", "correct horse"))
    worker = Gate(KEYS, now_ms=lambda: 1_000_000)

    assert worker.admit([f"Bearer {session}"]) == Principal("ann", "password")
    assert Gate(Keyring.generate()).admit([f"Bearer {session}"]) is None


def test_a_token_of_the_list_admits(gate: Gate):
    assert gate.admit([f"Bearer {TOKEN}"]) == Principal("bob", "token")


@pytest.mark.parametrize(
    ("authorization", "remedy"),
    [
        ([], "send a bearer token"),
        ([], "or log in"),
        (["Bearer hush-hush"], "none that this server knows; send a bearer token"),
        (basic("ann", "hush-hush"), "by a Handshake alone"),
    ],
)
def test_a_refusal_says_what_to_do(gate: Gate, authorization: list[str], remedy: str):
    with pytest.raises(Unauthenticated) as refused:
        gate.admit(authorization)

    assert remedy in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_login_answers_a_token_for_later_calls(gate: Gate, clock: Clock):
    session = gate.log_in(basic("ann", "correct horse"))

    assert gate.admit([f"Bearer {session}"]) == Principal("ann", "password")
    clock.now_ms += 3600 * 1000
    with pytest.raises(Unauthenticated, match="the session has expired"):
        gate.admit([f"Bearer {session}"])


@pytest.mark.parametrize(
    "authorization", [basic("ann", "wrong"), basic("eve", "correct horse"), ["Bearer x"], []]
)
def test_a_login_that_fails_tells_nothing_of_users(gate: Gate, authorization: list[str]):
    with pytest.raises(Unauthenticated, match="username") as refused:
        gate.log_in(authorization)

    assert "eve" not in str(refused.value)


@pytest.mark.parametrize("change", ["another password", "no such user"])
def test_a_session_ends_with_its_password(gate: Gate, users: Path, clock: Clock, change: str):
    session = gate.log_in(basic("ann", "correct horse"))
    left = {"ann": hash_password("another")} if change == "another password" else {}
    users.write_text(PasswordList(left).to_text())
    clock.now = 2.0

    with pytest.raises(Unauthenticated, match="ended with the password"):
        gate.admit([f"Bearer {session}"])


def test_a_coordinator_calls_on_behalf_of_its_caller(gate: Gate, clock: Clock):
    for caller, name in ((Principal("ann", "jwt"), "ann"), (None, "coordinator")):
        token = gate.relay_token(caller)
        assert gate.admit([f"Bearer {token}"]) == Principal(name, "coordinator")
    clock.now_ms += 61_000
    with pytest.raises(Unauthenticated, match="expired"):
        gate.admit([f"Bearer {token}"])


def test_certificates_name_who_sends_no_token(tmp_path: Path, clock: Clock):
    tokens = secret_file(tmp_path / "tokens", f"bob:{TOKEN}\n")
    file = WatchedFile("auth_tokens", tokens, TokenList.parse, clock=clock)
    gate = Gate(KEYS, tokens=file, certificates=True)

    assert gate.admit([], "spiffe://lake/ann") == Principal("spiffe://lake/ann", "certificate")
    assert gate.admit([f"Bearer {TOKEN}"], "ann") == Principal("bob", "token")
    with pytest.raises(Unauthenticated, match="show a client certificate"):
        gate.admit([], "")
    with pytest.raises(Unauthenticated):
        gate.admit(["Bearer made-up"], "ann")
    # without certificates, a name from elsewhere proves nothing
    with pytest.raises(Unauthenticated):
        Gate(KEYS, tokens=file).admit([], "ann")


def test_json_web_tokens_admit_beside_the_list(tmp_path: Path, clock: Clock):
    provider = IdentityProvider()
    (tmp_path / "jwks.json").write_text(provider.published())
    verifier = JwtVerifier(
        FileKeySet("auth_jwks", tmp_path / "jwks.json"), JwtRules(ISSUER, AUDIENCE)
    )
    tokens = secret_file(tmp_path / "tokens", f"bob:{TOKEN}\n")
    gate = Gate(
        KEYS,
        tokens=WatchedFile("auth_tokens", tokens, TokenList.parse, clock=clock),
        verifiers=[verifier],
    )

    assert gate.admit([f"Bearer {provider.token()}"]) == Principal("ann", "jwt")
    assert gate.admit([f"Bearer {TOKEN}"]) == Principal("bob", "token")
    with pytest.raises(Unauthenticated, match="it has expired"):
        gate.admit([f"Bearer {provider.token(exp=1)}"])
    with pytest.raises(Unauthenticated, match="takes no passwords; send a bearer token"):
        gate.log_in(basic("ann", "x"))
