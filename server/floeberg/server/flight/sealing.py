"""Seal the tickets of a plan, in such a form that together they stay within what clients bear."""

from __future__ import annotations

from collections.abc import Sequence

from floeberg.protocol.errors import PlanTooLarge
from floeberg.protocol.plan_codec import PlanEncoder, listed_bytes
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.tickets import seal_encoded

MAX_ANSWER_BYTES = 512 << 20
"""Beyond 2 GiB of answer, pyarrow ends the process; no client takes as much as this."""

_MOST_BYTES_A_TASK = 512
"""More than a task takes, but for paths of unheard-of length."""


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
) -> list[bytes]:
    """Return a ticket for each run of `tasks`, from a first one up to another, read as `plan` says.

    Tickets list their tasks while all of them take about `max_info_bytes` at most. Beyond that each
    names manifests whose files all come from manifests that are known (`can_be_named`). Raises
    `PlanTooLarge` for more than `MAX_ANSWER_BYTES`.
    """
    by_manifests = _take_more_than(tasks, max_info_bytes)
    encoder = PlanEncoder(plan)
    tickets = []
    total = 0
    for first, stop in runs:
        ticket = seal_encoded(
            encoder.encode(tasks[first:stop], by_manifests=by_manifests),
            keyring,
            principal=principal,
            bound=bound,
            expires_at_ms=expires_at_ms,
        )
        total += len(ticket)
        if total > MAX_ANSWER_BYTES:
            raise PlanTooLarge(
                f"the tickets of {len(tasks)} tasks take more than {MAX_ANSWER_BYTES} bytes"
            )
        tickets.append(ticket)
    return tickets


def _take_more_than(tasks: PlannedTasks, max_info_bytes: int) -> bool:
    if len(tasks) * _MOST_BYTES_A_TASK <= max_info_bytes:
        return False  # without a closer look, which takes longer than small plans do
    return listed_bytes(tasks) > max_info_bytes
