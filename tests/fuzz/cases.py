"""What a fuzz case is: the steps that make a table, and the questions asked of it.

Everything is plain data that prints as Python, and goes by field ids, so that a case with a step or
a column taken out is a case as well. Rows map field ids to plain values (`tests.support.lake`),
those of structs too; a map is a sequence of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.support.lake import FileLayout
from tests.support.plain import Json, Plain

Row: TypeAlias = Mapping[int, Plain]

PARQUET = FileLayout()


# --- changes of one commit ------------------------------------------------------------------------


@dataclass(frozen=True)
class Append:
    """Rows, in one data file for each partition that they are in.

    - `omit`: ids of top-level columns that the file leaves out
    - `constants`: values by source id of identity partition fields whose column is left out
    - `schemas_back`, `specs_back`: how many versions ago the writer learnt of the schema and spec
    - `lineage`: stored row ids and sequence numbers, a pair a row
    - `age`: how many sequence numbers before the commit's own the data is, as compaction writes it
    - `text`: the Arrow type of text that the file's Arrow schema tells of: large, view, dictionary
    - `forget`: ids whose statistics the manifest lacks
    """

    rows: tuple[Row, ...]
    layout: FileLayout = PARQUET
    omit: tuple[int, ...] = ()
    constants: Mapping[int, Plain] = field(default_factory=dict)
    schemas_back: int = 0
    specs_back: int = 0
    lineage: tuple[tuple[int | None, int | None], ...] = ()
    age: int = 0
    text: str = ""
    forget: tuple[int, ...] = ()


@dataclass(frozen=True)
class DeletePositions:
    """Positions by number of a data file; both count on from the start when they are too high."""

    positions: Mapping[int, tuple[int, ...]]
    layout: FileLayout = PARQUET
    delete_files: int = 1
    per_file: bool = False
    reference: bool = True
    sort: bool = True
    with_rows: bool = False
    age: int = 0


@dataclass(frozen=True)
class DeleteEqual:
    """Rows by their key columns; in the partition of the data file of a number, or everywhere."""

    keys: tuple[int, ...]
    rows: tuple[Row, ...]
    beside: int | None = None
    layout: FileLayout = PARQUET
    schemas_back: int = 0
    stored: tuple[int, ...] = ()
    age: int = 0


@dataclass(frozen=True)
class WriteVectors:
    positions: Mapping[int, tuple[int, ...]]
    merge: bool = True


@dataclass(frozen=True)
class Remove:
    """Take a data file out of the table."""

    file: int


@dataclass(frozen=True)
class RewriteManifest:
    """Write the manifest of a data file anew."""

    file: int


Action: TypeAlias = Append | DeletePositions | DeleteEqual | WriteVectors | Remove | RewriteManifest


# --- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Create:
    """A table's first metadata; `fields` and `spec` are Appendix C's JSON.

    `entries_per_manifest` and the codecs hold for all that is written later.
    """

    format_version: int
    fields: tuple[Json, ...]
    spec: tuple[Json, ...] = ()
    entries_per_manifest: int | None = None
    manifest_codec: str = "deflate"
    gzip_metadata: bool = False


@dataclass(frozen=True)
class Commit:
    """A snapshot. `branch` None stages it; `inline` does without a manifest list, in v1."""

    actions: tuple[Action, ...]
    branch: str | None = "main"
    inline: bool = False


@dataclass(frozen=True)
class AddField:
    """Add a field at `place` of the struct below `parent`; None is the top."""

    parent: int | None
    field: Json
    place: int


@dataclass(frozen=True)
class DropField:
    field_id: int


@dataclass(frozen=True)
class RenameField:
    field_id: int
    name: str


@dataclass(frozen=True)
class MoveField:
    field_id: int
    place: int


@dataclass(frozen=True)
class Promote:
    field_id: int
    type: Json


@dataclass(frozen=True)
class MakeOptional:
    field_id: int


Change: TypeAlias = AddField | DropField | RenameField | MoveField | Promote | MakeOptional


@dataclass(frozen=True)
class Evolve:
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class EvolveSpec:
    fields: tuple[Json, ...]


@dataclass(frozen=True)
class SetRef:
    """Point a branch or tag at the snapshot of a number; the branch `main` rolls back."""

    name: str
    kind: str
    snapshot: int


@dataclass(frozen=True)
class MapNames:
    """Map the current schema's names, beside the names that are mapped already."""


@dataclass(frozen=True)
class Upgrade:
    format_version: int


Step: TypeAlias = Commit | Evolve | EvolveSpec | SetRef | MapNames | Upgrade


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """A predicate on the field of an id; `literal` is JSON, a tuple of it for in and not-in."""

    __test__ = False  # it is not pytest's

    op: str
    field_id: int
    literal: Any = None


@dataclass(frozen=True)
class Both:
    """`and` or `or` over any number of filters."""

    op: str
    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class Not:
    part: Filter


Filter: TypeAlias = Test | Both | Not


@dataclass(frozen=True)
class Question:
    """A scan, and what is looked at besides its rows.

    - `snapshot`: None, or (`ref`, name), (`snapshot`, number), (`as_of`, number of a log entry)
    - `select`: field ids, and names of metadata columns; None for every column
    - `letters`: how names are spelt: as they are, or in `upper` or `lower` case
    - `as_text`: the filter goes through its text form
    - `also`: names of `checking.CHECKS`
    """

    snapshot: tuple[str, Any] | None = None
    filter: Filter | None = None
    select: tuple[int | str, ...] | None = None
    letters: str = "exact"
    as_text: bool = False
    split_size: int | None = None
    batch_size: int | None = None
    num_workers: int = 1
    overlap_io: bool = False
    prune: bool = True
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    create: Create
    steps: tuple[Step, ...] = ()
    questions: tuple[Question, ...] = ()


def fields_of(filter_: Filter) -> Iterator[int]:
    """Yield the ids of the fields that a filter is about."""
    match filter_:
        case Test():
            yield filter_.field_id
        case Both():
            for part in filter_.parts:
                yield from fields_of(part)
        case Not():
            yield from fields_of(filter_.part)
