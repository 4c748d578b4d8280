"""What reading gives: batches, each with the place after it."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from floeberg.protocol.plans import ResumePlace


class Placed(Protocol):
    """A batch and the place to resume at after it."""

    @property
    def batch(self) -> pa.RecordBatch: ...
    @property
    def place(self) -> ResumePlace: ...
