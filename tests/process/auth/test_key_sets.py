from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from floeberg.process.auth.key_sets import FetchedKeySet, fetch_text, parse_key_set
from floeberg.protocol.errors import BadConfig, ServerUnavailable
from tests.support.clock import Clock
from tests.support.identity_provider import IdentityProvider

URL = "https://id.example/keys"


class Published:
    """What a provider answers, and how often it was asked."""

    def __init__(self, provider: IdentityProvider) -> None:
        self.provider = provider
        self.asked = 0
        self.is_away = False

    def __call__(self, url: str) -> str:
        assert url == URL
        self.asked += 1
        if self.is_away:
            raise OSError("no route")
        return self.provider.published()


@pytest.fixture
def published() -> Published:
    return Published(IdentityProvider())


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def keys(published: Published, clock: Clock) -> FetchedKeySet:
    return FetchedKeySet(URL, published, clock)


def test_keys_are_fetched_once_in_five_minutes(
    keys: FetchedKeySet, published: Published, clock: Clock
):
    for clock.seconds in (1000, 1100, 1299):
        assert keys.find("key-0", "RS256") is not None
    asked, clock.seconds = published.asked, 1301

    assert keys.find("key-0", "RS256") is not None
    assert (asked, published.asked) == (1, 2)


def test_a_new_key_is_found_as_soon_as_it_is_used(
    keys: FetchedKeySet, published: Published, clock: Clock
):
    assert keys.find("key-0", "RS256") is not None
    published.provider.rotate()
    clock.seconds += 31

    assert keys.find("key-1", "RS256") is not None


def test_ids_that_are_made_up_are_asked_for_twice_a_minute_at_most(
    keys: FetchedKeySet, published: Published, clock: Clock
):
    for second in range(60):
        clock.seconds = 1000 + second
        assert keys.find(f"made-up-{second}", "RS256") is None

    assert published.asked == 2


def test_known_keys_go_on_for_a_day_while_the_provider_is_away(
    keys: FetchedKeySet, published: Published, clock: Clock, caplog: pytest.LogCaptureFixture
):
    assert keys.find("key-0", "RS256") is not None
    published.is_away = True
    clock.seconds += 23 * 3600
    assert keys.find("key-0", "RS256") is not None
    assert "JWKS not fetched" in caplog.text

    clock.seconds += 2 * 3600
    with pytest.raises(ServerUnavailable):
        keys.find("key-0", "RS256")


def test_a_provider_that_never_answered_is_asked_again(
    keys: FetchedKeySet, published: Published, clock: Clock
):
    published.is_away = True
    with pytest.raises(ServerUnavailable):
        keys.find("key-0", "RS256")
    published.is_away = False
    clock.seconds += 31

    assert keys.find("key-0", "RS256") is not None


@pytest.mark.parametrize(
    "url", ["http://id.example/keys", "ftp://id.example/keys", "https:///keys", "file:///keys"]
)
def test_keys_come_by_https_alone(url: str):
    with pytest.raises(BadConfig, match="https"):
        FetchedKeySet(url)


@contextmanager
def serving(status: int, body: bytes, headers: dict[str, str]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/keys"
        finally:
            server.shutdown()
            thread.join()


def test_keys_are_fetched_over_http(published: Published):
    with serving(200, published.provider.published().encode(), {}) as url:
        assert FetchedKeySet(url).find("key-0", "RS256") is not None


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (500, b"", {}),
        (200, b"x" * ((1 << 20) + 1), {}),
        (200, b"\xff", {}),
        (302, b"", {"location": "http://127.0.0.1:1/elsewhere"}),
    ],
    ids=["error", "too long", "no text", "redirect"],
)
def test_an_answer_that_is_no_document_is_none(status: int, body: bytes, headers: dict[str, str]):
    with serving(status, body, headers) as url, pytest.raises((OSError, ValueError)):
        fetch_text(url)


def test_keys_that_cannot_verify_are_left_out(published: Published):
    document = json.loads(published.provider.published())
    document["keys"] += [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "HS256"},
        {**document["keys"][0], "kid": "for-encryption", "use": "enc"},
        {"kty": "of-the-future", "kid": "new"},
        "no key",
    ]

    assert set(parse_key_set(json.dumps(document))) == {"key-0"}


@pytest.mark.parametrize("text", ["", "[]", '{"keys": {}}', '{"keys": []}', "{}", '{"keys": [1]}'])
def test_a_document_without_keys_is_refused(text: str):
    with pytest.raises(BadConfig):
        parse_key_set(text)
