"""The distinct residuals of a plan's tasks, by number: most tasks have the same few."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from floeberg.protocol.expressions.json_form import bound_to_json
from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.planned import PlannedFiles
from floeberg.protocol.types import Json


class ResidualTable:
    """Numbers residuals in the order in which they are met, by what they say."""

    def __init__(self) -> None:
        self.listed: list[Json] = []
        self._by_text: dict[str, int] = {}
        self._by_object: dict[int, int] = {}

    def numbers(self, parts: Sequence[tuple[PlannedFiles, Int64s]]) -> Int64s:
        """Return the number of each file's residual. `parts` are files, and places among them."""
        found = [np.zeros(0, dtype=np.int64)]
        for part, places in parts:
            chosen = part.residual_of[places]
            if len(part.residuals) == 1:
                number = self._number(part.residuals[0]) if len(chosen) else 0
                found.append(np.full(len(chosen), number))
                continue
            used, which = np.unique(chosen, return_inverse=True)
            numbers = [self._number(part.residuals[i]) for i in used.tolist()]
            found.append(np.array(numbers, dtype=np.int64)[which])
        return np.concatenate(found)

    def _number(self, residual: BoundExpression) -> int:
        # `parts` keeps the object alive, so that its id is nobody else's
        number = self._by_object.get(id(residual))
        if number is None:
            form = bound_to_json(residual)
            number = self._by_text.setdefault(json.dumps(form), len(self.listed))
            if number == len(self.listed):
                self.listed.append(form)
            self._by_object[id(residual)] = number
        return number
