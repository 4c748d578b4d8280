"""What the name of a table means: which table, and which snapshot of it.

A name may be short by what the session knows, may say a version in several customary ways, and may
mean more than one thing (`a.b` is table b of schema a, or of catalog a). Which tables there are is
for others to know: a reference lists its meanings, and the first that exists is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadSql, ConflictingSnapshot, UnsupportedSql
from floeberg.protocol.suggestions import cut, quoted
from floeberg.server.sql.instants import Zone, instant_ms

METADATA_TABLES = frozenset(
    {"entries", "files", "history", "manifests", "partitions", "refs", "snapshots"}
)
INFORMATION_SCHEMA = "information_schema"


@dataclass(frozen=True, slots=True)
class Version:
    """Which snapshot is read: at most one of the three, and none is the table as it is."""

    snapshot_id: int | None = None
    ref: str | None = None
    as_of_ms: int | None = None

    def is_given(self) -> bool:
        return self != CURRENT


CURRENT = Version()


@dataclass(frozen=True, slots=True)
class Meaning:
    """A table that a reference may mean: `name` begins with the catalog. `metadata_table` is one of
    `METADATA_TABLES` where that is asked of the table rather than its rows."""

    name: TableName
    version: Version = CURRENT
    metadata_table: str | None = None


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table as a statement names it, and what that may mean, likeliest first.

    A view of the information schema has no meanings; `information_schema` is its name in lower
    case.
    """

    parts: tuple[str, ...]
    meanings: tuple[Meaning, ...]
    information_schema: str | None = None

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Session:
    """What a session says of names and times that a statement leaves open.

    `schema` is a namespace's parts, and empty for none. `version` holds for tables whose version
    the statement does not say.
    """

    catalogs: Sequence[str]
    catalog: str
    schema: tuple[str, ...] = ()
    version: Version = CURRENT
    zone: Zone = field(default_factory=Zone)

    def reference(self, table: exp.Table) -> TableReference:
        """Return what a table behind FROM may mean.

        Raises `BadSql` for a version that is none, `UnsupportedSql` for one that is not a literal,
        and `ConflictingSnapshot` for two.
        """
        parts = parts_of(table)
        version = _stated_version(table, self.zone)
        if len(parts) in (2, 3) and parts[-2].casefold() == INFORMATION_SCHEMA:
            if version.is_given():
                raise UnsupportedSql("the information schema tells of tables as they are now")
            return TableReference(parts, (), parts[-1].casefold())
        meanings = dict.fromkeys(self._meanings(parts, version))
        return TableReference(parts, tuple(meanings))

    def _meanings(self, parts: tuple[str, ...], version: Version) -> Iterator[Meaning]:
        stated = version if version.is_given() else self.version
        for name in self._full_names(parts):
            yield Meaning(name, stated)
        *above, last = parts
        if "@" in last.strip("@"):
            table, _, ref = last.rpartition("@")
            if version.is_given():
                raise ConflictingSnapshot([f"{quoted(last)}", "the version behind the table"])
            chosen = Version(ref=ref)
            if ref.isascii() and ref.isdigit() and len(ref) < 20:
                chosen = Version(snapshot_id=int(ref))
            for name in self._full_names((*above, table)):
                yield Meaning(name, chosen)
        if above and last.casefold() in METADATA_TABLES:
            for name in self._full_names(tuple(above)):
                yield Meaning(name, stated, last.casefold())
        table, dollar, kind = last.rpartition("$")
        if dollar and table and kind.casefold() in METADATA_TABLES:
            for name in self._full_names((*above, table)):
                yield Meaning(name, stated, kind.casefold())

    def _full_names(self, parts: tuple[str, ...]) -> Iterator[TableName]:
        """Yield the names, catalog first, that `parts` may be short for."""
        yield from self._from_catalogs(parts)
        # BI tools put a nested namespace, or a whole name, into one pair of quotes
        if any("." in part for part in parts):
            split = tuple(".".join(parts).split("."))
            if all(split):
                yield from self._from_catalogs(split)

    def _from_catalogs(self, parts: tuple[str, ...]) -> Iterator[TableName]:
        if len(parts) == 1:
            yield TableName((self.catalog, *self.schema, *parts))
            yield TableName((self.catalog, *parts))
            return
        named = [c for c in self.catalogs if c == parts[0]] or [
            c for c in self.catalogs if c.casefold() == parts[0].casefold()
        ]
        if len(named) == 1:
            yield TableName((named[0], *parts[1:]))
        yield TableName((self.catalog, *parts))


def parts_of(table: exp.Table) -> tuple[str, ...]:
    """Return the name behind FROM as its parts. Raises `BadSql` where one of them is empty."""
    parts = tuple(str(part.name) for part in table.parts)
    if not all(parts):
        raise BadSql("a part of a table's name is empty")
    return parts


def _stated_version(table: exp.Table, zone: Zone) -> Version:
    """Return the version that stands behind the table's name.

    `VERSION AS OF 123`, `FOR VERSION AS OF 'branch'`, `TIMESTAMP AS OF '…'`,
    `AT (VERSION => 123)` and `AT (TIMESTAMP => '…')` are known.
    """
    stated = [s for key in ("version", "when") if (s := table.args.get(key)) is not None]
    if not stated:
        return CURRENT
    if len(stated) > 1:
        raise ConflictingSnapshot(["AS OF", "AT"])
    version = stated[0]
    value = version.args.get("expression")
    if isinstance(version, exp.HistoricalData):
        asked = str(version.args.get("kind") or "").upper()
        is_point = str(version.this or "").upper() == "AT"
    else:
        asked = str(version.this or "").upper()
        is_point = str(version.args.get("kind") or "").upper() == "AS OF"
    if not is_point:
        raise UnsupportedSql("a table is read at one version: write AS OF one, not a range")
    match asked, value:
        case "VERSION", exp.Literal(is_string=True):
            return Version(ref=str(value.this))
        case "VERSION", exp.Literal():
            digits = str(value.this)
            if not (digits.isascii() and digits.isdigit() and int(digits) < 1 << 63):
                raise BadSql(f"{cut(digits, 40)} is no snapshot id")
            return Version(snapshot_id=int(digits))
        case "TIMESTAMP", Node():
            return Version(as_of_ms=instant_ms(value, zone))
        case _:
            raise UnsupportedSql(
                "a version is a snapshot id or the name of a branch or tag, as in VERSION AS OF 123"
                " and VERSION AS OF 'main'; or a time, as in TIMESTAMP AS OF '2024-05-01T12:00:00Z'"
            )
