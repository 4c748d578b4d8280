"""Any catalog that PyIceberg has a client for: SQL, REST, Glue, Hive, DynamoDB, BigQuery, …"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pyiceberg.catalog import Catalog as Client
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.typedef import RecursiveDict
from pyiceberg.utils.config import Config as LibraryConfig
from pyiceberg.utils.config import merge_config

from floeberg.process.storage import StorageCache
from floeberg.process.storage.renewals import CredentialSource, Renewals
from floeberg.protocol.errors import BadConfig, FloebergError, NotATable, UnknownTable
from floeberg.protocol.storage import StorageConfig, StorageFactory
from floeberg.protocol.suggestions import nearest
from floeberg.server.catalogs.bounded_calls import DEADLINE_SECONDS, BoundedCalls
from floeberg.server.catalogs.catalog import CREDENTIAL_SECONDS, LoadedTable
from floeberg.server.catalogs.file_properties import file_properties
from floeberg.server.catalogs.foreign_errors import NOT_FOUND, catalog_error
from floeberg.server.catalogs.lending import Lending
from floeberg.server.catalogs.metadata_cache import MetadataCache
from floeberg.server.catalogs.pointer_io import IMPLEMENTATION, MetadataPointer
from floeberg.server.catalogs.rest_tables import RestTable, RestTables
from floeberg.server.catalogs.secrets import SecretValues

T = TypeVar("T")

# deeper than any catalog nests; a catalog that lists a namespace below itself must not hold us up
_MAX_DEPTH = 16
_ASKED_NAMESPACES = 3  # for a suggestion


class PyIcebergCatalog:
    """A catalog behind PyIceberg; implements `Catalog`.

    `properties` are what `pyiceberg.catalog.load_catalog` takes, `type` among them; what
    PyIceberg's own configuration (its file, `PYICEBERG_CATALOG__…` in the environment) has for
    `name` fills in what is missing, so that secrets need not be in ours. Those that reach files
    (`s3.…`, …) go to the table's storage, with what the catalog lends. `known_as` is the name that
    the tables are registered under, where it isn't `name` (a SQL catalog keys its rows by it).
    Every call to the catalog has `deadline_seconds`. Nothing is connected before the first call.
    What a REST catalog lends for files is renewed as `renewals` say.
    """

    def __init__(
        self,
        name: str,
        properties: Mapping[str, object],
        rebase: Mapping[str, str] | None = None,
        *,
        known_as: str | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
        storage_factory: StorageFactory | None = None,
        renewals: Renewals | None = None,
    ) -> None:
        self._name = name
        self._known_as = known_as or name
        self._properties = _with_library_config(self._known_as, properties)
        self._rebase = dict(rebase or {})
        self._secrets = SecretValues(self._properties)
        self._deadline_seconds = deadline_seconds
        self._calls = BoundedCalls(f"catalog-{name}", deadline_seconds)
        self._open_storage = storage_factory or StorageCache()
        self.metadata_cache = MetadataCache()
        self.renewals = renewals or Renewals(int(CREDENTIAL_SECONDS * 1000))
        self._lending = Lending(name, self._rebase, self._ask_rest, self.renewals)
        self._client: Client | None = None
        _check(name, self._properties)

    @property
    def name(self) -> str:
        return self._name

    @property
    def kind(self) -> str:
        return str(self._properties.get("type", "pyiceberg"))

    def close(self) -> None:
        """Close the catalog's connections; the next call opens them again."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def list_tables(self) -> Sequence[tuple[str, ...]]:
        """Return the identifiers of all tables, sorted: one or two requests a namespace, each with
        a deadline of its own."""
        found: set[tuple[str, ...]] = set()
        for namespace in self._namespaces():
            found.update(self._tables(namespace))
        return sorted(found)

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        try:
            # there is a namespace in every catalog but a warehouse
            if len(identifier) < 2 or not all(map(_is_possible, identifier)):
                raise NoSuchTableError(".".join(identifier))
            found = self._call(lambda client: _look_up(client, identifier))
        except NOT_FOUND:
            pass  # outside, so that the library's error is not what the caller's is about
        else:
            return self._loaded(identifier, found)
        raise UnknownTable(".".join(identifier))

    @property
    def is_local(self) -> bool:
        """Where a table's metadata is, the catalog says only when it is asked."""
        return False

    @property
    def suggests_cheaply(self) -> bool:
        """A database in a file here is all that costs no request."""
        return _sqlite_path(self._properties) is not None

    def neighbours(self, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        """Return the tables of the same namespace, or of a few others beside it."""
        namespace = identifier[:-1]
        if not all(map(_is_possible, namespace)):
            return ()
        tables = self._tables(namespace) if namespace else ()
        if tables:
            return tables
        beside = {".".join(n): n for n in self._children(namespace[:-1])}
        near = nearest(".".join(namespace), beside, n=_ASKED_NAMESPACES)
        asked = near or list(beside)[:_ASKED_NAMESPACES]
        return [table for name in asked for table in self._tables(beside[name])]

    def lend(
        self, identifier: tuple[str, ...], table_uuid: str | None, refused: str | None = None
    ) -> StorageConfig:
        found = self._lending.lend(identifier, table_uuid, refused)
        if found is None:
            self.load(identifier)  # for one that another coordinator has loaded
            found = self._lending.lend(identifier, table_uuid, refused)
        if found is None:
            raise UnknownTable(".".join(identifier))
        return found

    def _loaded(self, identifier: tuple[str, ...], found: _Found) -> LoadedTable:
        source: CredentialSource | None = None
        if found.answer is None:
            config = StorageConfig(file_properties(found.properties), self._rebase)
        else:
            config, source = self._lending.take(identifier, found.answer, found.properties)
        location = found.metadata_location
        if found.metadata is not None:
            where = location or f"the answer of catalog {self._name!r}"
            metadata = self.metadata_cache.parse(found.metadata, location, where)
        elif location is not None:
            metadata = self.metadata_cache.load(self._open_storage(config), location)
        else:
            raise NotATable(f"catalog {self._name!r} has no metadata for {'.'.join(identifier)}")
        return LoadedTable(self._name, identifier, metadata, location, config, source)

    def _namespaces(self) -> set[tuple[str, ...]]:
        pending = list(self._children(()))
        found: set[tuple[str, ...]] = set()
        while pending:
            namespace = pending.pop()
            # some catalogs list all levels at once, so a namespace may come twice
            if namespace not in found and len(namespace) <= _MAX_DEPTH:
                found.add(namespace)
                pending += self._children(namespace)
        return found

    def _children(self, namespace: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        try:
            return self._call(lambda client: client.list_namespaces(namespace))
        except NOT_FOUND as exc:
            if namespace:
                return ()  # dropped meanwhile
            # the catalog's root, the warehouse that it was asked for, is not there
            error = catalog_error(self._name, exc, self._secrets)
        raise error from error.__cause__

    def _tables(self, namespace: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        try:
            return self._call(lambda client: client.list_tables(namespace))
        except NOT_FOUND:
            return ()

    def _call(self, call: Callable[[Client], T]) -> T:
        """Return what `call` returns, within the deadline; raises floeberg's errors, and
        PyIceberg's `NOT_FOUND`, whose meaning only the caller knows."""
        try:
            return self._calls.run(lambda: call(self._connected()))
        except (FloebergError, *NOT_FOUND):
            raise
        except Exception as exc:  # the library's edge: see `foreign_errors`
            if isinstance(exc, TimeoutError):
                self._client = None  # the next call tries new connections
            error = catalog_error(self._name, exc, self._secrets)
        raise error from error.__cause__

    def _ask_rest(self, request: Callable[[RestTables], T]) -> T:
        def call(client: Client) -> T:
            assert isinstance(client, RestTables), "nobody else lends"
            return request(client)

        return self._call(call)

    def _connected(self) -> Client:
        """Return the client, made at the first call. Two threads that make it at once both may."""
        client = self._client
        if client is None:
            client = self._connect()
            # Hive's client has one connection, in which two calls would get mixed up
            self._client = None if _kind(self._properties) == "hive" else client
        return client

    def _connect(self) -> Client:
        try:
            return _open_client(self._known_as, self._properties, self._deadline_seconds)
        except Exception as exc:  # the library's edge, as in `_call`
            error = catalog_error(self._name, exc, self._secrets, opening=True)
        raise error from error.__cause__


@dataclass(frozen=True, slots=True)
class _Found:
    """What a catalog said of a table: its metadata, or where that is, or both; and a REST catalog's
    whole answer."""

    metadata: object | None
    metadata_location: str | None
    properties: Mapping[str, object] = field(repr=False)
    """All those of the catalog, or of the table's files."""
    answer: RestTable | None = None


def _open_client(name: str, properties: Mapping[str, object], read_seconds: float) -> Client:
    ours: dict[str, Any] = {**properties, "py-io-impl": IMPLEMENTATION}
    if _kind(ours) == "rest" and "py-catalog-impl" not in ours:
        return RestTables(name, read_seconds, **ours)
    return load_catalog(name, **ours)


def _look_up(client: Client, identifier: tuple[str, ...]) -> _Found:
    if isinstance(client, RestTables):
        answer = client.load_answer(identifier)
        return _Found(answer.metadata, answer.metadata_location, client.properties, answer)
    try:
        table = client.load_table(identifier)
    except MetadataPointer as pointer:
        return _Found(None, pointer.location, client.properties)
    # a catalog of another's making, which did not use the FileIO that it was given
    document: object = json.loads(table.metadata.model_dump_json())
    return _Found(document, table.metadata_location, table.io.properties)


def _is_possible(part: str) -> bool:
    """Tell whether a part of a name can be one: some catalogs put it in a URL, where dots would
    lead elsewhere, and join the parts of a namespace by a control character."""
    return part not in ("", ".", "..") and part.isprintable()


def _kind(properties: Mapping[str, object]) -> str:
    kind = str(properties.get("type") or "").lower()
    inferred = "rest" if str(properties.get("uri") or "").startswith("http") else ""
    return kind or inferred


def _with_library_config(name: str, properties: Mapping[str, object]) -> dict[str, object]:
    given = {key: value for key, value in properties.items() if value is not None}
    known: RecursiveDict = LibraryConfig().get_catalog_config(name) or {}
    merged: dict[str, object] = {**merge_config(known, cast(RecursiveDict, given))}
    if _kind(merged) in ("sql", "in-memory"):
        # a reader makes no tables, and looks whether a pooled connection still lives
        merged = {"init_catalog_tables": "false", "pool_pre_ping": "true", **merged}
    return merged


def _check(name: str, properties: Mapping[str, object]) -> None:
    """Refuse a database that SQLite would make on the spot, empty, instead of reporting it."""
    path = _sqlite_path(properties)
    if path is None:
        return
    if path in ("", ":memory:"):
        raise BadConfig(
            f"catalog {name!r} is in memory, where only the process that made it can see it: give"
            " it a file, uri sqlite:////path/catalog.db"
        )
    if not path.startswith("file:") and not os.path.isfile(path.partition("?")[0]):
        raise BadConfig(f"catalog {name!r}: there is no database {path!r}")


def _sqlite_path(properties: Mapping[str, object]) -> str | None:
    """Return the path of the SQLite database that the catalog is kept in, None for any other."""
    if _kind(properties) not in ("sql", "in-memory"):
        return None
    uri = str(properties.get("uri") or "sqlite:///:memory:")
    scheme, _, path = uri.partition(":///")
    return path if scheme.startswith("sqlite") else None
