from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator

import httpx
import pytest

from floeberg.process.http import HttpService, new_registry
from floeberg.process.page import Html, Page, StatusRoutes, Visibility, element
from tests.support.html_page import parse_page

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[HttpService] = []

    def start(visibility: Visibility = "local", *, is_loopback: bool = True) -> str:
        page = Page("title", element("h1", "heading"), element("p", "content"))
        routes = StatusRoutes(lambda: page, lambda: '{"a":1}', visibility, is_loopback)
        service = HttpService(new_registry(), dict, routes=routes.routes)
        service.start()
        started.append(service)
        return service.uri

    yield start
    for service in started:
        service.stop()


def test_the_page_and_its_json_are_served_and_the_port_leads_to_them(serve: Serve) -> None:
    uri = serve()

    page = httpx.get(uri, follow_redirects=True)

    assert page.url.path == "/status"
    html = parse_page(page.text)
    assert html.attributes["lang"] == "en"
    assert html.the("title").text == "title"
    assert html.the("header").text == "heading"
    assert html.the("main").text == "content"
    assert httpx.get(f"{uri}/status.json").json() == {"a": 1}


def test_a_browser_may_run_only_what_the_page_has_and_load_nothing_from_elsewhere(
    serve: Serve,
) -> None:
    answer = httpx.get(f"{serve()}/status")
    html = parse_page(answer.text)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"
    for name, directive in (("script", "script-src"), ("style", "style-src")):
        digest = hashlib.sha256(html.the(name).text.encode()).digest()
        assert policy[directive] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_nothing_of_the_page_needs_its_script(serve: Serve) -> None:
    html = parse_page(httpx.get(f"{serve()}/status").text)

    hidden = [e for e in html.all("button") if "hidden" in e.attributes]
    assert [e.text for e in hidden] == ["Pause"]
    assert "Reload" in [a.text for a in html.all("a")]


@pytest.mark.parametrize(
    ("visibility", "is_loopback", "status"),
    [
        ("local", True, 200),
        ("local", False, 404),
        ("on", True, 200),
        ("on", False, 200),
        ("off", True, 404),
        ("off", False, 404),
    ],
)
@pytest.mark.parametrize("path", ["/status", "/status.json"])
def test_names_of_tables_are_shown_where_the_port_is_this_machine_s_or_when_told(
    serve: Serve, visibility: Visibility, is_loopback: bool, status: int, path: str
) -> None:
    answer = httpx.get(serve(visibility, is_loopback=is_loopback) + path)

    assert answer.status_code == status
    assert ("--status-page" in answer.text) == (status == 404)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("", 421),
    ],
)
def test_a_site_that_calls_itself_this_machine_is_told_nothing(
    serve: Serve, host: str, status: int
) -> None:
    uri = serve()

    for path in ("/status", "/status.json"):
        assert httpx.get(uri + path, headers={"host": host}).status_code == status


def test_the_other_routes_are_for_everybody(serve: Serve) -> None:
    uri = serve("off")

    for path in ("/healthz", "/readyz", "/metrics"):
        assert httpx.get(uri + path, headers={"host": "evil.example"}).status_code == 200


def test_the_port_takes_nothing(serve: Serve) -> None:
    assert httpx.post(f"{serve()}/status", content=b"x").status_code == 405


def test_html_that_is_marked_as_such_is_not_escaped_again() -> None:
    assert element("p", Html("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
