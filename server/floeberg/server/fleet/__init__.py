"""Which workers there are, and which of them reads what.

Both are functions of what they are handed: no clock, no socket and no thread in here.
"""

from floeberg.server.fleet.membership import (
    AskToJoin,
    Change,
    Drain,
    Fleet,
    FleetEvent,
    Grant,
    Instruction,
    Join,
    Leave,
    Member,
    Renew,
    Tell,
    Tick,
    Worker,
    WorkerState,
)
from floeberg.server.fleet.placement import MAX_LOCATIONS, Placement, place, rank

__all__ = [
    "MAX_LOCATIONS",
    "AskToJoin",
    "Change",
    "Drain",
    "Fleet",
    "FleetEvent",
    "Grant",
    "Instruction",
    "Join",
    "Leave",
    "Member",
    "Placement",
    "Renew",
    "Tell",
    "Tick",
    "Worker",
    "WorkerState",
    "place",
    "rank",
]
