"""What to read: one data file or byte range of it, its deletes, and what is left of the filter."""

from __future__ import annotations

from dataclasses import dataclass

from floeberg.protocol.expressions.model import TRUE, BoundExpression
from floeberg.protocol.files import DataFile, DeleteFile


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """A share of a scan that any worker can read to the same rows in the same order.

    `start` and `length` are bytes of the data file; a row group (or block) belongs to the task
    whose range holds its start, see `worker` reading. `residual` is what the partition has not
    already decided of the scan's filter, bound to the schema that is read; `TRUE` when nothing is
    left.
    """

    data_file: DataFile
    delete_files: tuple[DeleteFile, ...] = ()
    residual: BoundExpression = TRUE
    start: int = 0
    length: int = 0  # 0 is "to the end", only ever together with start 0: the whole file

    @property
    def size_bytes(self) -> int:
        """Bytes of the data file that this task covers, for balancing."""
        return self.length or self.data_file.size_bytes

    @property
    def is_whole_file(self) -> bool:
        return self.start == 0 and self.length in (0, self.data_file.size_bytes)
