"""The coordinator's side of the wire: what answers calls, and the Flight service before it."""

from floeberg.server.flight.actions import Actions
from floeberg.server.flight.endpoints import ScanPolicy
from floeberg.server.flight.members import Members
from floeberg.server.flight.proxy import Proxy
from floeberg.server.flight.scans import Scans
from floeberg.server.flight.service import CoordinatorServer

__all__ = ["Actions", "CoordinatorServer", "Members", "Proxy", "ScanPolicy", "Scans"]
