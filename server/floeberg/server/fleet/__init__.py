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
from floeberg.server.fleet.search import Search, SearchEvent, SearchInstruction, Target

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
    "Search",
    "SearchEvent",
    "SearchInstruction",
    "Target",
    "Tell",
    "Tick",
    "Worker",
    "WorkerState",
    "place",
    "rank",
]
