"""A clock that a test sets by hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Stands still at `seconds` until a test moves it."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds
