"""The proxy does what it is told, and passes everything else on as it is."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.chaos.faults import CALM, Fault, FaultProxy, Odds, fault_proxy

BODY = bytes(range(256)) * 400


class Store(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test's output is its own."""

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path == "/chunks":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (BODY[:1000], BODY[1000:]):
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()

    def do_PUT(self) -> None:
        taken = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(taken)))
        self.end_headers()
        self.wfile.write(taken)


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultProxy]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as store:
        threading.Thread(target=store.serve_forever, daemon=True).start()
        with fault_proxy(store.server_address[1], seed=3) as proxy:
            yield proxy
        store.shutdown()


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=0.5)
    yield connection
    connection.close()
    proxy.set(CALM)


def fetch(client: http.client.HTTPConnection) -> bytes:
    client.request("GET", "/x")
    return client.getresponse().read()


def only(fault: Fault) -> Odds:
    return Odds({fault: 1.0}, delay_seconds=0.01)


def test_requests_pass_one_after_another_on_one_connection(
    client: http.client.HTTPConnection,
) -> None:
    for path in ("/x", "/chunks", "/x"):
        client.request("GET", path)
        assert client.getresponse().read() == BODY
    client.request("HEAD", "/x")
    assert client.getresponse().read() == b""
    client.request("PUT", "/x", body=b"abc")
    assert client.getresponse().read() == b"abc"


def test_each_request_that_meets_a_fault_is_counted(
    proxy: FaultProxy, client: http.client.HTTPConnection
) -> None:
    before = proxy.set(only(Fault.DELAY))

    for _ in range(3):
        assert fetch(client) == BODY

    after = proxy.set(CALM)
    assert after["delay"] == before.get("delay", 0) + 3


@pytest.mark.parametrize(("fault", "status"), [(Fault.INTERNAL_ERROR, 500), (Fault.SLOW_DOWN, 503)])
def test_a_refusal_leaves_the_connection_open(
    proxy: FaultProxy, client: http.client.HTTPConnection, fault: Fault, status: int
) -> None:
    proxy.set(only(fault))
    client.request("GET", "/x")
    answer = client.getresponse()
    assert (answer.status, b"<Code>" in answer.read()) == (status, True)
    proxy.set(CALM)

    assert fetch(client) == BODY


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.RESET, ConnectionError),
        (Fault.RESET_IN_BODY, (ConnectionError, http.client.IncompleteRead)),
        (Fault.TRUNCATE, http.client.IncompleteRead),
        (Fault.STALL, TimeoutError),
        (Fault.STALL_IN_BODY, TimeoutError),
    ],
)
def test_an_answer_is_not_had_whole(
    proxy: FaultProxy,
    client: http.client.HTTPConnection,
    fault: Fault,
    error: type[Exception] | tuple[type[Exception], ...],
) -> None:
    proxy.set(only(fault))

    with pytest.raises(error):
        fetch(client)


def test_odds_are_what_is_likely(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    before = proxy.set(Odds({Fault.INTERNAL_ERROR: 0.3, Fault.SLOW_DOWN: 0.2}))

    for _ in range(200):
        client.request("HEAD", "/x")
        client.getresponse().read()

    after = proxy.set(CALM)
    met = {name: after[name] - before.get(name, 0) for name in ("500", "503", "passed")}
    assert 30 < met["500"] < 90
    assert 15 < met["503"] < 70
    assert sum(met.values()) == 200
