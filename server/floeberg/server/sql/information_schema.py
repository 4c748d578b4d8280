"""`information_schema`: catalogs, tables and columns as views that SQL can ask for.

They hold what their reader may see, in all catalogs, and tables as they are now. The columns are
DuckDB's, which has more than the standard; those that tell of what there is not here are null.

Spec: ISO/IEC 9075-11, "Information Schema".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from floeberg.protocol.arrow import arrow_schema
from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.expressions.model import And, Expression, Op, Predicate
from floeberg.protocol.schema import Schema
from floeberg.protocol.suggestions import quoted
from floeberg.protocol.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimeType,
    Type,
)
from floeberg.server.access import Caller
from floeberg.server.sql.listed_names import SqlName
from floeberg.server.sql.served_tables import ServedTable, schemas_of, served_tables
from floeberg.server.sql.types_info import sql_name

_TEXT, _NUMBER = StringType(), IntType()


def _view(text: str = "", **others: Type) -> Schema:
    """Return a schema of the names in `text`, of text but for `others`."""
    fields = (NestedField(i, n, others.get(n, _TEXT)) for i, n in enumerate(text.split(), start=1))
    return Schema(tuple(fields))


_NUMBERS = (
    "ordinal_position character_maximum_length character_octet_length numeric_precision"
    " numeric_precision_radix numeric_scale datetime_precision interval_precision"
)
_FLAGS = "is_self_referencing is_identity identity_cycle is_updatable"
VIEWS: Mapping[str, Schema] = {
    "schemata": _view(
        "catalog_name schema_name schema_owner default_character_set_catalog"
        " default_character_set_schema default_character_set_name sql_path"
    ),
    "tables": _view(
        "table_catalog table_schema table_name table_type self_referencing_column_name"
        " reference_generation user_defined_type_catalog user_defined_type_schema"
        " user_defined_type_name is_insertable_into is_typed commit_action TABLE_COMMENT"
    ),
    "columns": _view(
        "table_catalog table_schema table_name column_name ordinal_position column_default"
        " is_nullable data_type character_maximum_length character_octet_length numeric_precision"
        " numeric_precision_radix numeric_scale datetime_precision interval_type"
        " interval_precision character_set_catalog character_set_schema character_set_name"
        " collation_catalog collation_schema collation_name domain_catalog domain_schema"
        " domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema scope_name"
        " maximum_cardinality dtd_identifier is_self_referencing is_identity identity_generation"
        " identity_start identity_increment identity_maximum identity_minimum identity_cycle"
        " is_generated generation_expression is_updatable COLUMN_COMMENT",
        **dict.fromkeys(_NUMBERS.split(), _NUMBER),
        **dict.fromkeys(_FLAGS.split(), BooleanType()),
        maximum_cardinality=LongType(),
    ),
    "views": _view(
        "table_catalog table_schema table_name view_definition check_option is_updatable"
        " is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into"
    ),
}
"""The views' columns, by the views' names in lower case; there are no rows of `views`."""


@dataclass(frozen=True, slots=True)
class AskedNames:
    """The names that are asked for, None for all. They are those of the views, in their case."""

    catalogs: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    tables: frozenset[str] | None = None

    @classmethod
    def of(cls, filter: Expression) -> AskedNames:
        """Return the names that a filter on one of the views asks for, where it plainly says so:
        others that it is not true of may be among them."""
        return cls(
            _asked(filter, "table_catalog", "catalog_name"),
            _asked(filter, "table_schema", "schema_name"),
            _asked(filter, "table_name"),
        )

    def have(self, name: SqlName) -> bool:
        return (self.schemas is None or name.schema in self.schemas) and (
            self.tables is None or name.table in self.tables
        )


EVERYTHING = AskedNames()


def _asked(filter: Expression, *columns: str) -> frozenset[str] | None:
    match filter:
        case And(operands):
            found = [names for o in operands if (names := _asked(o, *columns)) is not None]
            return frozenset.intersection(*found) if found else None
        case Predicate(Op.EQ | Op.IN, column, literals) if column in columns:
            return frozenset(literal for literal in literals if isinstance(literal, str))
        case _:
            return None


def information_schema(view: str) -> Schema:
    """Return the columns of a view. Raises `UnsupportedSql` for one that is not among them."""
    schema = VIEWS.get(view)
    if schema is None:
        raise UnsupportedSql(
            f"information_schema.{quoted(view)} is not served; it has {', '.join(VIEWS)}"
        )
    return schema


def information_schema_table(
    view: str,
    caller: Caller,
    is_cancelled: Callable[[], bool],
    asked: AskedNames = EVERYTHING,
    columns: Collection[str] | None = None,
) -> pa.Table:
    """Return the rows of a view, in the order of their names: all, or only those that are `asked`
    for. `columns` are those that are asked for of it, or all, in the order of the view.

    A catalog that doesn't answer hides no other; its error is raised where it is the only one
    asked for, or none is left. `columns` loads each table, several at a time: one that can't be
    read has no row, and its error is raised where its name was asked for. Raises `UnsupportedSql`
    as `information_schema` does, and `Cancelled` soon after `is_cancelled` says so.
    """
    schema = information_schema(view)
    told = [f for f in schema.fields if columns is None or f.name in columns]
    rows: list[dict[str, Any]] = []
    if view != "views":
        found = sorted(
            (t for t in served_tables(caller, asked.catalogs) if asked.have(t.name)),
            key=lambda served: served.name,
        )
        rows = _ROWS[view](found, caller, asked, is_cancelled)
    arrow = arrow_schema(Schema(tuple(told)))
    arrays = [
        pa.array([row[field.name] for row in rows], field.type)
        if rows and field.name in rows[0]
        else pa.nulls(len(rows), field.type)
        for field in arrow
    ]
    return pa.Table.from_arrays(arrays, schema=arrow)


def _schemata(
    found: Sequence[ServedTable],
    caller: Caller,
    asked: AskedNames,
    is_cancelled: Callable[[], bool],
) -> list[dict[str, Any]]:
    names = dict.fromkeys((t.name.catalog, t.name.schema) for t in found)
    return [{"catalog_name": catalog, "schema_name": schema} for catalog, schema in names]


def _tables(
    found: Sequence[ServedTable],
    caller: Caller,
    asked: AskedNames,
    is_cancelled: Callable[[], bool],
) -> list[dict[str, Any]]:
    facts = {"table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
    return [_named(served.name) | facts for served in found]


def _columns(
    found: Sequence[ServedTable],
    caller: Caller,
    asked: AskedNames,
    is_cancelled: Callable[[], bool],
) -> list[dict[str, Any]]:
    by_name = asked.tables or ()
    schemas = schemas_of(found, caller, lambda name: name.table in by_name, is_cancelled)
    rows = []
    for served, schema in zip(found, schemas, strict=True):
        named = _named(served.name)
        for place, field in enumerate(() if schema is None else schema.fields, start=1):
            rows.append(named | _column(field, place))
    return rows


_ROWS = {"schemata": _schemata, "tables": _tables, "columns": _columns}


def _named(name: SqlName) -> dict[str, Any]:
    return {"table_catalog": name.catalog, "table_schema": name.schema, "table_name": name.table}


def _column(field: NestedField, place: int) -> dict[str, Any]:
    precision, radix, scale = _digits(field.type)
    return {
        "column_name": field.name,
        "ordinal_position": place,
        "is_nullable": "NO" if field.required else "YES",
        "data_type": sql_name(field.type, nested=True),
        "numeric_precision": precision,
        "numeric_precision_radix": radix,
        "numeric_scale": scale,
        "datetime_precision": _fraction_digits(field.type),
        "is_generated": "NEVER",
        "COLUMN_COMMENT": field.doc,
    }


def _digits(type_: Type) -> tuple[int | None, int | None, int | None]:
    """Return how many digits a number has, of which base, and how many of them behind the point."""
    match type_:
        case IntType():
            return 32, 2, 0
        case LongType():
            return 64, 2, 0
        case FloatType():
            return 24, 2, 0
        case DoubleType():
            return 53, 2, 0
        case DecimalType(precision, scale):
            return precision, 10, scale
        case _:
            return None, None, None


def _fraction_digits(type_: Type) -> int | None:
    """Return how many digits a second has behind the point."""
    match type_:
        case DateType():
            return 0
        case TimeType():
            return 6
        case TimestampType(nanos=nanos):
            return 9 if nanos else 6
        case _:
            return None
