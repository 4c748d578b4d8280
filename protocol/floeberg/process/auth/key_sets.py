"""The keys that an identity provider signs with (a JWKS), from a file or over https, kept fresh."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import jwt

from floeberg.process.auth.watched import WatchedFile
from floeberg.process.service import is_loopback
from floeberg.protocol.errors import BadConfig, ServerUnavailable

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 300.0
_AGAIN_SECONDS = 30.0
_LONGEST_SECONDS = 24 * 3600.0
_FETCH_SECONDS = 5.0
_MAX_BYTES = 1 << 20

Keys = Mapping[str, Mapping[str, jwt.PyJWK]]
"""Keys by their ids, then by the algorithm that they verify. A missing id is the empty text."""

_RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


class KeySet(Protocol):
    """Finds verification keys."""

    def find(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key with that id, or without one the only key there is, if it is for
        `algorithm`. Raises `ServerUnavailable` where the keys can't be had."""
        ...


def parse_key_set(text: str) -> Keys:
    """Return the signature keys of a JWKS document (RFC 7517). Raises `BadConfig` for no such
    document, and for one without a key that can be used.

    Symmetric keys are left out: whoever can verify with one can sign with it.
    """
    try:
        listed = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError):
        listed = None
    if not isinstance(listed, list):
        raise BadConfig('this is no JWKS document: {"keys": [...]}')
    keys: dict[str, Mapping[str, jwt.PyJWK]] = {}
    for raw in listed:
        if not isinstance(raw, dict) or raw.get("use", "sig") != "sig" or raw.get("kty") == "oct":
            continue
        try:
            keys[str(raw.get("kid", ""))] = _by_algorithm(raw)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue  # a kind that is not known; providers publish those of other clients too
    if not keys:
        raise BadConfig("the JWKS document has no key that can verify a signature")
    return keys


def _by_algorithm(raw: dict[str, object]) -> Mapping[str, jwt.PyJWK]:
    # an RSA key that names no algorithm is for any of them
    is_open = raw.get("kty") == "RSA" and not raw.get("alg")
    keys = [jwt.PyJWK(raw, name) for name in (_RSA_ALGORITHMS if is_open else (None,))]
    return {key.algorithm_name: key for key in keys}


def _find(keys: Keys, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
    if key_id is None and len(keys) == 1:
        (found,) = keys.values()
        return found.get(algorithm)
    return keys.get(key_id or "", {}).get(algorithm)


class FileKeySet:
    """Keys from a file, which is read again when it changes."""

    def __init__(self, name: str, path: Path) -> None:
        self._file = WatchedFile(name, path, parse_key_set)

    def find(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        return _find(self._file.get(), key_id, algorithm)


class FetchedKeySet:
    """Keys from an https URL. Safe to use from several threads.

    They are fetched again after five minutes, and for an id that is not known, as when the provider
    has begun to sign with another key: then at most twice a minute, so that tokens with made-up ids
    don't become requests to the provider. While it does not answer, the keys that are known go on
    for a day.
    """

    def __init__(
        self,
        url: str,
        fetch: Callable[[str], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises `BadConfig` for a URL that is not https (http on this machine will do). Nothing is
        fetched before there is need."""
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and is_loopback(parts.hostname or "")
        if not (parts.hostname and (parts.scheme == "https" or is_local)):
            raise BadConfig(
                "'auth_jwks' is a file, or an https URL: keys that anyone on the way can replace"
                " prove nothing"
            )
        self._url = url
        self._fetch = fetch or fetch_text
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Keys = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None

    def find(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        now = self._clock()
        key = _find(self._keys, key_id, algorithm)
        if key is None or self._age(now) > _FRESH_SECONDS:
            self._refresh(now, wait=key is None)
            key = _find(self._keys, key_id, algorithm)
        if self._age(now) > _LONGEST_SECONDS:
            raise ServerUnavailable(
                "the keys that verify tokens can't be fetched from the identity provider now; try"
                " again"
            )
        return key

    def _age(self, now: float) -> float:
        return float("inf") if self._fetched_at is None else now - self._fetched_at

    def _refresh(self, now: float, *, wait: bool) -> None:
        """Fetch the keys, unless that was tried just now. Whoever need not `wait` for another who
        fetches them goes on with the keys that are known."""
        if not self._lock.acquire(blocking=wait):
            return
        try:
            if self._tried_at is None or now - self._tried_at >= _AGAIN_SECONDS:
                self._tried_at = now
                self._keys = parse_key_set(self._fetch(self._url))
                self._fetched_at = now
        except (OSError, ValueError, BadConfig) as exc:
            host = urlsplit(self._url).hostname  # the rest may hold a secret
            logger.warning("JWKS not fetched", extra={"host": host, "error": str(exc)})
        finally:
            self._lock.release()


def fetch_text(url: str) -> str:
    """Return the text at `url`. Raises `OSError` and `ValueError`."""
    request = urllib.request.Request(url, headers={"accept": "application/json"})
    with _OPENER.open(request, timeout=_FETCH_SECONDS) as response:
        raw: bytes = response.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise ValueError(f"the answer has more than {_MAX_BYTES} bytes")
    return raw.decode()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead from https to anywhere."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)
