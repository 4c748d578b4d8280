"""A proxy before an HTTP server on loopback that counts the requests which pass."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

_END_OF_REQUEST_LINE = b" HTTP/1.1\r\n"


class CountingProxy:
    """Passes connections on to `target_port`; `port` is where to reach it, `requests` counts."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._lock = threading.Lock()
        self.requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CountingProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for sock in self._open:
            _cut(sock)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target_port))
                self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    run = threading.Thread(target=self._pass_on, args=(source, sink), daemon=True)
                    run.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        end = b""
        with suppress(OSError):  # the other direction was cut
            while chunk := source.recv(1 << 16):
                # a request's line may come in two parts; a response has no such line
                found = (end + chunk).count(_END_OF_REQUEST_LINE)
                end = (end + chunk)[1 - len(_END_OF_REQUEST_LINE) :]
                if found:
                    with self._lock:
                        self.requests += found
                sink.sendall(chunk)
        _cut(source)
        _cut(sink)


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):  # it was not connected, or no longer is
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
