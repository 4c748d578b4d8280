from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from floeberg.process.connections import close_connections


class Pair:
    """Both ends of a connection within this process."""

    def __init__(self, family: socket.AddressFamily, host: str, stack: ExitStack) -> None:
        listening = stack.enter_context(socket.socket(family))
        listening.bind((host, 0))
        listening.listen()
        self.port: int = listening.getsockname()[1]
        self.client = stack.enter_context(socket.socket(family))
        self.client.settimeout(20)
        self.client.connect((host, self.port))
        self.server, _ = listening.accept()
        stack.enter_context(self.server)

    @property
    def client_port(self) -> int:
        return int(self.client.getsockname()[1])

    def is_open(self) -> bool:
        self.client.setblocking(False)
        try:
            return self.client.recv(1) != b""
        except BlockingIOError:
            return True


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("family", "host", "peer"),
    [
        (socket.AF_INET, "127.0.0.1", "ipv4:127.0.0.1:{}"),
        (socket.AF_INET6, "::1", "ipv6:%5B::1%5D:{}"),
        (socket.AF_INET6, "::1", "ipv6:[::1]:{}"),
    ],
)
def test_the_peer_s_connection_is_closed_and_no_other(
    stack: ExitStack, family: socket.AddressFamily, host: str, peer: str
) -> None:
    pair, other = Pair(family, host, stack), Pair(family, host, stack)

    assert close_connections(peer.format(pair.client_port), pair.port) == 1

    assert not pair.is_open()
    assert other.is_open()


def test_a_peer_of_another_port_of_this_process_is_left_alone(stack: ExitStack) -> None:
    pair = Pair(socket.AF_INET, "127.0.0.1", stack)

    assert close_connections(f"ipv4:127.0.0.1:{pair.client_port}", pair.port + 1) == 0

    assert pair.is_open()


def test_a_peer_of_ipv4_is_found_at_a_socket_for_both(stack: ExitStack) -> None:
    listening = stack.enter_context(
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    )
    port = listening.getsockname()[1]
    client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    stack.enter_context(listening.accept()[0])

    assert close_connections(f"ipv4:127.0.0.1:{client.getsockname()[1]}", port) == 1


@pytest.mark.parametrize(
    "peer", ["", "unix:/tmp/s", "ipv4:nowhere", "ipv4:1.2.3:5", "ipv4:1.2.3.4:x"]
)
def test_what_is_no_address_has_no_connection(peer: str) -> None:
    assert close_connections(peer, 1) == 0
