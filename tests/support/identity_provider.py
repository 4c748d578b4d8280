"""An identity provider: signs tokens, and publishes its keys as JWKS."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://id.example", "floeberg"


@dataclass
class IdentityProvider:
    """Signs with the last of its keys; `published` are all."""

    keys: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rotate("RS256")

    def rotate(self, algorithm: str = "RS256", key_id: str | None = None) -> str:
        """Begin to sign with a new key; return its id."""
        key_id = key_id or f"key-{len(self.keys)}"
        private: Any
        if algorithm.startswith("ES"):
            private = ec.generate_private_key(ec.SECP256R1())
        elif algorithm == "EdDSA":
            private = ed25519.Ed25519PrivateKey.generate()
        else:
            private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.keys[key_id] = (algorithm, private)
        return key_id

    def published(self, *, with_algorithms: bool = True) -> str:
        """Return the JWKS document."""
        listed = []
        for key_id, (algorithm, private) in self.keys.items():
            of_kind: Any = RSAAlgorithm
            if algorithm.startswith("ES"):
                of_kind = ECAlgorithm
            elif algorithm == "EdDSA":
                of_kind = OKPAlgorithm
            public = of_kind.to_jwk(private.public_key(), as_dict=True)
            told = {"alg": algorithm} if with_algorithms else {}
            listed.append({**public, "kid": key_id, "use": "sig", **told})
        return json.dumps({"keys": listed})

    def token(
        self, key_id: str | None = None, algorithm: str | None = None, **claims: object
    ) -> str:
        """Return a token for `ann`, good for a minute, unless `claims` say otherwise; a claim of
        None is left out."""
        key_id = key_id or list(self.keys)[-1]
        usual, private = self.keys[key_id]
        payload = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 60}
        payload |= claims
        return jwt.encode(
            {k: v for k, v in payload.items() if v is not None},
            private,
            algorithm=algorithm or usual,
            headers={"kid": key_id},
        )
