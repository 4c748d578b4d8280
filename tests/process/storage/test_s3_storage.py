"""What is particular to reading S3 through obstore, and where s3fs takes over."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from floeberg.process.storage import open_storage
from floeberg.process.storage.remote import RemoteStorage
from floeberg.process.storage.s3_storage import S3Storage
from floeberg.protocol.errors import FloebergError, MissingFile, StorageUnavailable
from floeberg.protocol.storage import Storage, StorageConfig
from tests.support.http_counting import CountingProxy
from tests.support.services import Seaweed

BUCKET = "s3-storage"
BODY = bytes(range(256)) * 40


def no_rest() -> Storage:
    raise AssertionError("this is not for s3fs")


def s3_at(endpoint: str, region: str = "us-east-1") -> dict[str, str]:
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.region": region,
        "s3.connect-timeout": "2",
        "s3.request-timeout": "2",
    }


@pytest.fixture(scope="module")
def store(seaweed: Seaweed) -> Seaweed:
    seaweed.make_bucket(BUCKET)
    seaweed.put(BUCKET, {"x": BODY, "a//b": b"odd", "tail/": b"", "tab\there": b"tab"})
    return seaweed


@pytest.mark.parametrize("library", ["obstore", "s3fs"])
def test_a_whole_object_is_one_request(store: Seaweed, library: str) -> None:
    port = urlsplit(store.s3_endpoint).port
    assert port is not None
    with CountingProxy(port) as proxy:
        properties = {**store.s3_properties(), "s3.endpoint": f"http://127.0.0.1:{proxy.port}"}
        storage: Storage = (
            S3Storage(properties, no_rest)
            if library == "obstore"
            else RemoteStorage("s3", properties)
        )

        assert storage.read(f"s3://{BUCKET}/x") == BODY
        assert proxy.requests == 1
        assert storage.read_ranges(f"s3://{BUCKET}/x", [(0, 9), (90, 9)]) == [BODY[:9], BODY[90:99]]
        assert proxy.requests == 2
        assert storage.size(f"s3://{BUCKET}/x") == len(BODY)
        assert proxy.requests == 3


@pytest.mark.parametrize("key", ["a//b", "tab\there"])
def test_keys_that_are_no_paths_are_read_all_the_same(store: Seaweed, key: str) -> None:
    storage = open_storage(StorageConfig(store.s3_properties()))
    location = f"s3://{BUCKET}/{key}"

    assert storage.read(location) == b"odd" if "/" in key else b"tab"
    found, plain = storage.read_many([(location, [(0, 2)]), (f"s3://{BUCKET}/x", [(0, 2)])])
    assert found == [b"odd"[:2] if "/" in key else b"ta"]
    assert plain == [BODY[:2]]


@pytest.mark.parametrize("key", ["x/", "./x", "x/."])
def test_a_key_is_not_taken_for_another(store: Seaweed, key: str) -> None:
    storage = open_storage(StorageConfig(store.s3_properties()))

    with pytest.raises(FloebergError):
        storage.read(f"s3://{BUCKET}/{key}")


def test_an_object_that_is_gone_is_missing_beside_others(store: Seaweed) -> None:
    storage = S3Storage(store.s3_properties(), no_rest)

    missing, found = storage.read_many(
        [(f"s3://{BUCKET}/none", [(0, 1)]), (f"s3://{BUCKET}/x", [(1, 1)])]
    )

    assert isinstance(missing, MissingFile)
    assert found == [b"\x01"]


# --- stores that misbehave -----------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """A store of one object; subclasses say how it answers."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test's output is its own."""

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(BODY)

    def answer(self, body: bytes) -> None:
        raise NotImplementedError

    def send(self, status: int, body: bytes, length: int, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 30 Nov 2026 10:00:00 GMT")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class FarRegion(Handler):
    """Serves only who signs for its region."""

    def answer(self, body: bytes) -> None:
        region = self.headers["Authorization"].split("/")[2]
        self.asked.append(region)
        if region == "eu-north-1":
            self.send(200, body, len(BODY))
            return
        told = b"<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>"
        told = told if body else b""
        self.send(301, told, len(told), x_amz_bucket_region="eu-north-1")


class BreaksOff(Handler):
    """Sends half of the object the first time."""

    def answer(self, body: bytes) -> None:
        self.asked.append(self.headers["Range"] or "whole")
        if len(self.asked) == 1:
            self.send(200, body[: len(body) // 2], len(body))
            self.close_connection = True
            return
        first = 0
        if wanted := self.headers["Range"]:
            first = int(wanted.removeprefix("bytes=").partition("-")[0])
        ranged = {"Content_Range": f"bytes {first}-{len(BODY) - 1}/{len(BODY)}"} if first else {}
        self.send(206 if first else 200, body[first:], len(body) - first, **ranged)


class AlwaysBreaksOff(Handler):
    def answer(self, body: bytes) -> None:
        self.asked.append("")
        self.send(200, body[:100], len(body))
        self.close_connection = True


class IgnoresRanges(Handler):
    def answer(self, body: bytes) -> None:
        self.asked.append("")
        self.send(200, body, len(body))


class SendsLess(Handler):
    """Sends half of a range the first time, and says that this is all."""

    def answer(self, body: bytes) -> None:
        if not body:
            self.send(200, b"", len(BODY))
            return
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        self.asked.append(self.headers["Range"])
        part = body[first : last + 1]
        part = part[: len(part) // 2] if len(self.asked) == 1 else part
        last = min(last, len(BODY) - 1)
        ranged = f"bytes {first}-{last}/{len(BODY)}"
        self.send(206, part, len(part), Content_Range=ranged)


@contextmanager
def serving(kind: type[Handler]) -> Iterator[tuple[str, list[str]]]:
    """Give the endpoint of such a store, and what it was asked for."""
    asked: list[str] = []
    handler = type("Store", (kind,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_a_bucket_in_another_region_is_found_and_remembered() -> None:
    with serving(FarRegion) as (endpoint, asked):
        storage = open_storage(StorageConfig(s3_at(endpoint)))

        assert storage.read("s3://bucket/x") == BODY
        assert asked[0] == "us-east-1"
        assert asked[-1] == "eu-north-1"
        asked.clear()
        assert storage.read("s3://bucket/x") == BODY
        assert asked == ["eu-north-1"]


def test_ranges_of_a_bucket_in_another_region_come_too() -> None:
    with serving(FarRegion) as (endpoint, _):
        storage = open_storage(StorageConfig(s3_at(endpoint)))

        [found] = storage.read_many([("s3://bucket/x", [(0, len(BODY))])])

    assert found == [BODY]


def test_an_object_that_breaks_off_once_is_whole() -> None:
    with serving(BreaksOff) as (endpoint, asked):
        storage = S3Storage(s3_at(endpoint), no_rest)

        assert storage.read("s3://bucket/x") == BODY
        assert len(asked) == 2


def test_an_object_that_always_breaks_off_is_unavailable_and_never_short() -> None:
    with serving(AlwaysBreaksOff) as (endpoint, _):
        storage = S3Storage(s3_at(endpoint), no_rest, deadline_seconds=1)

        with pytest.raises(StorageUnavailable, match="s3://bucket/x"):
            storage.read("s3://bucket/x")


def test_a_whole_object_for_a_range_is_refused() -> None:
    with serving(IgnoresRanges) as (endpoint, _):
        storage = S3Storage(s3_at(endpoint), no_rest, deadline_seconds=1)

        with pytest.raises(StorageUnavailable, match="s3://bucket/x"):
            storage.read_ranges("s3://bucket/x", [(0, 10)])


@pytest.mark.parametrize(("start", "length"), [(10, 100), (len(BODY) - 50, 100)])
def test_a_range_that_comes_short_is_asked_for_again(start: int, length: int) -> None:
    with serving(SendsLess) as (endpoint, asked):
        storage = S3Storage(s3_at(endpoint), no_rest)

        found = storage.read_ranges("s3://bucket/x", [(start, length)])

    assert found == [BODY[start : start + length]]
    assert len(asked) == 2


def test_a_store_that_stalls_is_unavailable_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        storage = S3Storage(s3_at(endpoint), no_rest, deadline_seconds=0.2)

        for call in (
            lambda: storage.read("s3://bucket/x"),
            lambda: storage.read_ranges("s3://bucket/x", [(0, 1)]),
            lambda: storage.size("s3://bucket/x"),
            lambda: storage.open("s3://bucket/x"),
        ):
            with pytest.raises(StorageUnavailable, match="s3://bucket/x"):
                call()
