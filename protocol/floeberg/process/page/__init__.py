"""A page of facts over HTTP: HTML that is escaped as it is built, and nothing from elsewhere."""

from floeberg.process.page.facts import caches_table, certificates_table, errors_table
from floeberg.process.page.formats import ago, amount, count, duration, rate
from floeberg.process.page.html import Html, element, joined
from floeberg.process.page.parts import (
    Column,
    badge,
    code,
    filling,
    progress,
    ratio,
    section,
    table,
    tile,
    tiles,
)
from floeberg.process.page.routes import Page, StatusRoutes, Visibility

__all__ = [
    "Column",
    "Html",
    "Page",
    "StatusRoutes",
    "Visibility",
    "ago",
    "amount",
    "badge",
    "caches_table",
    "certificates_table",
    "code",
    "count",
    "duration",
    "element",
    "errors_table",
    "filling",
    "joined",
    "progress",
    "rate",
    "ratio",
    "section",
    "table",
    "tile",
    "tiles",
]
