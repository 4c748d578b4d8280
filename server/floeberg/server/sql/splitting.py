"""A query parted into scans, and what is to be computed of their rows.

Each time that a table stands in the query, it becomes an input of its own: the columns that the
query needs, the filter that its conditions allow to push, and a name, `i0`, `i1` and so on, by
which the rewritten query reads it. The rewritten query gives the same answer over the inputs as the
query does over the tables; a condition that a scan decides by itself is in its filter alone. It
compares floats by IEEE's rule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.process.sql.shown_schemas import NO_COLUMN
from floeberg.protocol.errors import UnsupportedSql
from floeberg.protocol.expressions.model import Expression
from floeberg.protocol.metadata_columns import PLAIN_COLUMNS
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.schema import Schema
from floeberg.protocol.sql_tickets import MAX_INPUTS
from floeberg.protocol.suggestions import quoted
from floeberg.protocol.types import NestedField
from floeberg.server.sql.columns import Source, same
from floeberg.server.sql.float_comparisons import compare_as_ieee
from floeberg.server.sql.float_kinds import Kinds
from floeberg.server.sql.names import Session, TableReference, Version
from floeberg.server.sql.needed_columns import needed_columns
from floeberg.server.sql.occurrences import Readings, find_tables, query_of
from floeberg.server.sql.parsing import to_sql
from floeberg.server.sql.plain_scan import SchemaOf, source_of
from floeberg.server.sql.pushdown import all_of, pushed_filter, settle_conditions
from floeberg.server.sql.statements import Statement


@dataclass(frozen=True, slots=True)
class Input:
    """What the rewritten query reads under `name`: columns of a table, in the table's order and
    metadata columns behind them, of just the rows that `filter` is true of. There may be none,
    where rows are only counted.
    `identifiers` are the columns that the table says tell its rows apart, which it does not check.
    """

    name: str
    table: TableReference
    columns: tuple[NestedField, ...]
    filter: Expression
    identifiers: tuple[str, ...] = ()

    def request(self, version: Version) -> ScanRequest:
        """Return the scan of the table at the `version` that its name turned out to mean."""
        return ScanRequest(
            filter=self.filter,
            select=tuple(column.name for column in self.columns),
            snapshot_id=version.snapshot_id,
            ref=version.ref,
            as_of_ms=version.as_of_ms,
        )


@dataclass(frozen=True, slots=True)
class Split:
    """`sql` is in DuckDB's dialect, and names no tables but the inputs. `tree` is what it was
    written from, shared and never changed."""

    sql: str
    inputs: tuple[Input, ...]
    tree: Node = dataclasses.field(compare=False)


def split(statement: Statement, session: Session, schema_of: SchemaOf) -> Split:
    """Return the statement's query as scans, and SQL over them. Parameters must have been bound.

    A table that stands in the query twice is two inputs, since their columns and filters differ.
    Raises `UnsupportedSql` for more inputs than a worker reads, and for a table with columns whose
    names differ in case only; what `needed_columns` and `schema_of` raise, and what
    `Session.reference` does.
    """
    assert statement.tree is not None
    tree = statement.tree.copy()
    tables: list[tuple[exp.Table, Source]] = []
    references: list[TableReference] = []
    found = find_tables(tree)
    if len(found) > MAX_INPUTS:
        raise UnsupportedSql(
            f"the statement reads tables in {len(found):,} places, and may in {MAX_INPUTS}; send it"
            " in parts"
        )
    for table in found:
        reference = session.reference(table)
        schema = schema_of(reference)
        _check_names(schema, reference)
        references.append(reference)
        tables.append((table, source_of(table, reference, schema)))
    readings = Readings(tree, found)
    filters = [
        _filter(table, reference, tables, readings, session)
        for (table, _), reference in zip(tables, references, strict=True)
    ]
    # of what the query still says, now that scans decide some conditions
    needed = needed_columns(tree, tables)
    spare = 1 if _mentions(tree, NO_COLUMN) else 0
    names = _input_names(tree, len(tables))
    inputs = [
        Input(
            name,
            reference,
            _chosen(source.schema, columns) or source.schema.fields[:spare],
            filter_,
            _identifiers(source.schema),
        )
        for name, reference, (_, source), columns, filter_ in zip(
            names, references, tables, needed, filters, strict=True
        )
    ]
    _rewrite(tree, tables, names)
    compare_as_ieee(tree, Kinds(tree, [source for _, source in tables], session.zone))
    return Split(to_sql(tree), tuple(inputs), tree)


def _filter(
    table: exp.Table,
    reference: TableReference,
    tables: Sequence[tuple[exp.Table, Source]],
    readings: Readings,
    session: Session,
) -> Expression:
    """Return the filter of a table's scan. The conditions that it decides alone leave the query."""
    settled: list[Expression] = []
    # of what a coordinator tells, a filter only says which rows it may leave out
    if reference.information_schema is None and not any(
        meaning.metadata_table for meaning in reference.meanings
    ):
        settled = settle_conditions(table, tables, session.zone)
    return all_of([*settled, pushed_filter(table, tables, readings, session.zone)])


