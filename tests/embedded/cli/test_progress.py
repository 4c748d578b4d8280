from __future__ import annotations

import os
import sys

from tests.support.terminal import on_terminal

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

PLANNING = """
import threading
from floeberg.embedded.cli.progress import show_planning
from floeberg.server.planning import PlanProgress

drawn = threading.Event()

def progress():
    drawn.set()
    return {progress}

with show_planning(progress):
    {wait}
print("planned")
"""


def seen(progress: str, wait: str = "drawn.wait(20)") -> str:
    code = PLANNING.format(progress=progress, wait=wait)
    return on_terminal([sys.executable, "-c", code], ENVIRONMENT).text


def test_a_plan_that_takes_long_is_shown_until_it_is_made() -> None:
    text = seen("PlanProgress('db.t', None, 'read manifests', 1063, 12)")

    assert "planning: read manifests, 12 of 1,063 manifests read" in text
    assert text.rstrip().endswith("planned")


def test_a_server_s_plan_is_shown_without_its_progress() -> None:
    assert "planning" in seen("None")


def test_a_plan_that_is_made_at_once_is_not_shown() -> None:
    text = seen("PlanProgress('db.t', None, 'read manifests', 1063, 12)", wait="pass")

    assert text == "planned\n"
