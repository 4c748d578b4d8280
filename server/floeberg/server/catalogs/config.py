"""Which catalogs to serve: read from a configuration file's table, or from flags.

In the file, each catalog is a table of its own:

    [catalogs.lake]
    kind = "rest"
    uri = "https://catalog.example/api"
    properties.warehouse = "lake"
    properties.s3.region = "eu-central-1"
    rebase = { "s3://old-bucket" = "s3://new-bucket" }

As a flag the same is `lake=rest:https://catalog.example/api?warehouse=lake&s3.region=eu-central-1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from floeberg.process.storage import StorageCache
from floeberg.process.storage.renewals import Renewals
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.storage import StorageFactory
from floeberg.protocol.suggestions import nearest
from floeberg.server.catalogs.bounded_calls import DEADLINE_SECONDS
from floeberg.server.catalogs.catalog import CREDENTIAL_SECONDS, Catalog
from floeberg.server.catalogs.registry import Catalogs
from floeberg.server.catalogs.warehouse import WarehouseCatalog

WAREHOUSE_KIND = "warehouse"
LIBRARY_KIND = "pyiceberg"
KINDS = (
    WAREHOUSE_KIND,
    "sql",
    "rest",
    "glue",
    "hive",
    "dynamodb",
    "bigquery",
    "in-memory",
    LIBRARY_KIND,
)
"""`warehouse` is a directory or a prefix; the others are PyIceberg's types. `pyiceberg` leaves all
to PyIceberg's own configuration, its catalog of the same name."""

_KEYS = ("kind", "uri", "properties", "rebase", "known_as", "deadline_seconds")
# PyIceberg takes these as tables within tables; all other tables are dotted names, as TOML reads
# them when they aren't quoted
_NESTED_PROPERTIES = ("auth", "ssl")


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """One catalog as configured; the repr shows no property, and no URI, which may hold a
    password."""

    name: str
    kind: str
    uri: str | None = field(default=None, repr=False)
    properties: Mapping[str, object] = field(default_factory=dict, repr=False)
    rebase: Mapping[str, str] = field(default_factory=dict)
    known_as: str | None = None
    deadline_seconds: float = DEADLINE_SECONDS

    def __post_init__(self) -> None:
        where = f"catalogs.{self.name}"
        if not self.name or "." in self.name or "/" in self.name or not self.name.isprintable():
            raise BadConfig(f"{self.name!r} cannot be a catalog's name: it begins table names")
        if self.kind not in KINDS:
            raise BadConfig(f"{where}.kind: {_unknown(self.kind, KINDS)}")
        if self.kind == WAREHOUSE_KIND and not self.uri:
            raise BadConfig(f"{where}.uri: a warehouse needs its directory or prefix")
        if not (math.isfinite(self.deadline_seconds) and self.deadline_seconds > 0):
            raise BadConfig(f"{where}.deadline_seconds must be above 0")


def read_catalogs_table(table: Mapping[str, object]) -> tuple[CatalogConfig, ...]:
    """Return the catalogs that a configuration's `catalogs` table describes, in its order.

    >>> read_catalogs_table({"lake": {"kind": "warehouse", "uri": "/data/lake"}})
    (CatalogConfig(name='lake', kind='warehouse', rebase={}, known_as=None, deadline_seconds=30.0),)
    """
    return tuple(_read_one(name, raw) for name, raw in table.items())