def _check_names(schema: Schema, reference: TableReference) -> None:
    seen: dict[str, str] = {}
    for field in schema.fields:
        other = seen.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise UnsupportedSql(
                f"table {quoted(str(reference))} has columns {quoted(other)} and"
                f" {quoted(field.name)}, which are one name to SQL; rename one of them"
            )


def _chosen(schema: Schema, names: tuple[str, ...]) -> tuple[NestedField, ...]:
    """Return the named columns, metadata columns behind the others."""
    if not schema.fields:
        raise UnsupportedSql("a table without columns can't be read by SQL")
    known = {field.name.casefold() for field in schema.fields}
    beside = (column for column in PLAIN_COLUMNS if column.name not in known)
    return tuple(field for field in (*schema.fields, *beside) if field.name in names)


def _mentions(tree: Node, name: str) -> bool:
    return any(str(node.name).casefold() == name for node in tree.find_all(exp.Identifier))


def _identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the names of the identifier fields; none if one of them lies within another field."""
    names = [field.name for field in schema.fields if field.field_id in schema.identifier_field_ids]
    return tuple(names) if len(names) == len(schema.identifier_field_ids) else ()


def _input_names(tree: Node, wanted: int) -> list[str]:
    """Return names for the inputs that nothing in the query has."""
    taken = {str(node.name).casefold() for node in tree.find_all(exp.Identifier)}
    free = (name for i in count() if (name := f"i{i}") not in taken)
    return [next(free) for _ in range(wanted)]


# --- rewriting ------------------------------------------------------------------------------------


def _rewrite(tree: Node, tables: list[tuple[exp.Table, Source]], names: list[str]) -> None:
    """Let `tree` read the inputs, each under the alias that its table had."""
    aliases = _aliases(tables, names)
    _shorten_references(tree, tables, aliases)
    for (table, _), name, alias in zip(tables, names, aliases, strict=True):
        had_alias = bool(table.alias)
        table.set("this", exp.to_identifier(name))
        for part in ("db", "catalog", "version", "when"):
            table.set(part, None)
        if not had_alias:
            identifier = exp.to_identifier(alias, quoted=True)
            stated = table.args.get("alias")
            if isinstance(stated, exp.TableAlias):
                stated.set("this", identifier)
            else:
                table.set("alias", exp.TableAlias(this=identifier))


def _aliases(tables: list[tuple[exp.Table, Source]], names: list[str]) -> list[str]:
    """Return the alias of each input: what its table is called, unless another one is called so in
    the same FROM (`a.t` and `b.t`), which then only the full names tell apart."""
    aliases: list[str] = []
    for number, (table, source) in enumerate(tables):
        is_taken = not table.alias and any(
            same(other.alias, source.alias) and query_of(node) is query_of(table)
            for node, other in tables[:number]
        )
        aliases.append(names[number] if is_taken else source.alias)
    return aliases


def _shorten_references(
    tree: Node, tables: list[tuple[exp.Table, Source]], aliases: list[str]
) -> None:
    """Replace full names of tables before columns, `db.t.a`, by the inputs' aliases."""
    for node in list(tree.find_all(exp.Column)):
        parts = node.parts
        words = [str(part.name) for part in parts if isinstance(part, exp.Identifier)]
        if len(words) < 2 or any(source.has_column(words[0]) for _, source in tables):
            continue
        found = _longest(words, tables)
        if found is None:
            continue
        number, length = found
        if length == 1 and same(aliases[number], words[0]):
            continue
        # the column, or the star, and the fields below it
        rest = [part.copy() for part in parts[length:]]
        root: Node = exp.Column(this=rest[0], table=exp.to_identifier(aliases[number], quoted=True))
        for field in rest[1:]:
            root = exp.Dot(this=root, expression=field)
        node.replace(root)


def _longest(words: list[str], tables: list[tuple[exp.Table, Source]]) -> tuple[int, int] | None:
    """Return which table `words` begin with the name of, and in how many words: the longest."""
    best: tuple[int, int] | None = None
    for number, (_, source) in enumerate(tables):
        for length in range(min(len(source.names), len(words) - 1), 0, -1):
            if all(map(same, words[:length], source.names[-length:])):
                if best is None or length > best[1]:
                    best = number, length
                break
    return best
