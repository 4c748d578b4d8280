"""What a floeberg server serves, as a client sees it: tables, their metadata, and scans of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from floeberg.client.calls import ask
from floeberg.client.connection import Connection
from floeberg.client.credentials import credentials_of
from floeberg.client.hedging import Hedging
from floeberg.client.planned import Reading
from floeberg.client.query import RemoteQuery, row_of
from floeberg.client.scan import RemoteScan
from floeberg.client.sessions import SqlOptions, check_text
from floeberg.client.streams import OnProgress, no_progress
from floeberg.process.calling import ClientTls
from floeberg.protocol.actions import (
    DESCRIBE,
    SNAPSHOTS,
    STATUS,
    TABLES,
    SnapshotList,
    TableDescription,
)
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.expressions.model import Expression
from floeberg.protocol.status import Status

logger = logging.getLogger(__name__)


def connect(
    location: str | Sequence[str],
    token: str | None = None,
    tls_roots: str | Path | None = None,
    *,
    username: str | None = None,
    password: str | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    timeout_seconds: float | None = 60.0,
    hedging: Hedging | None = None,
) -> Lake:
    """Return the tables that the coordinator at `location` (`grpc://host:8815`, `grpc+tls://…`)
    serves.

    Of several coordinators of one fleet the first is asked, and when it is away the next.
    `token` is sent as a bearer token with every call, also to the workers; with `username` and
    `password` instead, a login answers one. `tls_roots` are the certificates to trust, as PEM text
    or the path of a PEM file; without them, the system's. `tls_cert` and `tls_key` are the client's
    own certificate and its key, for servers that ask for one.
    `timeout_seconds` bounds each call but not the streams of rows. With `hedging`, a stream that is
    late is read from another worker as well. Nothing is dialled until the first call.
    """
    if (tls_cert is None) != (tls_key is None):
        raise BadConfig("tls_cert and tls_key go together: give both or neither")
    tls = ClientTls(
        _pem("tls_roots", tls_roots), _pem("tls_cert", tls_cert), _pem("tls_key", tls_key)
    )
    credentials = credentials_of(token, username, password)
    connection = Connection(
        location, credentials=credentials, tls=tls, timeout_seconds=timeout_seconds
    )
    return Lake(connection, hedging)


def _pem(name: str, source: str | Path | None) -> str | None:
    if source is None:
        return None
    if isinstance(source, str) and "-----BEGIN" in source:
        return source
    try:
        return Path(source).read_text(encoding="ascii")
    except UnicodeDecodeError:
        # the cause would show bytes of the file
        raise BadConfig(f"{name} {str(source)!r} is not a PEM file") from None
    except OSError as exc:
        raise BadConfig(f"{name} {str(source)!r} cannot be read: {exc.strerror}") from exc


@dataclass(frozen=True, slots=True)
class TableListing:
    """The tables of a server, sorted, and why those of some catalogs are not among them."""

    tables: list[TableName]
    unlisted: Mapping[str, str]


class Lake:
    """The tables of one server. Use it in a `with` block, or `close()` it; safe to use from several
    threads."""

    def __init__(self, connection: Connection, hedging: Hedging | None = None) -> None:
        self._connection = connection
        self._hedging = hedging

    def __repr__(self) -> str:
        return f"<Lake at {self._connection.location}>"

    def tables(self) -> list[TableName]:
        """Return the names of all tables, sorted; `str(name)` is the dotted form.

        A catalog that could not be listed is logged as a warning; `list_tables` returns it too.
        """
        listing = self.list_tables()
        for catalog, reason in listing.unlisted.items():
            logger.warning("catalog not listed", extra={"catalog": catalog, "error": reason})
        return listing.tables

    def list_tables(self) -> TableListing:
        """Return the names of all tables, and the catalogs that could not be listed."""
        pages = list(ask(self._connection, TABLES))
        entries = [t for page in pages for t in page.tables]
        unlisted = {name: why for page in pages for name, why in page.unlisted.items()}
        catalogs = {t.catalog for t in entries}
        names = (
            # a namespace that is called like a catalog needs the catalog before it
            t.identifier
            if t.is_default_catalog and t.identifier[0] not in catalogs
            else (t.catalog, *t.identifier)
            for t in entries
        )
        return TableListing([TableName(parts) for parts in sorted(names)], unlisted)

    def table(self, name: str | Sequence[str] | TableName) -> RemoteTable:
        """Return one table by name: `db.orders`, `catalog.db.orders`, or the parts of names that
        hold dots, `("db", "orders.2024")`.

        Nothing is asked of the server yet: an unknown name is told by the first call that needs it.
        """
        parsed = name if isinstance(name, TableName) else TableName.parse(name)
        return RemoteTable(self._connection, parsed, self._hedging)

    def sql(
        self,
        text: str,
        parameters: Sequence[Any] | None = None,
        *,
        catalog: str | None = None,
        schema: str | None = None,
        ref: str | None = None,
        snapshot_id: int | None = None,
        as_of: int | str | datetime | None = None,
        timezone: str | None = None,
        on_progress: OnProgress = no_progress,
    ) -> RemoteQuery:
        """Return a query: one SQL statement that reads, with a value for each `?` in it.

        `catalog` and `schema` (`"db"`, or `"a.b"` where namespaces are nested) are where a table is
        looked up whose name doesn't say. At most one of `ref` (a branch or tag), `snapshot_id` and
        `as_of` (ms since the epoch, a datetime with a zone, or its ISO text) says what is read of
        tables for which the statement doesn't. `timezone` is a name of the IANA database, UTC
        without it. `on_progress` is called from reading threads. Raises `BadCommand` and
        `ConflictingSnapshot` at once for what the server need not tell.
        """
        check_text("the statement", text)
        options = SqlOptions.from_arguments(
            catalog=catalog,
            schema=schema,
            ref=ref,
            snapshot_id=snapshot_id,
            as_of=as_of,
            timezone=timezone,
        )
        reading = Reading(self._connection, on_progress=on_progress, hedging=self._hedging)
        return RemoteQuery(text, row_of(parameters), options, reading)

    def status(self) -> Status:
        """Return what the coordinator knows of itself, its catalogs and its workers."""
        (status,) = ask(self._connection, STATUS)
        return status

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class RemoteTable:
    """One table of a server, by name."""

    def __init__(
        self, connection: Connection, name: TableName, hedging: Hedging | None = None
    ) -> None:
        self._connection = connection
        self._hedging = hedging
        self.name = name

    def __repr__(self) -> str:
        return f"<RemoteTable {self.name} at {self._connection.location}>"

    def schema(self) -> pa.Schema:
        """Return the table's current schema, as its rows are read."""
        return self.scan().schema()

    def describe(self) -> TableDescription:
        """Return what the table is like: location, version, Iceberg schema, specs, properties,
        refs."""
        (description,) = ask(self._connection, DESCRIBE, self._body())
        return description

    def snapshots(self) -> SnapshotList:
        """Return the table's snapshots, oldest first, and its branches and tags."""
        (snapshots,) = ask(self._connection, SNAPSHOTS, self._body())
        return snapshots

    def _body(self) -> bytes:
        return dump_json({"table": self.name.to_json()})

    def scan(
        self,
        *,
        filter: str | list[Any] | Expression | None = None,
        select: Iterable[str] | None = None,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | str | datetime | None = None,
        limit: int | None = None,
        ordered: bool = False,
        case_sensitive: bool = True,
        split_size: int | None = None,
        on_progress: OnProgress = no_progress,
    ) -> RemoteScan:
        """Return a scan of the rows of which `filter` is true.

        `filter` is text (`amount > 10 AND region IN ('eu','us')`) or the JSON form. `select` names
        columns in the order wanted; none at all still counts rows. At most one of `snapshot_id`,
        `ref` (a branch or tag) and `as_of` (ms since the epoch, a datetime with a zone, or its ISO
        text) says what to read. `limit` is exact. `ordered` asks for plan order. `on_progress` is
        called from reading threads. Raises `BadCommand`, `BadFilter` and `ConflictingSnapshot` at
        once for what the server need not tell.
        """
        command = ScanCommand.from_arguments(
            self.name,
            filter=filter,
            select=select,
            snapshot_id=snapshot_id,
            ref=ref,
            as_of=as_of,
            limit=limit,
            ordered=ordered,
            case_sensitive=case_sensitive,
            split_size=split_size,
        )
        return RemoteScan(self._connection, command, on_progress=on_progress, hedging=self._hedging)
