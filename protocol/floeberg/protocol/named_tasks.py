"""Tasks that are named by manifests and rows of these: what a ticket says of very many files.

Whoever redeems such a ticket reads the manifests again, and gets the very tasks of the plan: the
same files in the same order, divided at the same places, with the same deletes and residuals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, overload

from isal import isal_zlib

from floeberg.protocol.errors import InternalError, StaleTicket
from floeberg.protocol.expressions.model import BoundExpression
from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.planned import DeleteFiles, PlannedFiles, References
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.tasks import FileScanTask


@dataclass(frozen=True, slots=True, eq=False)
class NamedRows:
    """Live entries of a manifest: `rows`, ascending, of its `entries`.

    `checksum` is `checksum_of` the segment and the rows that the plan was made with. Of `manifest`
    there is what decoding it takes.
    """

    manifest: ManifestFile
    rows: Int64s
    entries: int
    checksum: int


def checksum_of(segment: Segment, rows: Int64s) -> int:
    """Return a sum of what tells a plan's rows from others: how many they are, bytes, records."""
    total = len(segment)
    for field_id in (s.SIZE_BYTES, s.RECORD_COUNT):
        column = segment.numbers(field_id)
        if column is not None:
            values = column.values[rows].astype("<i8")
            total = isal_zlib.crc32(values.tobytes(), total)
    return total


@dataclass(frozen=True, slots=True, eq=False)
class NamedTasks(Sequence[FileScanTask]):
    """The tasks from `first_task` on, `task_count` of them, of those that the named files have.

    Files count through all of `named`: `residual_of` and `deletes_of` say of each what they say in
    `PlannedFiles`. How many tasks there are is known; none of them is, before `resolve`.
    """

    named: tuple[NamedRows, ...]
    residuals: tuple[BoundExpression, ...]
    residual_of: Int64s = field(repr=False)
    deletes_of: References = field(repr=False)
    deletes: DeleteFiles = field(repr=False)
    split_size: int
    first_task: int
    task_count: int

    def resolve(self, segments: Sequence[Segment]) -> PlannedTasks:
        """Return the tasks; `segments` are those of the named manifests, decoded again.

        Raises `StaleTicket` when they do not hold what the plan was made of.
        """
        parts = []
        begin = 0
        for named, segment in zip(self.named, segments, strict=True):
            is_whole = len(segment) == named.entries and segment.content is ManifestContent.DATA
            if not is_whole or checksum_of(segment, named.rows) != named.checksum:
                raise StaleTicket(named.manifest.location, "has other entries than it had")
            end = begin + len(named.rows)
            parts.append(
                PlannedFiles(
                    segment,
                    named.rows,
                    self.residuals,
                    self.residual_of[begin:end],
                    self.deletes_of.between(begin, end),
                    named.manifest,
                )
            )
            begin = end
        tasks = PlannedTasks(parts, self.deletes, self.split_size)
        stop = self.first_task + self.task_count
        if len(tasks) < stop or (stop and tasks.ranges.files[stop - 1] != begin - 1):
            raise StaleTicket(self.named[-1].manifest.location, "divides its files elsewhere")
        return tasks[self.first_task : stop]

    def __len__(self) -> int:
        return self.task_count

    @overload
    def __getitem__(self, index: int) -> FileScanTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FileScanTask]: ...
    def __getitem__(self, index: int | slice) -> FileScanTask | Sequence[FileScanTask]:
        self._refuse()

    def __iter__(self) -> Iterator[FileScanTask]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        # rather than none of them
        raise InternalError("tasks that are named by manifests were not resolved")
