"""What plans say of data files, by whichever engine, and where two plans part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Delete(NamedTuple):
    """A delete file, or one deletion vector in it, which begins at `content_offset`."""

    path: str
    is_equality: bool
    content_offset: int = 0


@dataclass(frozen=True)
class PlannedFile:
    """How a plan has one data file read. `cuts` are where its second and later tasks begin."""

    deletes: frozenset[Delete]
    cuts: frozenset[int] = frozenset()


Planned: TypeAlias = Mapping[str, PlannedFile]
"""A plan by the paths of its data files."""


@dataclass(frozen=True)
class Task:
    """One task of an engine's plan."""

    path: str
    start: int
    deletes: frozenset[Delete]


def planned_of(tasks: Iterable[Task]) -> Planned:
    """Return a plan from its tasks. All tasks of a file have the same deletes, or it is an error;
    a file that is planned twice shows as a cut at zero."""
    deletes: dict[str, frozenset[Delete]] = {}
    starts: dict[str, list[int]] = {}
    for task in tasks:
        before = deletes.setdefault(task.path, task.deletes)
        assert before == task.deletes, f"two tasks of {task.path} have different deletes"
        starts.setdefault(task.path, []).append(task.start)
    return {
        path: PlannedFile(found, frozenset(sorted(starts[path])[1:]))
        for path, found in deletes.items()
    }


@dataclass(frozen=True)
class PlanDifference:
    """Data files and deletes that only one of two plans has; deletes are pairs with their file.

    Cuts are compared apart: `cuts` are ours where the other plan does not begin a task.
    """

    more_files: frozenset[str]
    fewer_files: frozenset[str]
    more_deletes: frozenset[tuple[str, Delete]]
    fewer_deletes: frozenset[tuple[str, Delete]]
    cuts: frozenset[tuple[str, int]]

    @property
    def is_none(self) -> bool:
        return self == NO_DIFFERENCE

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(name for name in vars(NO_DIFFERENCE) if getattr(self, name))

    def __str__(self) -> str:
        return "; ".join(f"{kind}: {sorted(getattr(self, kind))[:3]}" for kind in self.kinds)


_NOTHING: frozenset[str] = frozenset()
NO_DIFFERENCE = PlanDifference(_NOTHING, _NOTHING, frozenset(), frozenset(), frozenset())


def difference(ours: Planned, theirs: Planned) -> PlanDifference:
    """Return what parts our plan from theirs."""
    our_deletes, their_deletes = (
        {(path, delete) for path in {*ours} & {*theirs} for delete in plan[path].deletes}
        for plan in (ours, theirs)
    )
    cuts = {
        (path, cut) for path in {*ours} & {*theirs} for cut in ours[path].cuts - theirs[path].cuts
    }
    return PlanDifference(
        frozenset(ours.keys() - theirs.keys()),
        frozenset(theirs.keys() - ours.keys()),
        frozenset(our_deletes - their_deletes),
        frozenset(their_deletes - our_deletes),
        frozenset(cuts),
    )
