"""The frame of a page: style, the script that keeps it fresh, and what a browser may do with it.

Everything is in the one answer. The browser is told to load nothing from anywhere, and to run no
other script than this one, whatever might have slipped into the page.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from floeberg.process.page.html import Html, element, joined

_HERE = Path(__file__).parent
STYLE = (_HERE / "page.css").read_text(encoding="utf-8")
SCRIPT = (_HERE / "page.js").read_text(encoding="utf-8")

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath fill='%232f7fd1' d='M8 1l4 6H4z'/%3E"
    "%3Cpath fill='%230b5cad' d='M2 8h12l-4 7H6z'/%3E%3C/svg%3E"
)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            f"style-src {_digest(STYLE)}",
            f"script-src {_digest(SCRIPT)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""The headers that go with a page, and with its JSON."""


def whole_page(title: str, heading: Html, content: Html) -> str:
    """Return an HTML document: `heading` and `content` are what is brought up to date."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href=_ICON),
        element("style", Html(STYLE)),
    )
    body = element(
        "body",
        element(
            "div",
            element("header", heading, id="heading"),
            element(
                "p",
                element("button", "Pause", id="pause", type="button", hidden=True),
                element("a", "Reload", id="reload", href=""),
                element("a", "The same as JSON", href="status.json"),
                element("span", role="status", id="told"),
                class_="live",
            ),
            element("main", content, id="facts"),
            class_="wrap",
        ),
        element("script", Html(SCRIPT)),
    )
    return joined([Html("<!doctype html>\n"), element("html", head, body, lang="en")])
