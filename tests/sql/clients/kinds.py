"""What every client is asked to do, whatever its own words for it are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a client shows of who it is; nothing by default."""

    token: str | None = None
    username: str | None = None
    password: str | None = None


NOBODY = Shown()


class Stream(Protocol):
    """An answer that is read bit by bit."""

    def read(self) -> int:
        """Return how many rows the next bit has, 0 at the end."""
        ...

    def cancel(self) -> None:
        """Give up the rest."""
        ...


class Session(Protocol):
    """A connection of a client. What goes wrong is raised as the client raises it."""

    def tables(self) -> set[str]:
        """Return the tables that the client shows, as `schema.table`."""
        ...

    def columns(self, schema: str, table: str) -> list[str]: ...

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]: ...

    def stream(self, sql: str) -> Stream: ...

    def partitions(self, sql: str) -> list[bytes]:
        """Return the parts of an answer, each of which any connection reads."""
        ...

    def read_partition(self, partition: bytes) -> list[Row]: ...


class Client(Protocol):
    """A library. `abilities` are what it can do beside connecting and querying."""

    name: str
    abilities: frozenset[str]

    def connect(self, location: str, shown: Shown = NOBODY) -> AbstractContextManager[Session]: ...
