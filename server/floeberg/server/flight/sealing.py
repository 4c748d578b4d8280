"""Seal the tickets of a plan, in such a form that together they stay within what clients bear."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from floeberg.protocol.errors import PlanTooLarge
from floeberg.protocol.plan_codec import PlanEncoder, listed_bytes
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.tickets import NO_LIMITS, NO_ORIGIN, Origin, StreamLimits, seal_encoded

MAX_ANSWER_BYTES = 512 << 20
"""Beyond 2 GiB of answer, pyarrow ends the process; no client takes as much as this."""

_MOST_BYTES_A_TASK = 512
"""More than a task takes, but for paths of unheard-of length."""

_TOLERANCE = 5 / 4
"""How far tickets that list files may exceed what they should take: by the default of 3 MiB they
stay below the 4 MiB that some clients refuse."""

_MANY_TASKS = 16_000
"""Fewer are sealed before threads have started."""


def seal_tickets(
    plan: ReadPlan,
    tasks: PlannedTasks,
    runs: Sequence[tuple[int, int]],
    keyring: Keyring,
    *,
    principal: str | None,
    bound: bool = False,
    expires_at_ms: int,
    max_info_bytes: int,
    origin: Origin = NO_ORIGIN,
    limits: StreamLimits = NO_LIMITS,
) -> list[bytes]:
    """Return a ticket for each run of `tasks`, from a first one up to another, read as `plan` says.

    Tickets list their tasks while all of them take about `max_info_bytes` at most. Beyond that each
    names manifests whose files all come from manifests that are known (`can_be_named`). Raises
    `PlanTooLarge` for more than `MAX_ANSWER_BYTES`.
    """

    def sealed(*, by_manifests: bool, most_bytes: float) -> list[bytes] | None:
        """Return the tickets, None where they take more than `most_bytes`."""
        encoder = PlanEncoder(plan, tasks, by_manifests=by_manifests)

        def seal(run: tuple[int, int]) -> bytes:
            encoded = encoder.encode(*run)
            return seal_encoded(
                encoded,
                keyring,
                principal=principal,
                bound=bound,
                expires_at_ms=expires_at_ms,
                origin=origin,
                limits=limits,
            )

        tickets = []
        total = 0
        with closing(_each(seal, runs, in_threads=len(tasks) > _MANY_TASKS)) as each:
            for ticket in each:
                total += len(ticket)
                if total > most_bytes:
                    return None
                tickets.append(ticket)
        return tickets

    tickets = None
    if _may_take_more_than(tasks, max_info_bytes):
        if listed_bytes(tasks) <= max_info_bytes:
            # unless the files that were looked at have names that compress better than others
            tickets = sealed(by_manifests=False, most_bytes=max_info_bytes * _TOLERANCE)
        tickets = tickets or sealed(by_manifests=True, most_bytes=MAX_ANSWER_BYTES)
    else:
        tickets = sealed(by_manifests=False, most_bytes=MAX_ANSWER_BYTES)
    if tickets is None:
        raise PlanTooLarge(
            f"the tickets of {len(tasks)} tasks take more than {MAX_ANSWER_BYTES} bytes"
        )
    return tickets


def _each(
    seal: Callable[[tuple[int, int]], bytes], runs: Sequence[tuple[int, int]], *, in_threads: bool
) -> Generator[bytes, None, None]:
    """Yield the tickets of `runs`, in their order."""
    if not in_threads:
        yield from map(seal, runs)
        return
    # compressing and sealing, which take most of the time, release the GIL
    pool = ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1), thread_name_prefix="sealing")
    try:
        yield from pool.map(seal, runs)
    finally:
        pool.shutdown(cancel_futures=True)


def _may_take_more_than(tasks: PlannedTasks, max_info_bytes: int) -> bool:
    """Say whether a closer look is due, which takes longer than small plans do."""
    return len(tasks) * _MOST_BYTES_A_TASK > max_info_bytes
