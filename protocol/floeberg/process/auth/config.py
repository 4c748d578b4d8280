"""The gate that a service's configuration asks for."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from prometheus_client import CollectorRegistry, Counter

from floeberg.process.auth.gate import Gate, Outcome, TokenVerifier
from floeberg.process.auth.key_sets import FetchedKeySet, FileKeySet, KeySet
from floeberg.process.auth.passwords import PasswordList
from floeberg.process.auth.tokens import TokenList
from floeberg.process.auth.watched import WatchedFile
from floeberg.process.auth.web_tokens import JwtRules, JwtVerifier
from floeberg.process.service import ServiceConfig
from floeberg.protocol.errors import BadConfig


def configured_gate(config: ServiceConfig, registry: CollectorRegistry) -> Gate:
    """Return the gate of a service, which counts callers in `registry`.

    Raises `BadConfig` for a file that can't be used, and for values that don't go together.
    """
    callers = Counter(
        "floeberg_callers",
        "Calls and logins at a service that asks who calls, by outcome.",
        ["outcome"],
        registry=registry,
    )
    for outcome in get_args(Outcome):
        callers.labels(outcome)
    tokens = passwords = None
    if config.auth_tokens is not None:
        tokens = WatchedFile("auth_tokens", config.auth_tokens, TokenList.parse, secret=True)
    if config.auth_passwords is not None:
        passwords = WatchedFile(
            "auth_passwords", config.auth_passwords, PasswordList.parse, secret=True
        )
    return Gate(
        config.keyring(),
        tokens=tokens,
        verifiers=_verifiers(config),
        passwords=passwords,
        certificates=config.auth_client_roots is not None,
        session_seconds=config.auth_session_seconds,
        count=lambda outcome: callers.labels(outcome).inc(),
    )


def _verifiers(config: ServiceConfig) -> list[TokenVerifier]:
    if config.auth_jwks is None:
        return []
    if config.auth_issuer is None or config.auth_audience is None:
        raise BadConfig(
            "'auth_jwks' goes with 'auth_issuer' and 'auth_audience': without them, a token that"
            " the provider made for something else would do"
        )
    keys: KeySet
    if "://" in config.auth_jwks:
        keys = FetchedKeySet(config.auth_jwks)
    else:
        keys = FileKeySet("auth_jwks", Path(config.auth_jwks).expanduser())
    rules = JwtRules(
        config.auth_issuer,
        config.auth_audience,
        config.auth_algorithms,
        config.auth_claim,
        config.auth_leeway_seconds,
    )
    return [JwtVerifier(keys, rules)]
