from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.auth.key_sets import FileKeySet
from floeberg.process.auth.principals import Principal
from floeberg.process.auth.web_tokens import JwtRules, JwtVerifier
from floeberg.protocol.errors import BadConfig, Unauthenticated
from tests.support.identity_provider import AUDIENCE, ISSUER, IdentityProvider

PROVIDER = IdentityProvider()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "jwks.json"
    path.write_text(PROVIDER.published())
    return path


@pytest.fixture(scope="module")
def verifier(path: Path) -> JwtVerifier:
    return JwtVerifier(FileKeySet("auth_jwks", path), JwtRules(ISSUER, AUDIENCE))


def refusal(verifier: JwtVerifier, token: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        verifier.verify(token)
    return str(refused.value)


def test_a_token_names_its_principal(verifier: JwtVerifier):
    token = PROVIDER.token(aud=["other", AUDIENCE])

    assert verifier.handles(token)
    assert verifier.verify(token) == Principal("ann", "jwt")


def test_another_claim_may_name_it(path: Path):
    rules = JwtRules(ISSUER, AUDIENCE, claim="email")
    verifier = JwtVerifier(FileKeySet("auth_jwks", path), rules)

    assert verifier.verify(PROVIDER.token(email="ann@example")).name == "ann@example"
    assert "'email' names nobody" in refusal(verifier, PROVIDER.token())


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": 1}, "expired"),
        ({"exp": None}, "lacks a claim"),
        ({"exp": "never"}, "malformed"),
        ({"nbf": 2**40}, "not valid yet"),
        ({"iss": "https://other.example"}, "another issuer"),
        ({"iss": None}, "lacks a claim"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "lacks a claim"),
        ({"sub": None}, "names nobody"),
        ({"sub": ""}, "names nobody"),
        ({"sub": "ann\nbob"}, "names nobody"),
    ],
)
def test_a_claim_that_is_wrong_is_named(verifier: JwtVerifier, claims: dict[str, object], why: str):
    assert why in refusal(verifier, PROVIDER.token(**claims))


def test_clocks_may_be_off_by_the_leeway(verifier: JwtVerifier):
    now = int(time.time())

    assert verifier.verify(PROVIDER.token(exp=now - 10, nbf=now + 10)).name == "ann"
    assert "expired" in refusal(verifier, PROVIDER.token(exp=now - 40))


def test_only_allowed_algorithms_count(verifier: JwtVerifier):
    public = PROVIDER.keys["key-0"][1].public_key()
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    # the public key as a shared secret, which everybody knows
    head = {"kid": "key-0"}
    claims = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": 2**40}
    unsigned = jwt.encode(claims, "", algorithm="none", headers=head)
    confused = _hs256(claims, pem)

    for token in (PROVIDER.token(algorithm="RS512"), unsigned, confused):
        assert "an algorithm that is not allowed" in refusal(verifier, token)
    for algorithm in ("HS256", "none", "rs256"):
        with pytest.raises(BadConfig, match="auth_algorithms"):
            JwtRules(ISSUER, AUDIENCE, (algorithm,))


def _hs256(claims: dict[str, object], secret: bytes) -> str:
    import base64
    import hashlib
    import hmac

    def part(raw: bytes) -> bytes:
        return base64.urlsafe_b64encode(raw).rstrip(b"=")

    head = part(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "key-0"}).encode())
    content = head + b"." + part(json.dumps(claims).encode())
    return (content + b"." + part(hmac.digest(secret, content, hashlib.sha256))).decode()


def test_a_signature_by_another_key_is_refused(verifier: JwtVerifier):
    other = IdentityProvider()
    unlisted = other.rotate()

    assert "its signature is wrong" in refusal(verifier, other.token("key-0"))
    assert "doesn't list" in refusal(verifier, other.token(unlisted))


@pytest.mark.parametrize("algorithm", ["RS384", "PS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("with_algorithms", [True, False])
def test_keys_of_each_kind_verify(algorithm: str, with_algorithms: bool, tmp_path: Path):
    provider = IdentityProvider()
    provider.rotate(algorithm)
    path = tmp_path / "jwks.json"
    path.write_text(provider.published(with_algorithms=with_algorithms))
    verifier = JwtVerifier(FileKeySet("auth_jwks", path), JwtRules(ISSUER, AUDIENCE, (algorithm,)))

    assert verifier.verify(provider.token()).name == "ann"


TOKEN = PROVIDER.token(exp=2**40)


@given(
    place=st.integers(0, len(TOKEN) - 1),
    letter=st.characters(codec="ascii"),
    keep=st.booleans(),
)
def test_a_changed_token_is_refused_or_the_same(
    verifier: JwtVerifier, place: int, letter: str, keep: bool
):
    changed = TOKEN[:place] + letter + TOKEN[place + keep :]
    # the last letter of base64 has bits that mean nothing
    with suppress(Unauthenticated):
        assert verifier.verify(changed).name == "ann"


def test_a_header_that_nests_deeply_is_malformed(verifier: JwtVerifier):
    import base64

    head = base64.urlsafe_b64encode(b"[" * 6000).decode().rstrip("=")

    assert "malformed" in refusal(verifier, f"{head}.e30.e30")
