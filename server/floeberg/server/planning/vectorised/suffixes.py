"""Deletes sorted so that those which apply to a file are the end of a run."""

from __future__ import annotations

from typing import Final

import numpy as np

from floeberg.protocol.manifests.columns import Int64s

_TABLE_ENTRIES: Final = 1 << 20


class Suffixes:
    """Numbers of deletes by group, in each by sequence number. Never changes.

    All arguments have the shape (n,); groups count from 0. Of its group, a file is subject to
    deletes with a greater sequence number than its own, or where they are not `strict`, an equal
    one. `numbers` has them in the order that `applying_to` means, as a part of something longer
    that it is from place `first` on.
    """

    def __init__(
        self, numbers: Int64s, groups: Int64s, sequences: Int64s, first: int, *, strict: bool
    ) -> None:
        order = np.lexsort((sequences, groups))
        groups, sequences = groups[order], sequences[order]
        self.numbers = numbers[order]
        self._first = first
        self._strict = strict
        self._sequences = np.unique(sequences)
        self._width = len(self._sequences) + 1
        self._groups = int(groups.max(initial=-1)) + 1
        self._keys = groups * self._width + np.searchsorted(self._sequences, sequences)
        upto = np.arange(1, self._groups + 1) * self._width
        # the last one is for files of no group
        self._stops = np.append(np.searchsorted(self._keys, upto), 0)
        self._table: Int64s | None = None
        if self._groups * self._width <= _TABLE_ENTRIES:
            counts = np.bincount(self._keys, minlength=self._groups * self._width)
            self._table = np.append(np.cumsum(counts) - counts, 0)

    def __len__(self) -> int:
        return len(self.numbers)

    def applying_to(self, groups: Int64s, sequences: Int64s) -> tuple[Int64s, Int64s]:
        """Return the start and the stop of what applies to each file, counted from `first` on.

        Both arguments have the shape (files,); a file's group may be any number, and has no
        deletes where it is none of theirs.
        """
        has_group = (groups >= 0) & (groups < self._groups)
        inside = np.where(has_group, groups, self._groups)
        keys = inside * self._width + self._ranks(sequences)
        stops = self._stops[inside]
        if self._table is not None:
            starts = self._table[np.minimum(keys, len(self._table) - 1)]
        else:
            starts = np.where(has_group, np.searchsorted(self._keys, keys), 0)
        return starts + self._first, stops + self._first

    def _ranks(self, sequences: Int64s) -> Int64s:
        """Return how many of the deletes' sequence numbers are too old for each file."""
        if len(sequences) and (sequences == sequences[0]).all():
            sequences = sequences[:1]  # as files of one commit have them
        return np.searchsorted(self._sequences, sequences, "right" if self._strict else "left")
