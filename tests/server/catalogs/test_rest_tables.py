"""What a REST catalog may send that the one in the other tests does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from floeberg.process.storage.credentials import properties_for
from floeberg.protocol.errors import AccessDenied, CatalogUnavailable, UnknownTable
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.documents import empty_metadata

LOCATION = "s3://lake/db/t"
METADATA = empty_metadata(
    LOCATION,
    format_version=3,
    next_row_id=0,
    schemas=[
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "v", "required": False, "type": "variant"}],
        }
    ],
    from_the_future=[1, 2],
)
LOADED = {"metadata-location": f"{LOCATION}/metadata/v1.metadata.json", "metadata": METADATA}
Answer = tuple[int, dict[str, Any] | str]


@contextmanager
def rest_server(answer: Callable[[str], Answer]) -> Iterator[str]:
    """Serve what `answer` gives for a path, on a free port, as a REST catalog would."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = (200, {"defaults": {}, "overrides": {}})
            if not self.path.startswith("/v1/config"):
                status, body = answer(self.path)
            raw = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served(answer: Callable[[str], Answer], **properties: str) -> Iterator[PyIcebergCatalog]:
    with rest_server(answer) as uri:
        catalog = PyIcebergCatalog(
            "lake", {"type": "rest", "uri": uri, **properties}, deadline_seconds=10
        )
        yield catalog
        catalog.close()


def test_metadata_is_taken_as_it_was_sent():
    with served(lambda path: (200, LOADED)) as catalog:
        table = catalog.load(("db", "t"))

    assert table.metadata_location == LOADED["metadata-location"]
    # PyIceberg has no variant, and drops what it does not know
    assert table.metadata.to_json() == METADATA


def test_names_are_encoded_once():
    paths = []

    def answer(path: str) -> Answer:
        paths.append(path)
        return 200, LOADED

    with served(answer) as catalog:
        catalog.load(("a b", "c%2Fd", "t/x?y#z"))

    assert paths == ["/v1/namespaces/a%20b%1Fc%252Fd/tables/t%2Fx%3Fy%23z"]


def test_lent_credentials_go_before_the_configured_ones_for_their_prefixes():
    answer = {
        **LOADED,
        "config": {"s3.region": "eu-north-1", "token": "the catalog's", "client.region": "x"},
        "storage-credentials": [
            {"prefix": "s3://lake", "config": {"s3.access-key-id": "wide"}},
            {
                "prefix": "s3://lake/db/",
                "config": {"s3.access-key-id": "lent", "s3.secret-access-key": "lent-secret"},
            },
        ],
    }
    configured = {
        "s3.endpoint": "http://store:9000",
        "s3.access-key-id": "own",
        "s3.session-token": "own-token",
        "client.profile-name": "own-profile",
    }
    with served(lambda path: (200, answer), **configured) as catalog:
        table = catalog.load(("db", "t"))

    everywhere = {
        "s3.endpoint": "http://store:9000",
        "s3.region": "eu-north-1",
        "client.region": "x",
    }
    own = {key: value for key, value in configured.items() if key != "s3.endpoint"}
    assert properties_for("s3://lake/db/t/a.parquet", table.storage) == {
        **everywhere,
        "s3.access-key-id": "lent",
        "s3.secret-access-key": "lent-secret",
    }
    assert properties_for("s3://lake/other/b.parquet", table.storage) == {
        **everywhere,
        "s3.access-key-id": "wide",
    }
    assert properties_for("s3://elsewhere/c.parquet", table.storage) == {**everywhere, **own}
    assert "lent-secret" not in repr(table)


def test_an_expired_token_is_renewed_once():
    asked = []

    def answer(path: str) -> Answer:
        asked.append(path)
        return (401, {}) if len(asked) == 1 else (200, LOADED)

    with served(answer) as catalog:
        assert catalog.load(("db", "t")).metadata.format_version == 3
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, {}, AccessDenied),
        (403, {"error": {"message": "no", "type": "Forbidden", "code": 403}}, AccessDenied),
        (419, {}, AccessDenied),
        (500, {}, CatalogUnavailable),
        (503, {}, CatalogUnavailable),
        (200, {}, CatalogUnavailable),
        (200, {"metadata": "none"}, CatalogUnavailable),
        (200, '{"metadata": {', CatalogUnavailable),
        (200, "<html>a proxy</html>", CatalogUnavailable),
    ],
)
def test_what_is_no_table_is_a_named_error(status, body, error):
    with served(lambda path: (status, body)) as catalog, pytest.raises(error, match="'lake'"):
        catalog.load(("db", "t"))


@pytest.mark.parametrize("status", [400, 404])
def test_a_name_that_the_server_does_not_know_or_allow_is_an_unknown_table(status):
    def answer(path: str) -> Answer:
        if "/tables/" in path:
            return status, {}
        if path.endswith("/tables"):
            return 200, {"identifiers": [{"namespace": ["db"], "name": "tt"}]}
        return 200, {"namespaces": [["db"]]}

    with served(answer) as catalog:
        with pytest.raises(UnknownTable):
            catalog.load(("db", "t"))
        assert catalog.neighbours(("db", "t")) == [("db", "tt")]
        assert not catalog.suggests_cheaply


def test_a_server_that_restarts_is_asked_again():
    asked = []

    def answer(path: str) -> Answer:
        asked.append(path)
        return (503, {}) if len(asked) == 1 else (200, LOADED)

    with served(answer) as catalog:
        assert catalog.load(("db", "t")).metadata.format_version == 3


def test_every_level_of_namespaces_is_listed_once_whatever_the_server_repeats():
    def answer(path: str) -> Answer:
        if path.startswith("/v1/namespaces?") or path == "/v1/namespaces":
            # it takes no notice of the parent, so every level lists all
            return 200, {"namespaces": [["a"], ["a", "b"]]}
        table = path.split("/")[3].replace("%1F", "-") + "-table"
        namespace = path.split("/")[3].split("%1F")
        return 200, {"identifiers": [{"namespace": namespace, "name": table}]}

    with served(answer) as catalog:
        assert catalog.list_tables() == [("a", "a-table"), ("a", "b", "a-b-table")]
