"""A query over one scan, divided among those who read the scan's shares.

Each computes a fragment of the rows that it reads, and where the fragments' rows are not the answer
yet, a merging query makes it of them. That holds for any division of the rows, empty shares and
none at all included. What is divided is the innermost query that needs to see more than one row;
the queries within belong to the fragments, those around it to the merging.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.server.sql import grouped, limited
from floeberg.server.sql.occurrences import MOST_LEVELS, renames, states_only
from floeberg.server.sql.own_rows import Rows
from floeberg.server.sql.parsing import to_sql
from floeberg.server.sql.parts import Described, Names, described
from floeberg.server.sql.splitting import Input, Split
from floeberg.server.sql.unmergeable import Undivided, check_stable, is_of_a_row


@dataclass(frozen=True, slots=True)
class Fragments:
    """`fragment` is SQL over the split's input. `merge` is SQL over the rows that all fragments
    give together, under `name`; None where these are the answer.

    Both give columns by position: those of a fragment without a merge, and those of `merge`, have
    the types of the statement's own. A fragment's columns that are merged have names of their own.
    """

    fragment: str
    merge: str | None
    name: str


def fragments_of(split: Split, describe: Described) -> Fragments | None:
    """Return how a query over one input is computed in fragments, None where it is not.

    `describe` is asked a few times, of queries over the input. The answer has the rows that the
    whole query gives over all of the input, in no other order than it asks for.
    """
    if len(split.inputs) != 1:
        return None
    (source,) = split.inputs
    if source.table.information_schema is not None:
        return None
    tree = split.tree.copy()
    try:
        divided = _divided(tree, source, describe)
        if divided.merge is not None:
            _check_types(split, divided, describe)
    except Undivided:
        return None
    return divided


def _check_types(split: Split, divided: Fragments, describe: Described) -> None:
    """Raise `Undivided` unless the merging query has the types of the whole one."""
    whole = describe(split.sql)
    merged = describe(
        f"WITH {divided.name} AS ({divided.fragment}) SELECT * FROM ({divided.merge}) AS q"
    )
    if whole is None or merged is None:
        raise Undivided
    if [type_ for _, type_ in whole] != [type_ for _, type_ in merged]:
        raise Undivided


def _divided(tree: Node, source: Input, describe: Described) -> Fragments:
    while isinstance(tree, exp.Subquery) and states_only(tree, {"this"}):
        tree = tree.this.copy()
    table = _only_table(tree, source.name)
    names = Names(
        [
            *(str(node.name) for node in tree.find_all(exp.Identifier)),
            *(column.name for column in source.columns),
        ]
    )
    parts = names.take("parts")
    select = _reader(table)
    for _ in range(MOST_LEVELS):
        if not _is_row_wise(select):
            break
        if select.parent is None:
            return Fragments(to_sql(select), None, parts)
        select = _query_around(select)
    else:
        raise Undivided
    if any(tree.find_all(exp.Collate)):
        raise Undivided  # it says how values compare, and is lost on the way
    check_stable(select)
    rows = _rows(select, source, describe)
    divide = grouped.divided if grouped.is_grouped(select) else limited.divided
    fragment, merging = divide(select, rows, describe, names, parts)
    if select.parent is None:
        tree = merging
    else:
        select.replace(merging)
    return Fragments(to_sql(fragment), to_sql(tree), parts)


def _only_table(tree: Node, name: str) -> exp.Table:
    found = [table for table in tree.find_all(exp.Table) if table.name == name]
    if len(found) != 1:
        raise Undivided
    return found[0]


def _reader(source: exp.Table | exp.Subquery) -> exp.Select:
    """Return the SELECT that reads `source` and nothing else."""
    from_ = source.parent
    if not isinstance(from_, exp.From) or not isinstance(from_.parent, exp.Select):
        raise Undivided
    if not states_only(source, {"this", "alias"}):
        raise Undivided
    select = from_.parent
    if any(select.args.get(key) for key in ("joins", "laterals", "pivots", "sample", "with_")):
        raise Undivided
    return select


def _is_row_wise(select: exp.Select) -> bool:
    """Say whether each row of what `select` reads makes rows of its own, whatever the others."""
    if not states_only(select, {"expressions", "from_", "where"}):
        return False
    where = select.args.get("where")
    return all(map(is_of_a_row, [*select.expressions, *([] if where is None else [where])]))


def _query_around(select: exp.Select) -> exp.Select:
    """Return the SELECT whose only source is `select`, which stands in brackets behind its FROM; a
    query of a WITH is put there if it is read once."""
    above = select.parent
    if isinstance(above, exp.CTE):
        above = _put_in_place(above)
    if not isinstance(above, exp.Subquery):
        raise Undivided
    return _reader(above)


def _put_in_place(cte: exp.CTE) -> exp.Subquery:
    with_ = cte.parent
    assert isinstance(with_, exp.With), "a WITH is made of its queries"
    if with_.args.get("recursive"):
        raise Undivided
    name = str(cte.alias).casefold()
    root = cte.root()
    if sum(str(each.alias).casefold() == name for each in root.find_all(exp.CTE)) != 1:
        raise Undivided
    readers = [
        table
        for table in root.find_all(exp.Table)
        if len(table.parts) == 1 and table.name.casefold() == name
    ]
    if len(readers) != 1 or not states_only(readers[0], {"this", "alias"}):
        raise Undivided
    (table,) = readers
    alias = cte.args["alias"].copy()
    stated = table.args.get("alias")
    if isinstance(stated, exp.TableAlias):
        if stated.args.get("columns") and alias.args.get("columns"):
            raise Undivided
        alias.set("this", stated.this.copy())
        if stated.args.get("columns"):
            alias.set("columns", [column.copy() for column in stated.args["columns"]])
    in_place = exp.Subquery(this=cte.this, alias=alias)
    table.replace(in_place)
    cte.pop()
    if not with_.expressions:
        with_.pop()
    return in_place


def _rows(select: exp.Select, source: Input, describe: Described) -> Rows:
    """Return what `select` reads: the input, or a query in brackets."""
    read = select.args["from_"].this
    if isinstance(read, exp.Table) and not renames(read):
        names = [column.name for column in source.columns]
        return Rows(str(read.alias_or_name), names, source.identifiers)
    everything = exp.Select(expressions=[exp.Star()], from_=exp.From(this=read.copy()))
    return Rows(str(read.alias), [name for name, _ in described(everything, describe)])
