"""Scan planning for clients of Iceberg's REST catalog, on the HTTP side port."""

from floeberg.server.rest.planning import RestPlanner
from floeberg.server.rest.routes import RestService

__all__ = ["RestPlanner", "RestService"]
