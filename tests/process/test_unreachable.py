from __future__ import annotations

import socket
import threading
import time
from http.server import HTTPServer, SimpleHTTPRequestHandler

import pytest

from floeberg.client import connect
from floeberg.protocol.errors import ServerUnavailable, TimedOut


def test_a_port_where_nothing_listens_is_told_at_once_with_the_remedy():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        location = f"grpc://127.0.0.1:{unused.getsockname()[1]}"
    began = time.monotonic()

    with connect(location) as lake, pytest.raises(ServerUnavailable) as raised:
        lake.tables()

    assert time.monotonic() - began < 5
    assert f"the coordinator {location} cannot be reached: " in str(raised.value)
    assert "floeberg up" in str(raised.value)


def test_a_server_that_says_nothing_is_given_up_within_the_timeout():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        location = f"grpc://127.0.0.1:{silent.getsockname()[1]}"

        with (
            connect(location, timeout_seconds=0.5) as lake,
            pytest.raises(TimedOut, match=r"answered nothing within 0\.5 s"),
        ):
            lake.tables()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_another_protocol_behind_the_port_is_named():
    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with (
            connect(f"grpc://127.0.0.1:{server.server_port}") as lake,
            pytest.raises(ServerUnavailable, match="HTTP side port"),
        ):
            lake.tables()
        server.shutdown()
        thread.join()
