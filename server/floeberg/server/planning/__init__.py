"""Planning: which files a scan must read, which deletes apply to them, and who reads what."""

from floeberg.server.planning.counting import count_tasks
from floeberg.server.planning.explaining import explain
from floeberg.server.planning.manifest_cache import ManifestCache
from floeberg.server.planning.manifest_source import ManifestSource
from floeberg.server.planning.plan import (
    CountResult,
    ManifestCounters,
    Plan,
    PlanCounters,
    PlanTrace,
)
from floeberg.server.planning.planner import count, plan_files
from floeberg.server.planning.rest_json import rest_json, rest_scan_tasks
from floeberg.server.planning.run import PlanProgress, PlanRun
from floeberg.server.planning.seats import Seats
from floeberg.server.planning.segment_files import SegmentFiles
from floeberg.server.planning.steps import Step, Stopwatch
from floeberg.server.planning.turns import Turns

__all__ = [
    "CountResult",
    "ManifestCache",
    "ManifestCounters",
    "ManifestSource",
    "Plan",
    "PlanCounters",
    "PlanProgress",
    "PlanRun",
    "PlanTrace",
    "Seats",
    "SegmentFiles",
    "Step",
    "Stopwatch",
    "Turns",
    "count",
    "count_tasks",
    "explain",
    "plan_files",
    "rest_json",
    "rest_scan_tasks",
]
