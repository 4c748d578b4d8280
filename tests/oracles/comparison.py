"""Two engines' answers to one scan, where they part, and how a reason takes differences away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tests.oracles.scans import Scan, filtered_columns
from tests.support.rows import canonical_values

Row = Mapping[str, Any]
"""A row by column name, its values in `canonical_values`' form."""


@dataclass(frozen=True)
class Comparison:
    """`only_ours` and `only_theirs` are the rows that the other side doesn't have."""

    scan: Scan
    only_ours: Sequence[Row]
    only_theirs: Sequence[Row]

    @property
    def agrees(self) -> bool:
        return not self.only_ours and not self.only_theirs

    def filtered_values(self, row: Row) -> list[Any]:
        """Return the row's values in the columns that the filter looks at."""
        return [_reach(row, name) for name in filtered_columns(self.scan.filter)]

    def without(self, is_explained: Callable[[list[Any]], bool]) -> Comparison:
        """Return the comparison without the rows whose filtered values explain why only one side
        has them."""
        return replace(
            self,
            only_ours=[r for r in self.only_ours if not is_explained(self.filtered_values(r))],
            only_theirs=[r for r in self.only_theirs if not is_explained(self.filtered_values(r))],
        )

    def alike(self, seen: Callable[[Row], Row]) -> Comparison:
        """Return the comparison of the rows as `seen` shows them, of both sides."""
        return _differing(self.scan, map(seen, self.only_ours), map(seen, self.only_theirs))

    def __str__(self) -> str:
        ours, theirs = list(self.only_ours), list(self.only_theirs)
        if len(ours) == len(theirs) == 1:
            differing = {k for k in ours[0] if ours[0][k] != theirs[0].get(k)}
            ours = [{k: v for k, v in ours[0].items() if k in differing}]
            theirs = [{k: v for k, v in theirs[0].items() if k in differing}]
        return (
            f"{self.scan}:\n    floeberg has {len(ours)} more: {str(ours[:2])[:500]}"
            f"\n    the oracle has {len(theirs)} more: {str(theirs[:2])[:500]}"
        )


def compare(scan: Scan, ours: pa.Table, theirs: pa.Table) -> Comparison:
    """Compare as multisets of rows, columns matched by name.

    `theirs` takes the form of our columns where its engine has no type for them: uuid as text, a
    struct of which a nested projection wants a part.
    """
    return _differing(scan, _rows(ours), _rows(_in_our_form(theirs, ours.schema, scan)))


def _differing(scan: Scan, ours: Iterable[Row], theirs: Iterable[Row]) -> Comparison:
    our_rows, their_rows = Counter(map(_key, ours)), Counter(map(_key, theirs))
    return Comparison(
        scan,
        [dict(key) for key in (our_rows - their_rows).elements()],
        [dict(key) for key in (their_rows - our_rows).elements()],
    )


def _key(row: Row) -> tuple[tuple[str, Hashable], ...]:
    return tuple(sorted(row.items()))


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    names = sorted(table.column_names)
    columns = [canonical_values(table.column(name)) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _reach(row: Row, dotted: str) -> Any:
    if dotted in row:
        return row[dotted]
    value: Any = row
    for part in dotted.split("."):
        value = None if value is None else dict(value).get(part)
    return value


# --- forms ----------------------------------------------------------------------------------------


def _in_our_form(theirs: pa.Table, schema: pa.Schema, scan: Scan) -> pa.Table:
    pruned = any("." in name for name in scan.select or ())
    columns: dict[str, Any] = {}
    for name in theirs.column_names:
        column = theirs.column(name)
        if name in schema.names:
            chunks = [_conform(chunk, schema.field(name).type, pruned) for chunk in column.chunks]
            column = pa.chunked_array(chunks) if chunks else column
        columns[name] = column
    for field in schema:
        if field.name not in columns and pa.types.is_null(field.type):
            columns[field.name] = pa.nulls(theirs.num_rows)  # unknown is stored nowhere
    return pa.table(columns)


def _conform(array: Any, target: Any, pruned: bool) -> Any:
    if isinstance(target, pa.UuidType) and pa.types.is_string(array.type):
        return _uuids(array)
    if pa.types.is_list(target) and pa.types.is_list(array.type):
        array = pa.concat_arrays([array])  # a slice can't be given a mask
        values = _conform(array.values, target.value_type, pruned)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        names = [f.name for f in array.type]
        if pruned:
            names = [f.name for f in target if f.name in names]
        fields = []
        for name in names:
            child = array.field(name)
            index = target.get_field_index(name)
            fields.append(
                _conform(child, target.field(index).type, pruned) if index >= 0 else child
            )
        if not fields:
            return array
        return pa.StructArray.from_arrays(fields, names, mask=array.is_null())
    return array


def _uuids(array: Any) -> Any:
    values = [None if v is None else bytes.fromhex(v.replace("-", "")) for v in array.to_pylist()]
    return pa.array(values, pa.binary(16))
