"""What every file format offers: its columns, and its rows a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, TypeAlias

from floeberg.worker.arrow import Rows
from floeberg.worker.files.stored import StoredField

CHUNK_BYTES = 4 << 20
MAX_CHUNK_ROWS = 1 << 16


LaterRows: TypeAlias = Callable[[], Iterator[Rows]]
"""Decodes the later columns of a chunk: gives the chunk's rows in order, in one part or more."""


def _no_later_rows() -> Iterator[Rows]:
    raise AssertionError("no columns were left for later")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a file, as the decoded columns.

    `first_row` is the position of the first one in the file, whatever was skipped before. `is_last`
    says that the share that was asked for has no chunk after this one. `later_rows` may be called
    once, before the next chunk is asked for, where columns were left for later.
    """

    first_row: int
    rows: Rows
    is_last: bool
    later_rows: LaterRows = _no_later_rows


@dataclass(slots=True)
class Demand:
    """How often later columns were asked for of late: for `streak` stretches of rows on end, up to
    the last one, and for `whole_streak` of those to their ends.

    It tells how much to fetch ahead, and whether to decode later columns with the first ones.
    Belongs to the reader of several files, one after another: what one file showed serves the next.
    """

    streak: int = 0
    whole_streak: int = 0

    def learn(self, *, was_asked_for: bool, to_the_end: bool) -> None:
        """Take notice of one more stretch of rows."""
        self.streak = self.streak + 1 if was_asked_for else 0
        self.whole_streak = self.whole_streak + 1 if to_the_end else 0


@dataclass(frozen=True, slots=True)
class Later:
    """Leaves to decode only of the chunks whose `later_rows` are asked for."""

    leaves: Set[int] = frozenset()
    demand: Demand = field(default_factory=Demand)


NOTHING_LATER = Later()


@dataclass(frozen=True, slots=True)
class Share:
    """Which rows of a file: of the row groups that start in a byte range, from `from_row` on.

    `length` 0 is "to the end". `from_row` counts the file's rows, not the share's.
    """

    start: int = 0
    length: int = 0
    from_row: int = 0

    def holds(self, offset: int) -> bool:
        """Say whether a row group that starts at byte `offset` belongs to this share.

        Shares that tile a file hold every offset exactly once.
        """
        return self.start <= offset and (not self.length or offset < self.start + self.length)


WHOLE_FILE = Share()


@dataclass(frozen=True, slots=True)
class LeafStatistics:
    """What a row group's footer says of one leaf column; None is unknown.

    `smallest` and `largest` are in the format's physical form; they leave NaN out.
    """

    smallest: object
    largest: object
    null_count: int | None


class RowGroupStatistics(Protocol):
    """One row group as its footer describes it, before anything is decoded."""

    @property
    def first_row(self) -> int: ...

    @property
    def num_rows(self) -> int: ...

    def leaf(self, index: int) -> LeafStatistics:
        """Return what is known of leaf `index`."""
        ...


MayMatch: TypeAlias = Callable[[RowGroupStatistics], bool]
"""Says whether a row group may hold a wanted row. May keep one that holds none, never drops one
that does.
"""


class StoredFile(Protocol):
    """An open file. Not safe to share between threads; closed by whoever opened it."""

    @property
    def columns(self) -> tuple[StoredField, ...]: ...

    @property
    def num_rows(self) -> int:
        """Rows in the whole file."""
        ...

    def decoded(self, leaves: Set[int]) -> tuple[StoredField, ...]:
        """Return the columns of the chunks that decoding `leaves` gives: these leaves at least."""
        ...

    def chunks(
        self,
        leaves: Set[int],
        share: Share = WHOLE_FILE,
        may_match: MayMatch | None = None,
        later: Later = NOTHING_LATER,
    ) -> Iterator[Chunk]:
        """Yield the share's rows in file order, with the columns of `decoded(leaves)`.

        No leaves at all still gives chunks, of rows without columns. A chunk's `later_rows` have
        the columns of `decoded(later.leaves)`. What nobody asks for is not decoded, and not fetched
        where a whole row group is not asked for.
        """
        ...

    @property
    def unread_bytes(self) -> int:
        """Bytes that are still to be read for the chunks that were asked for, as far as is known:
        fetched already, or on their way, or not yet."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> StoredFile: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
