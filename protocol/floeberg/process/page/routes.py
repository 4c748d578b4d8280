"""The routes of a status page, and who may see it.

The HTTP side port has no authentication, and the page names tables and principals. By default it is
shown only on loopback, and only to who calls it by an address or by `localhost`: a web site that
gives its own name the address 127.0.0.1 could otherwise read it through the browser of somebody who
works on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from floeberg.process.page.html import Html
from floeberg.process.page.layout import HEADERS, whole_page

Visibility = Literal["local", "on", "off"]

_BY_ADDRESS = re.compile(r"(localhost|[0-9.]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says. `json` are the same facts, as text."""

    title: str
    heading: Html
    content: Html


@dataclass(frozen=True)
class StatusRoutes:
    """The routes `/`, `/status` and `/status.json` of a port.

    `render` and `json` are called for each request, from several threads at once. `is_loopback`
    says whether the port can be reached from this machine alone.
    """

    render: Callable[[], Page]
    json: Callable[[], str]
    visibility: Visibility
    is_loopback: bool

    @property
    def routes(self) -> Sequence[BaseRoute]:
        return [
            Route("/", lambda _: RedirectResponse("/status"), methods=["GET"]),
            Route("/status", self._page, methods=["GET"]),
            Route("/status.json", self._json, methods=["GET"]),
        ]

    def _page(self, request: Request) -> Response:
        hidden = self._hidden(request)
        if hidden is not None:
            return hidden
        page = self.render()
        return HTMLResponse(whole_page(page.title, page.heading, page.content), headers=HEADERS)

    def _json(self, request: Request) -> Response:
        hidden = self._hidden(request)
        if hidden is not None:
            return hidden
        return Response(self.json(), media_type="application/json", headers=HEADERS)

    def _hidden(self, request: Request) -> Response | None:
        """Return what is told to who may not see the page, None to others."""
        if self.visibility == "on":
            return None
        if self.visibility == "off" or not self.is_loopback:
            return PlainTextResponse(
                "The status page is not shown here: it names tables, and this port has no"
                " authentication. Where only those who may see that reach the port, say"
                ' --status-page on (status_page = "on").\n',
                status_code=404,
            )
        if not _BY_ADDRESS.fullmatch(request.headers.get("host", "")):
            return PlainTextResponse(
                "Ask for the status page by the address 127.0.0.1 or as localhost; for other names,"
                ' say --status-page on (status_page = "on").\n',
                status_code=421,
            )
        return None
