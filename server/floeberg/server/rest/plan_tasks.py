"""Plan tasks: pages of a plan that are still to be fetched, sealed.

A plan task says which scan, and which of its tasks. It is whole: any coordinator that has the keys
and the catalog plans the scan again, to the same tasks in the same order, and answers. So nothing
is held for a client that never comes back. What is sealed in it no client can change; it holds no
location and no credential.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.sealing import Keyring, Purpose, open_message, seal_message
from floeberg.server.rest.errors import NoSuchPlanTask

PLAN_TASK = Purpose("plan-task")
PLAN_TASK_SECONDS = 3600

_VERSION = 1


@dataclass(frozen=True, slots=True)
class ScanKey:
    """One scan of one snapshot, with everything that decides its tasks.

    `snapshot_id` is None for a table never written to. `filter` is bound to the schema `schema_id`
    and widened for two-valued logic, as JSON text. `stats` are the ids of the columns whose
    statistics are wanted.
    """

    catalog: str
    identifier: tuple[str, ...]
    table_uuid: str | None
    snapshot_id: int | None
    schema_id: int
    filter: str
    stats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanTask:
    """The tasks from `first` up to `stop` of a scan's plan."""

    scan: ScanKey
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class _Sealed:
    version: int
    expires_at_ms: int
    task: PlanTask


_SEALED = TypeAdapter(_Sealed)


def seal_plan_task(
    task: PlanTask,
    keyring: Keyring,
    *,
    now_ms: int,
    random: Callable[[int], bytes] = os.urandom,
) -> str:
    """Return the text that stands for `task` within the next hour."""
    sealed = _Sealed(_VERSION, now_ms + PLAN_TASK_SECONDS * 1000, task)
    content = dump_json(_SEALED.dump_python(sealed, mode="json"))
    raw = seal_message(keyring, PLAN_TASK, content, random)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def open_plan_task(text: str, keyring: Keyring, *, now_ms: int) -> PlanTask:
    """Return the plan task that `text` stands for.

    Raises `NoSuchPlanTask` for one that has expired, and for what no key of the ring has sealed.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise NoSuchPlanTask("this is not a plan task of floeberg") from None
    content = open_message(keyring, PLAN_TASK, raw)
    if content is None:
        raise NoSuchPlanTask("this is not a plan task that these keys have sealed")
    try:
        sealed = _SEALED.validate_python(json.loads(content))
    except (ValueError, ValidationError) as exc:
        raise NoSuchPlanTask("another version of floeberg has sealed this plan task") from exc
    if sealed.version != _VERSION:
        raise NoSuchPlanTask("another version of floeberg has sealed this plan task")
    if now_ms >= sealed.expires_at_ms:
        raise NoSuchPlanTask("this plan task has expired")
    return sealed.task
