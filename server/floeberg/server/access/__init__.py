"""What callers may read: policies, and tables as callers see them under these."""

from floeberg.server.access.callers import Caller, Callers
from floeberg.server.access.limits import UNLIMITED, Limits
from floeberg.server.access.policies import FULL, Access, Policies
from floeberg.server.access.view import TableView

__all__ = [
    "FULL",
    "UNLIMITED",
    "Access",
    "Caller",
    "Callers",
    "Limits",
    "Policies",
    "TableView",
]
