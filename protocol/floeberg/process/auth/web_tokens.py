"""Verify JSON Web Tokens (RFC 7519) that an identity provider has signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import jwt

from floeberg.process.auth.key_sets import KeySet
from floeberg.process.auth.principals import Principal, is_name
from floeberg.protocol.errors import BadConfig, Unauthenticated

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The algorithms that can be allowed: all are asymmetric."""

_REASONS: Final[tuple[tuple[type[jwt.PyJWTError], str], ...]] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not valid yet"),
    (jwt.InvalidIssuedAtError, "it was issued in the future"),
    (jwt.InvalidAudienceError, "it was made for another audience"),
    (jwt.InvalidIssuerError, "it is of another issuer"),
    (jwt.MissingRequiredClaimError, "it lacks a claim that is needed: exp, iss, aud"),
    (jwt.InvalidAlgorithmError, "it is signed by an algorithm that is not allowed"),
    (jwt.InvalidSignatureError, "its signature is wrong"),
)


@dataclass(frozen=True, slots=True)
class JwtRules:
    """What a token must be like. `claim` is the one that names the principal."""

    issuer: str
    audience: str
    algorithms: Sequence[str] = ("RS256", "ES256")
    claim: str = "sub"
    leeway_seconds: float = 30.0

    def __post_init__(self) -> None:
        for algorithm in self.algorithms:
            if algorithm not in ALGORITHMS:
                raise BadConfig(
                    f"'auth_algorithms': {algorithm!r} is none of {', '.join(ALGORITHMS)}"
                )
        if not self.algorithms:
            raise BadConfig("'auth_algorithms' allows none")


class JwtVerifier:
    """Verifies tokens by the keys of one provider. Safe to use from several threads."""

    def __init__(self, keys: KeySet, rules: JwtRules) -> None:
        self._keys = keys
        self._rules = rules

    def handles(self, token: str) -> bool:
        return token.count(".") == 2 and token.startswith("eyJ")

    def verify(self, token: str) -> Principal:
        rules = self._rules
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header.get("kid"), header.get("alg"))
            claims = jwt.decode(
                token,
                key,
                algorithms=list(rules.algorithms),
                issuer=rules.issuer,
                audience=rules.audience,
                leeway=rules.leeway_seconds,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as exc:
            told = (why for kind, why in _REASONS if isinstance(exc, kind))
            raise _refusal(next(told, "it is malformed")) from None
        except RecursionError:
            raise _refusal("it is malformed") from None
        name = claims.get(rules.claim)
        if not is_name(name):
            raise _refusal(f"its claim {rules.claim!r} names nobody")
        return Principal(name, "jwt")

    def _key(self, key_id: object, algorithm: object) -> jwt.PyJWK:
        if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
            raise jwt.InvalidAlgorithmError
        key = self._keys.find(key_id if isinstance(key_id, str) else None, algorithm)
        if key is None:
            raise _refusal("it is signed with a key that the identity provider doesn't list")
        return key


def _refusal(why: str) -> Unauthenticated:
    return Unauthenticated(f"the token is refused: {why}; get a new one")
