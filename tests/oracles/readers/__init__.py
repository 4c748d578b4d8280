"""The peers that read, each asked in its own words for the same scan."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from tests.oracles.scans import Scan
from tests.oracles.workshop import Made


class Reader(Protocol):
    """An engine that reads tables. What it raises is its refusal."""

    name: str

    def read(self, made: Made, scan: Scan) -> pa.Table: ...


def message_of(refusal: Exception) -> str:
    """Return a refusal's kind and words; of Java's, those of what caused it all."""
    text = f"{type(refusal).__name__}: {refusal}"
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    return " ".join([*text.splitlines()[:2], *causes[-1:]])[:500]
