from __future__ import annotations

import base64

import pytest

from floeberg.protocol.bodies import dump_json
from floeberg.protocol.sealing import TICKET, Keyring, seal_message
from floeberg.server.rest.errors import NoSuchPlanTask
from floeberg.server.rest.plan_tasks import (
    PLAN_TASK,
    PLAN_TASK_SECONDS,
    PlanTask,
    ScanKey,
    open_plan_task,
    seal_plan_task,
)

KEYS = Keyring.generate()
TASK = PlanTask(
    ScanKey("lake", ("db", "a.b"), "uuid", (1 << 63) - 1, 3, '["true"]', (1, 2)), 1000, 2500
)


def sealed(content: object) -> str:
    raw = seal_message(KEYS, PLAN_TASK, dump_json(content))
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def test_a_plan_task_comes_back_as_it_was_sealed():
    text = seal_plan_task(TASK, KEYS, now_ms=5)

    assert open_plan_task(text, KEYS, now_ms=6) == TASK
    assert text.isascii()
    assert "lake" not in text


def test_it_expires_after_an_hour():
    text = seal_plan_task(TASK, KEYS, now_ms=0)

    assert open_plan_task(text, KEYS, now_ms=PLAN_TASK_SECONDS * 1000 - 1) == TASK
    with pytest.raises(NoSuchPlanTask, match="expired"):
        open_plan_task(text, KEYS, now_ms=PLAN_TASK_SECONDS * 1000)


def test_every_truncation_and_every_changed_letter_is_refused():
    text = seal_plan_task(TASK, KEYS, now_ms=0)

    for end in range(len(text)):
        with pytest.raises(NoSuchPlanTask):
            open_plan_task(text[:end], KEYS, now_ms=1)
    for place in range(len(text) - 1):  # the last letter may have bits that nobody reads
        changed = "A" if text[place] != "A" else "B"
        with pytest.raises(NoSuchPlanTask):
            open_plan_task(text[:place] + changed + text[place + 1 :], KEYS, now_ms=1)


@pytest.mark.parametrize("text", ["", "é", "not base64!", "AAAA", "a" * 5])
def test_what_nobody_has_sealed_is_refused(text):
    with pytest.raises(NoSuchPlanTask):
        open_plan_task(text, KEYS, now_ms=0)


def test_other_keys_and_tickets_do_not_pass_for_plan_tasks():
    theirs = seal_plan_task(TASK, Keyring.generate(), now_ms=0)
    ticket = base64.urlsafe_b64encode(seal_message(KEYS, TICKET, b"{}")).decode()

    for text in (theirs, ticket):
        with pytest.raises(NoSuchPlanTask, match="keys have sealed"):
            open_plan_task(text, KEYS, now_ms=0)


@pytest.mark.parametrize(
    "content", [[], {}, {"version": 2, "expires_at_ms": 9, "task": {}}, {"version": 1}]
)
def test_another_versions_plan_task_is_refused(content):
    with pytest.raises(NoSuchPlanTask, match="another version"):
        open_plan_task(sealed(content), KEYS, now_ms=0)