def read_catalog_flag(text: str) -> CatalogConfig:
    """Return the catalog that a flag `NAME=KIND:URI[?key=value&…]` describes.

    Keys and values are percent-decoded, `+` is itself. The keys are the file's (`known_as`,
    `deadline_seconds`) and properties. A URI that holds a `?` goes into the key `uri`,
    percent-encoded. Other users of a machine see flags: secrets are better in a file or in the
    environment.

    >>> read_catalog_flag("lake=sql:sqlite:////data/catalog.db?known_as=default").known_as
    'default'
    """
    name, equals, rest = text.partition("=")
    kind, colon, rest = rest.partition(":")
    if not (equals and colon and name and kind):
        # whatever is there may be secret
        raise BadConfig("a catalog is written NAME=KIND:URI, and then ?key=value&… for properties")
    uri, _, query = rest.partition("?")
    own: dict[str, object] = {"kind": kind, **({"uri": uri} if uri else {})}
    properties: dict[str, object] = {}
    for pair in filter(None, query.split("&")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise BadConfig(f"catalog {name!r}: {unquote(key)!r} has no value: write it key=value")
        target = own if unquote(key) in _KEYS else properties
        target[unquote(key)] = unquote(value)
    return _read_one(name, {**own, "properties": properties})


def configure_catalogs(
    *,
    warehouse: str | None = None,
    flags: Iterable[str] = (),
    table: Mapping[str, object] | None = None,
    rebase: Mapping[str, str] | None = None,
    default: str | None = None,
    storage_factory: StorageFactory | None = None,
    credential_seconds: float = CREDENTIAL_SECONDS,
) -> Catalogs:
    """Return the catalogs that a process was told to serve; none is connected before it is asked.

    `warehouse` is a directory or prefix, served as the catalog `warehouse`; `flags` are as for
    `read_catalog_flag`, `table` as for `read_catalogs_table`. The first of all, in this order, is
    the default unless `default` names another. `rebase` holds for all of them, but for prefixes
    that a catalog has itself. Tables' metadata is read through `storage_factory`. Credentials that
    are lent are renewed `credential_seconds` before they end.
    """
    configs = [CatalogConfig(WAREHOUSE_KIND, WAREHOUSE_KIND, warehouse)] if warehouse else []
    configs += [read_catalog_flag(flag) for flag in flags]
    configs += read_catalogs_table(table or {})
    storages = storage_factory or StorageCache()
    return Catalogs(
        [
            open_catalog(
                replace(c, rebase={**(rebase or {}), **c.rebase}), storages, credential_seconds
            )
            for c in configs
        ],
        default,
    )


def open_catalog(
    config: CatalogConfig,
    storage_factory: StorageFactory,
    credential_seconds: float = CREDENTIAL_SECONDS,
) -> Catalog:
    """Return the catalog that `config` describes, not yet connected."""
    if config.kind == WAREHOUSE_KIND:
        properties = {key: str(value) for key, value in config.properties.items()}
        return WarehouseCatalog(
            config.name,
            config.uri or "",
            properties,
            config.rebase,
            storage_factory=storage_factory,
        )
    # PyIceberg takes a second to import, which a warehouse need not wait for
    from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog

    library: dict[str, object] = {**config.properties}
    if config.uri is not None:
        library["uri"] = config.uri
    if config.kind != LIBRARY_KIND:
        library["type"] = config.kind
    return PyIcebergCatalog(
        config.name,
        library,
        config.rebase,
        known_as=config.known_as,
        deadline_seconds=config.deadline_seconds,
        storage_factory=storage_factory,
        renewals=Renewals(int(credential_seconds * 1000)),
    )


def _read_one(name: str, raw: object) -> CatalogConfig:
    where = f"catalogs.{name}"
    if not isinstance(raw, Mapping):
        raise BadConfig(f"{where} must be a table with the keys {', '.join(_KEYS)}")
    for key in raw:
        if key not in _KEYS:
            hint = " (PyIceberg's properties go under `properties`)"
            raise BadConfig(f"{where}: {_unknown(str(key), _KEYS)}{hint}")
    kind = _text(raw, "kind", where)
    if kind is None:
        raise BadConfig(f"{where}.kind is missing; it is one of {', '.join(KINDS)}")
    return CatalogConfig(
        name=name,
        kind=kind,
        uri=_text(raw, "uri", where),
        properties=_flat_properties(_table(raw, "properties", where), where),
        rebase={str(k): str(v) for k, v in _table(raw, "rebase", where).items()},
        known_as=_text(raw, "known_as", where),
        deadline_seconds=_seconds(raw, where),
    )


def _text(raw: Mapping[str, object], key: str, where: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise BadConfig(f"{where}.{key} must be text")
    return value


def _table(raw: Mapping[str, object], key: str, where: str) -> Mapping[str, object]:
    value = raw.get(key, {})
    if not isinstance(value, Mapping):
        raise BadConfig(f"{where}.{key} must be a table")
    return value


def _seconds(raw: Mapping[str, object], where: str) -> float:
    value = raw.get("deadline_seconds", DEADLINE_SECONDS)
    try:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            return float(value)
    except ValueError:
        pass
    raise BadConfig(f"{where}.deadline_seconds must be a number of seconds, not {value!r}")


def _flat_properties(
    table: Mapping[str, object], where: str, prefix: str = ""
) -> dict[str, object]:
    """Return properties by their dotted names, as text: what TOML reads as a table for
    `s3.region = "eu"` is PyIceberg's property `s3.region`."""
    out: dict[str, object] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in _NESTED_PROPERTIES:
            out.update(_flat_properties(value, where, f"{name}."))
        elif isinstance(value, bool):
            out[name] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            out[name] = str(value)
        elif isinstance(value, Mapping):
            out[name] = value
        else:
            raise BadConfig(f"{where}.properties.{name} must be text, a number, or true or false")
    return out


def _unknown(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"{name!r} is not known; {hint}"
