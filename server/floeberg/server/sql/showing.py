"""SHOW: the tables, schemas and catalogs that a caller may see, as DuckDB shows its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from floeberg.protocol.errors import BadSql
from floeberg.protocol.suggestions import nearest, quoted
from floeberg.server.access import Caller
from floeberg.server.sql.names import Session, parts_of
from floeberg.server.sql.served_tables import ServedTable, schemas_of, served_tables
from floeberg.server.sql.statements import Kind, Statement
from floeberg.server.sql.types_info import sql_name


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type_) for name, type_ in types.items()])


_TEXT, _TEXTS, _FLAG = pa.string(), pa.list_(pa.string()), pa.bool_()
_SCHEMAS = {
    Kind.SHOW_TABLES: _columns(name=_TEXT),
    Kind.SHOW_ALL_TABLES: _columns(
        database=_TEXT,
        schema=_TEXT,
        name=_TEXT,
        column_names=_TEXTS,
        column_types=_TEXTS,
        temporary=_FLAG,
    ),
    Kind.SHOW_SCHEMAS: _columns(database_name=_TEXT, schema_name=_TEXT, current=_FLAG),
    Kind.SHOW_DATABASES: _columns(database_name=_TEXT),
}


def shown_schema(kind: Kind) -> pa.Schema:
    """Return the columns of a SHOW."""
    return _SCHEMAS[kind]


def show(
    statement: Statement, session: Session, caller: Caller, is_cancelled: Callable[[], bool]
) -> pa.Table:
    """Return the rows of a SHOW, in the order of their names.

    SHOW TABLES has the tables of the session's schema; without one, those of its catalog, each by
    the name that means it there. A schema or a catalog may be named whatever its case. A catalog
    that doesn't answer hides no other; its error is raised where it alone is asked. Raises `BadSql`
    for a schema or a catalog that there is not, and `Cancelled` soon after `is_cancelled` says so.
    """
    rows: Sequence[dict[str, object]]
    match statement.kind:
        case Kind.SHOW_TABLES:
            rows = [{"name": name} for name in sorted(_names(statement, session, caller))]
        case Kind.SHOW_ALL_TABLES:
            rows = list(_all_tables(caller, is_cancelled))
        case Kind.SHOW_SCHEMAS:
            rows = _schemas(statement, session, caller)
        case _:
            assert statement.kind is Kind.SHOW_DATABASES
            rows = [{"database_name": name} for name in sorted(caller.catalogs.names)]
    return pa.Table.from_pylist(list(rows), schema=shown_schema(statement.kind))


def _names(statement: Statement, session: Session, caller: Caller) -> Iterator[str]:
    named = _parts(statement)
    if named:
        catalog, schema, found = _named_schema(named, session, caller)
    else:
        catalog, schema = session.catalog, ".".join(session.schema)
        found = _sorted(caller, catalog)
        schema = _spelled(schema, {t.name.schema for t in found}) or schema
    for served in found:
        if not schema:
            yield ".".join(served.identifier)
        elif served.name.schema == schema:
            yield served.name.table


def _named_schema(
    parts: tuple[str, ...], session: Session, caller: Caller
) -> tuple[str, str, Sequence[ServedTable]]:
    """Return the catalog and the schema, perhaps none, that a name means, and the catalog's
    tables."""
    readings = [(session.catalog, ".".join(parts))]
    catalog = _spelled(parts[0], caller.catalogs.names)
    if catalog is not None:
        readings.insert(0, (catalog, ".".join(parts[1:])))
    known: set[str] = set()
    for catalog, schema in readings:
        found = _sorted(caller, catalog)
        schemas = {t.name.schema for t in found}
        spelled = _spelled(schema, schemas) if schema else ""
        if spelled is not None:
            return catalog, spelled, found
        known |= schemas
    name = ".".join(parts)
    near = nearest(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else "SHOW SCHEMAS lists those there are"
    raise BadSql(f"there is no schema {quoted(name)}; {hint}")


def _schemas(statement: Statement, session: Session, caller: Caller) -> Sequence[dict[str, object]]:
    asked: tuple[str, ...] | None = None
    if named := _parts(statement):
        catalog = _spelled(".".join(named), caller.catalogs.names)
        if catalog is None:
            raise BadSql(
                f"there is no catalog {quoted('.'.join(named))}; there are"
                f" {', '.join(sorted(caller.catalogs.names))}"
            )
        asked = (catalog,)
    current = session.catalog, ".".join(session.schema)
    found = {(t.name.catalog, t.name.schema) for t in served_tables(caller, asked)}
    return [
        {"database_name": each[0], "schema_name": each[1], "current": each == current}
        for each in sorted(found)
    ]


def _all_tables(caller: Caller, is_cancelled: Callable[[], bool]) -> Iterator[dict[str, object]]:
    found = _sorted(caller, None)
    schemas = schemas_of(found, caller, lambda name: False, is_cancelled)
    for served, schema in zip(found, schemas, strict=True):
        if schema is not None:
            yield {
                "database": served.name.catalog,
                "schema": served.name.schema,
                "name": served.name.table,
                "column_names": [field.name for field in schema.fields],
                "column_types": [sql_name(field.type, nested=True) for field in schema.fields],
                "temporary": False,
            }


def _sorted(caller: Caller, catalog: str | None) -> list[ServedTable]:
    found = served_tables(caller, None if catalog is None else (catalog,))
    return sorted(found, key=lambda served: served.name)


def _parts(statement: Statement) -> tuple[str, ...]:
    """Return the name behind FROM, nothing where there is none."""
    tree = statement.tree
    return parts_of(tree) if isinstance(tree, exp.Table) else ()


def _spelled(name: str, known: Sequence[str] | set[str]) -> str | None:
    """Return the one of the `known` names that is meant: as it is written, or else the only one
    that is the same but for the case of letters."""
    if name in known:
        return name
    found = [other for other in known if other.casefold() == name.casefold()]
    return found[0] if len(found) == 1 else None
