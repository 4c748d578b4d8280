"""Planning: which files a scan must read, which deletes apply to them, and who reads what."""

from floeberg.server.planning.manifest_cache import ManifestCache
from floeberg.server.planning.packing import pack
from floeberg.server.planning.plan import CountResult, Plan, PlanCounters
from floeberg.server.planning.planner import count, plan_files
from floeberg.server.planning.rest_json import rest_json

__all__ = [
    "CountResult",
    "ManifestCache",
    "Plan",
    "PlanCounters",
    "count",
    "pack",
    "plan_files",
    "rest_json",
]
