"""Which files of a plan have the rows that a scan with a limit asks for.

Rows come in plan order, and of some files metadata says how many there are. Once these add up to
the limit, nothing that follows is read. Files whose rows are not known may stand between: they are
kept, and count nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from floeberg.protocol.planned import DeleteFiles, PlannedFiles
from floeberg.server.planning.counting import RowsByMetadata

_MOST_ROWS: Final = 1 << 40
"""Files have fewer rows than that, and those of a segment add up within 64 bits."""


class RowLimit:
    """The rows that a plan still needs, as its files are taken in their order; None is all.

    A file counts as a whole, so it is to be divided afterwards.
    """

    def __init__(self, rows: int | None, deletes: DeleteFiles) -> None:
        self._needed = rows
        self._rows = RowsByMetadata(deletes)

    @property
    def is_reached(self) -> bool:
        return self._needed == 0

    def first_of(self, part: PlannedFiles) -> PlannedFiles:
        """Return the next files, up to the one that has the last row needed; all where none has."""
        if self._needed is None or self._needed > _MOST_ROWS:
            return part
        counted = np.clip(self._rows.of(part), 0, self._needed)
        upto = np.cumsum(counted)
        stop = int(np.searchsorted(upto, self._needed)) + 1
        if stop > len(part):
            self._needed -= int(upto[-1]) if len(part) else 0
            return part
        self._needed = 0
        return _first(part, stop)


def _first(part: PlannedFiles, stop: int) -> PlannedFiles:
    """Return the first files of a part, with those of its residuals that they have."""
    used, residual_of = np.unique(part.residual_of[:stop], return_inverse=True)
    return replace(
        part,
        rows=part.rows[:stop],
        residuals=tuple(part.residuals[i] for i in used.tolist()),
        residual_of=residual_of,
        deletes=part.deletes.between(0, stop),
    )
