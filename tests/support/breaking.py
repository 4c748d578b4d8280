"""Ways in which a worker fails in the middle of its work."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from floeberg.protocol.plans import ReadPlan, ResumePlace
from floeberg.protocol.storage import Storage
from floeberg.worker.reading import PlacedBatch, to_batches_for_tasks


@dataclass
class BreakingRead:
    """Reads tasks as a worker does, and fails with `error` after so many batches of each stream.

    `resumed` has the place that each stream was asked to begin at.
    """

    after_batches: int
    error: Callable[[], Exception]
    resumed: list[ResumePlace] = field(default_factory=list)

    def __call__(
        self, plan: ReadPlan, storage: Storage, *, resume: ResumePlace
    ) -> Iterator[PlacedBatch]:
        self.resumed.append(resume)
        batches = to_batches_for_tasks(plan, storage, resume=resume)
        for number, placed in enumerate(batches):
            if number == self.after_batches:
                raise self.error()
            yield placed


@dataclass
class StallingRead:
    """Reads tasks as a worker does, and stands still after so many batches of each stream, until
    `release`."""

    after_batches: int
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(
        self, plan: ReadPlan, storage: Storage, *, resume: ResumePlace
    ) -> Iterator[PlacedBatch]:
        for number, placed in enumerate(to_batches_for_tasks(plan, storage, resume=resume)):
            if number == self.after_batches:
                self.released.wait()
            yield placed

    def release(self) -> None:
        self.released.set()


class CuttingProxy:
    """Passes a TCP port's bytes on, and cuts each connection after `limit` bytes from the server.

    `port` is where to reach it; `connections` counts those who did. It leads to nowhere before
    `target_port` is set.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.target_port = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for sock in (self._listener, *self._open):
            _cut(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.target_port))
            self._open += [client, server]
            for source, sink, limit in ((client, server, None), (server, client, self.limit)):
                threading.Thread(target=_pass_on, args=(source, sink, limit), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket, limit: int | None) -> None:
    passed = 0
    with suppress(OSError):  # the other direction was cut
        while chunk := source.recv(1024):
            sink.sendall(chunk)
            passed += len(chunk)
            if limit is not None and passed >= limit:
                break
    _cut(source)
    _cut(sink)


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):  # it was not connected, or no longer is
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
