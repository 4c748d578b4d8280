"""Close a client's connection from the server's side.

pyarrow gives a server no way to end a call that waits for its client: a thread is inside of gRPC
then, until the client reads on or goes away. So the client is made to go away: its socket is among
the open files of this process, and shutting it down ends every call on it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from urllib.parse import unquote

_OPEN_FILES = "/dev/fd"  # on Linux a link to /proc/self/fd


def close_connections(peer: str, port: int) -> int:
    """Shut down the TCP connections of `peer` to this process's `port`; return how many there were.

    `peer` is as gRPC writes it: `ipv4:10.0.0.7:40312`, `ipv6:%5B::1%5D:40312`. For anything else,
    a Unix socket's peer among them, there are none.
    """
    address = _address(peer)
    if address is None:
        return 0
    closed = 0
    for name in os.listdir(_OPEN_FILES):
        connection = _socket_of(int(name))
        if connection is None:
            continue
        with connection:
            if _is_between(connection, address, port):
                connection.shutdown(socket.SHUT_RDWR)
                closed += 1
    return closed


_Address = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]


def _address(peer: str) -> _Address | None:
    """Return the address and port of a peer.

    >>> _address("ipv6:%5B::1%5D:40312")
    (IPv6Address('::1'), 40312)
    """
    scheme, _, rest = unquote(peer).partition(":")
    host, _, port = rest.rpartition(":")
    if scheme not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    try:
        return _plain(host.strip("[]")), int(port)
    except ValueError:
        return None


def _plain(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address without its zone; one of IPv4 as such, where a socket is for both."""
    found = ipaddress.ip_address(host.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _socket_of(descriptor: int) -> socket.socket | None:
    """Return a socket of its own for an open file; None for what is none, or is closed by now."""
    try:
        # what it leads to stays the same, whatever other threads close and open meanwhile
        duplicate = os.dup(descriptor)
    except OSError:
        return None
    try:
        return socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        return None


def _is_between(connection: socket.socket, address: _Address, port: int) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        there, here = connection.getpeername(), connection.getsockname()
        return (_plain(there[0]), there[1]) == address and here[1] == port
    except (OSError, ValueError):
        return False  # it listens, or is no longer connected
