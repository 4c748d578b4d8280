"""A catalog that lends credentials, as tests need it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from botocore.exceptions import ClientError

from tests.support.lake import FileLayout, TableWriter, required, schema
from tests.support.services import LENT, LENT_BUCKET, Credentials, Seaweed


def lent_bucket(seaweed: Seaweed) -> str:
    """Return the bucket of which each of `LENT` reads a part, made if need be."""
    try:
        seaweed.make_bucket(LENT_BUCKET)
    except ClientError as error:
        if "BucketAlready" not in str(error):
            raise
    return LENT_BUCKET


def s3_identity(credentials: Credentials, expires_at_ms: int | None = None) -> dict[str, str]:
    """Return credentials as a catalog lends them."""
    ends = {} if expires_at_ms is None else {"s3.session-token-expires-at-ms": str(expires_at_ms)}
    return {
        "s3.access-key-id": credentials.access_key,
        "s3.secret-access-key": credentials.secret_key,
        **ends,
    }


class ExpiringStore:
    """A proxy before the store that refuses the keys in `expired`, as S3 refuses a token whose time
    is over. `properties` reach the store by it, without any credentials."""

    def __init__(self, seaweed: Seaweed) -> None:
        self.expired: set[str] = set()
        self.requests = 0
        self.asked_with: list[str] = []
        """The key of each request, in their order."""
        self._target = seaweed.s3_endpoint.removeprefix("http://")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.properties = {
            "s3.endpoint": f"http://127.0.0.1:{self._server.server_port}",
            "s3.region": "us-east-1",
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                store.requests += 1
                signed = self.headers.get("Authorization", "")
                key = signed.partition("Credential=")[2].partition("/")[0]
                store.asked_with.append(key)
                if key in store.expired:
                    body = b"<Error><Code>ExpiredToken</Code><Message>It ended</Message></Error>"
                    self._answer(400, {}, body)
                    return
                upstream = HTTPConnection(store._target)
                # as it was signed
                upstream.putrequest(
                    self.command, self.path, skip_host=True, skip_accept_encoding=True
                )
                for name, value in self.headers.items():
                    upstream.putheader(name, value)
                upstream.endheaders()
                response = upstream.getresponse()
                headers = {k: v for k, v in response.getheaders() if k.lower() in _PASSED}
                length = response.getheader("Content-Length")
                self._answer(response.status, headers, response.read(), length)
                upstream.close()

            do_HEAD = do_GET  # noqa: N815 (the name that http.server calls)

            def _answer(
                self, status: int, headers: dict[str, str], body: bytes, length: str | None = None
            ) -> None:
                is_head = self.command == "HEAD"
                self.send_response(status)
                self.send_header("Content-Length", (length if is_head else None) or str(len(body)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if not is_head:
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        return Handler

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.01)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


_PASSED = ("content-type", "content-range", "etag", "last-modified", "accept-ranges")


@contextmanager
def expiring_store(seaweed: Seaweed) -> Iterator[ExpiringStore]:
    """Run such a proxy until the block ends."""
    store = ExpiringStore(seaweed)
    thread = Thread(target=store.serve, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.close()
        thread.join()


_TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
_ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    f"GET {_TABLE}",
)
Lent = Sequence[tuple[str, Mapping[str, str]]]


@dataclass
class LendingCatalog:
    """A REST catalog of one table, `db.t`, that lends credentials by prefix, and counts.

    `lends` are those of each answer from now on, but for renewals where `renews_with` says others;
    `status` and `renewing_status` other than 200 are how it fails, with 307 by sending requests on
    to the server `moved_to`. Without `renews`, it has no endpoint for credentials alone.
    `delegations` are what clients said that they want lent.
    """

    metadata: Mapping[str, object]
    metadata_location: str
    lends: Lent = ()
    config: Mapping[str, str] = field(default_factory=dict)
    renews: bool = True
    renews_with: Lent | None = None
    status: int = 200
    renewing_status: int = 200
    moved_to: str = ""
    loads: int = 0
    renewals: int = 0
    delegations: set[str | None] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    uri: str = ""

    def answer(self, path: str) -> tuple[int, object]:
        """Return the status and the JSON for a request."""
        if path.startswith("/v1/config"):
            more = [f"GET {_TABLE}/credentials"] if self.renews else []
            return 200, {"defaults": {}, "overrides": {}, "endpoints": [*_ENDPOINTS, *more]}
        self.paths.append(path)
        if path.endswith("/credentials"):
            self.renewals += 1
            lends = self.lends if self.renews_with is None else self.renews_with
            status = self.status if self.renewing_status == 200 else self.renewing_status
            return status, {"storage-credentials": _to_json(lends)}
        if not path.endswith("/namespaces/db/tables/t"):
            return 404, {}
        self.loads += 1
        return self.status, {
            "metadata-location": self.metadata_location,
            "metadata": self.metadata,
            "config": dict(self.config),
            "storage-credentials": _to_json(self.lends),
        }


def _to_json(lends: Lent) -> list[object]:
    return [{"prefix": prefix, "config": dict(own)} for prefix, own in lends]


@contextmanager
def lending_catalog(
    metadata: Mapping[str, object], metadata_location: str
) -> Iterator[LendingCatalog]:
    """Serve such a catalog on loopback until the block ends."""
    catalog = LendingCatalog(metadata, metadata_location)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = catalog.answer(self.path)
            if not self.path.startswith("/v1/config"):
                catalog.delegations.add(self.headers.get("X-Iceberg-Access-Delegation"))
            catalog.headers.append(dict(self.headers))
            raw = json.dumps(body).encode()
            self.send_response(status)
            if status == 307:
                self.send_header("Location", catalog.moved_to + self.path)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        catalog.uri = f"http://127.0.0.1:{server.server_port}"
        try:
            yield catalog
        finally:
            server.shutdown()
            thread.join()


class SpreadTable(TableWriter):
    """A table whose data, deletes and metadata are under prefixes of their own, those of `LENT`."""

    def new_location(self, name: str) -> str:
        folder, _, file = name.partition("/")
        return super().new_location(f"deletes/{file}" if "deletes" in file else f"{folder}/{file}")


SPREAD_IDS = [i for i in range(4000) if i % 1000 not in (0, 7)]
"""The ids that `write_spread_table` leaves."""


def write_spread_table(directory: Path, seaweed: Seaweed) -> TableWriter:
    """Write such a table into `LENT_BUCKET`: four files of a thousand rows, of which two are
    deleted in each, by a position delete and by an equality delete. Data files have row groups of
    250 rows and are larger than what is fetched to open one."""
    location = f"s3://{lent_bucket(seaweed)}"
    columns = schema({"id": required("long"), "place": "int", "filling": "string"})
    table = SpreadTable.create(directory, columns, location=location)
    layout = FileLayout(codec="none", row_group_size=250, parquet={"use_dictionary": False})
    filling = "x" * 1000
    for first in range(0, 4000, 1000):
        rows = [
            {"id": i, "place": i % 1000, "filling": filling} for i in range(first, first + 1000)
        ]
        files = table.append(rows, layout=layout)
        table.delete_positions({files[0]: [0]})
    table.delete_equal([{"place": 7}], ["place"])
    paths = [path for path in directory.rglob("*") if path.is_file()]
    seaweed.put(LENT_BUCKET, {str(p.relative_to(directory)): p.read_bytes() for p in paths})
    return table


def lent_by_prefix(ends_ms: int | None = None, again: Sequence[str] = ()) -> Lent:
    """Return credentials for the files of such a table; for the prefixes `again` others."""
    return [
        (
            f"s3://{LENT_BUCKET}/{prefix}/",
            s3_identity(LENT[f"{prefix}-again" if prefix in again else prefix], ends_ms),
        )
        for prefix in ("data", "deletes", "metadata")
    ]
