"""What a REST client asks of a catalog before it plans: configuration, namespaces, tables.

All of it is read-only. Storage properties are not among what is told: they hold the coordinator's
own credentials, and clients bring theirs.
"""

from __future__ import annotations

from urllib.parse import quote

from floeberg.protocol.types import Json
from floeberg.server.catalogs import Catalog, Catalogs
from floeberg.server.rest.errors import NoSuchNamespace

_TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    f"GET {_TABLE}",
    f"HEAD {_TABLE}",
    f"POST {_TABLE}/plan",
    f"GET {_TABLE}/plan/{{plan-id}}",
    f"DELETE {_TABLE}/plan/{{plan-id}}",
    f"POST {_TABLE}/tasks",
)
"""The endpoints that are served, as the configuration names them."""


def configuration(catalogs: Catalogs, warehouse: str | None) -> Json:
    """Return the configuration of the catalog that `warehouse` names, or of the default one.

    Raises `UnknownCatalog`.
    """
    catalog = catalogs.default if warehouse is None else catalogs.get(warehouse)
    return {
        "defaults": {"scan-planning-mode": "server"},
        "overrides": {"prefix": quote(catalog.name, safe="")},
        "endpoints": list(ENDPOINTS),
    }


def list_namespaces(catalog: Catalog, parent: tuple[str, ...]) -> Json:
    """Return the namespaces directly below `parent` that hold tables, or namespaces with tables.

    Raises `NoSuchNamespace` where `parent` is none of them.
    """
    depth = len(parent) + 1
    found = {i[:depth] for i in _below(catalog, parent) if len(i) > depth}
    return {"namespaces": [list(namespace) for namespace in sorted(found)]}


def describe_namespace(catalog: Catalog, namespace: tuple[str, ...]) -> Json:
    """Return a namespace, of which floeberg knows no properties. Raises `NoSuchNamespace`."""
    _below(catalog, namespace)
    return {"namespace": list(namespace), "properties": {}}


def list_tables(catalog: Catalog, namespace: tuple[str, ...]) -> Json:
    """Return the tables directly in `namespace`. Raises `NoSuchNamespace`."""
    found = [i for i in _below(catalog, namespace) if len(i) == len(namespace) + 1]
    return {"identifiers": [{"namespace": list(i[:-1]), "name": i[-1]} for i in found]}


def load_table(catalog: Catalog, identifier: tuple[str, ...]) -> Json:
    """Return a table's metadata, and where it stands. Raises `UnknownTable`."""
    table = catalog.load(identifier)
    answer: dict[str, Json] = {"metadata": table.metadata.to_json(), "config": {}}
    if table.metadata_location is not None:
        answer["metadata-location"] = table.metadata_location
    return answer


def _below(catalog: Catalog, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
    found = [
        identifier
        for identifier in catalog.list_tables()
        if identifier[: len(namespace)] == namespace and len(identifier) > len(namespace)
    ]
    if namespace and not found:
        raise NoSuchNamespace(namespace)
    return found
