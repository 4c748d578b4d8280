"""A case's table on disk: each step carried out by the lake that tests write tables with."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

from tests.fuzz.cases import (
    Action,
    Append,
    Case,
    Create,
    DeleteEqual,
    DeletePositions,
    Evolve,
    EvolveSpec,
    MapNames,
    Remove,
    RewriteManifest,
    Row,
    SetRef,
    Step,
    Upgrade,
    WriteVectors,
)
from tests.fuzz.cases import Commit as CommitStep
from tests.fuzz.evolution import Inapplicable, evolved
from tests.fuzz.mapping import covers, mapped
from tests.fuzz.partitioning import partition_of
from tests.support.lake import Commit, FileLayout, TableWriter, WrittenFile
from tests.support.lake.avro import sanitized
from tests.support.lake.commit import Added
from tests.support.lake.files import rows_to_arrow
from tests.support.lake.schemas import children, decimal_of, field_ids, fixed_of, prune, walk
from tests.support.plain import Json, Plain, hashable

LOCATION = "s3://fuzz/table"
"""Where the metadata says that the table is, so that a case writes the same bytes anywhere."""

MAPPING = "schema.name-mapping.default"
ROW_ID, LAST_UPDATED = "_row_id", "_last_updated_sequence_number"

logger = logging.getLogger(__name__)


class Lake:
    """A table that is being built. `seen` holds what was written of each primitive field."""

    def __init__(self, directory: Path, create: Create) -> None:
        self.table = TableWriter.create(
            directory,
            {"fields": [copy.deepcopy(f) for f in create.fields]},
            create.spec,
            format_version=create.format_version,
            location=LOCATION,
        )
        self.table.entries_per_manifest = create.entries_per_manifest
        self.table.manifest_codec = create.manifest_codec
        if create.gzip_metadata:
            self.table.metadata_suffix = ".gz.metadata.json"
        self.seen: dict[int, list[tuple[str, Plain]]] = {}

    @classmethod
    def of(cls, directory: Path, case: Case) -> Lake:
        """Write a case's table; a step that has nothing to apply to is left out."""
        lake = cls(directory, case.create)
        for step in case.steps:
            try:
                lake.apply(step)
            except Inapplicable as reason:
                logger.debug("left out %s: %s", step, reason)
        return lake

    # --- looking ----------------------------------------------------------------------------------

    @property
    def metadata(self) -> Json:
        return self.table.metadata

    @property
    def version(self) -> int:
        return self.table.format_version

    @property
    def mapping(self) -> list[Json]:
        text = self.metadata.get("properties", {}).get(MAPPING)
        return list(json.loads(text)) if text else []

    def schema(self, back: int = 0) -> Json:
        """Return a schema, the newest or as many before it."""
        schemas = self.metadata["schemas"]
        return schemas[max(len(schemas) - 1 - back, 0)]

    def spec(self, back: int = 0) -> Json:
        specs = self.metadata["partition-specs"]
        newest = next(
            i for i, s in enumerate(specs) if s["spec-id"] == self.metadata["default-spec-id"]
        )
        return specs[max(newest - back, 0)]

    # --- steps ------------------------------------------------------------------------------------

    def apply(self, step: Step) -> None:
        """Carry out a step, or raise `Inapplicable` and leave the table as it was."""
        match step:
            case CommitStep():
                self._commit(step)
            case Evolve(changes):
                schema = self.table.schema
                for change in changes:
                    schema = evolved(schema, change)
                if not any(f["type"] != "unknown" for f in schema["fields"]):
                    raise Inapplicable("no column would be stored")
                self.table.evolve_schema(schema)
            case EvolveSpec(fields):
                known = {f["id"] for s in self.metadata["schemas"] for f in walk(s)}
                if any(f["source-id"] not in known for f in fields):
                    raise Inapplicable("no such source")
                self.table.evolve_spec(fields)
            case SetRef(name, kind, snapshot):
                snapshots = self.metadata.get("snapshots", [])
                if not snapshots or (self.version == 1 and name != "main"):
                    raise Inapplicable("no snapshot to refer to")
                chosen = snapshots[snapshot % len(snapshots)]["snapshot-id"]
                if kind == "branch":
                    self.table.branch(name, chosen)
                else:
                    self.table.tag(name, chosen)
            case MapNames():
                mapping = mapped(self.table.schema, self.mapping)
                self.table.set_properties({MAPPING: json.dumps(mapping)})
            case Upgrade(format_version):
                if format_version <= self.version:
                    raise Inapplicable("no upgrade")
                self.table.upgrade(format_version)
            case _:
                assert_never(step)

    def _commit(self, step: CommitStep) -> None:
        branch = step.branch if self.version > 1 or step.branch is None else "main"
        inline = step.inline and self.version == 1
        with self.table.commit(branch=branch, inline_manifests=inline) as commit:
            applied = 0
            for action in step.actions:
                try:
                    self._act(commit, action)
                    applied += 1
                except Inapplicable as reason:
                    logger.debug("left out %s: %s", action, reason)
            if not applied:
                raise Inapplicable("nothing to commit")

    def _act(self, commit: Commit, action: Action) -> None:
        if self.version == 1 and not isinstance(action, Append | Remove | RewriteManifest):
            raise Inapplicable("no deletes in v1")
        match action:
            case Append():
                self._append(commit, action)
            case DeletePositions():
                self._delete_positions(commit, action)
            case DeleteEqual():
                self._delete_equal(commit, action)
            case WriteVectors(positions, merge):
                if self.version < 3:
                    raise Inapplicable("vectors are v3's")
                if any(a.file.format == "puffin" for a in commit.added):
                    raise Inapplicable("a data file has one vector in a snapshot")
                commit.write_vectors(
                    {f: sorted(set(p)) for f, p in _targets(commit, positions).items()},
                    merge=merge,
                )
            case Remove(number):
                commit.remove(_file(self._old_files(commit), number))
            case RewriteManifest(number):
                commit.rewrite(_file(self._old_files(commit), number))
            case _:
                assert_never(action)

    def _old_files(self, commit: Commit) -> list[WrittenFile]:
        """Return the data files that were live before the commit and are not removed by it."""
        entries = self.table.entries(commit.parent_id)
        files = {e.file.location: e.file for e in entries if e.file.content == 0}
        return [f for at, f in sorted(files.items()) if at not in commit.removed]

    # --- actions ----------------------------------------------------------------------------------

    def _append(self, commit: Commit, action: Append) -> None:
        schema, spec = self.schema(action.schemas_back), self.spec(action.specs_back)
        layout = self._layout(action.layout, schema, spec)
        written = {f["id"] for f in schema["fields"] if f["type"] != "unknown"}
        omitted = [f["name"] for f in schema["fields"] if f["id"] in action.omit]
        if not written - set(action.omit):
            raise Inapplicable("a file without columns")
        groups: dict[Any, tuple[dict[str, Plain], list[Mapping[str, Plain]]]] = {}
        names = {f["name"] for f in schema["fields"]}
        lineage = bool(action.lineage) and self.version >= 3 and not names & {ROW_ID, LAST_UPDATED}
        for number, row in enumerate(action.rows):
            tuple_ = partition_of(row, schema, spec, self.metadata["schemas"], action)
            named = completed(schema["fields"], row)
            if lineage:
                pair = action.lineage[number % len(action.lineage)]
                named = {**named, ROW_ID: pair[0], LAST_UPDATED: pair[1]}
            groups.setdefault(hashable(tuple_), (tuple_, []))[1].append(named)
        if not action.rows:
            if spec["fields"]:
                raise Inapplicable("no rows, no partition")
            groups[None] = ({}, [])
        already = len(commit.added)
        for tuple_, rows in groups.values():
            where: Any = {"partition": tuple_, "spec_id": spec["spec-id"]}
            if action.text and layout.format == "parquet" and not action.age and not lineage:
                stored = {
                    **schema,
                    "fields": [f for f in schema["fields"] if f["name"] not in omitted],
                }
                table = _with_text(rows_to_arrow(stored, rows), action.text)
                options = {**(layout.parquet or {}), "store_schema": True}
                chosen = replace(layout, parquet=options, metrics="none", field_ids=True)
                commit.append_arrow(table, layout=chosen, **where)
                continue
            commit.append(
                rows,
                schema_id=schema["schema-id"],
                layout=replace(layout, omit=omitted),
                sequence_number=self._number(action.age),
                stored_lineage=lineage,
                **where,
            )
        commit.added[already:] = [_forgetful(a, action.forget) for a in commit.added[already:]]
        self._remember(schema["fields"], action.rows)

    def _delete_positions(self, commit: Commit, action: DeletePositions) -> None:
        targets = _targets(commit, action.positions)
        rows: dict[WrittenFile | str, list[Mapping[str, Plain]]] | None = None
        if action.with_rows:
            empty = completed(self.table.schema["fields"], {})
            rows = {f: [empty] * len(p) for f, p in targets.items()}
        commit.delete_positions(
            targets,
            rows=rows,
            delete_files=action.delete_files,
            per_file=action.per_file,
            reference=action.reference,
            sort=action.sort,
            layout=action.layout,
            sequence_number=self._number(action.age),
        )

    def _delete_equal(self, commit: Commit, action: DeleteEqual) -> None:
        schema = self.schema(action.schemas_back)
        known = {f["id"] for f in walk(schema)}
        if not action.rows or not known.issuperset(action.keys):
            raise Inapplicable("a key is gone")
        where: dict[str, Any] = {}
        if action.beside is not None:
            file = _file(sorted(commit.data_files().values(), key=_by_location), action.beside)
            spec = next(s for s in self.metadata["partition-specs"] if s["spec-id"] == file.spec_id)
            names = {f["field-id"]: f["name"] for f in spec["fields"]}
            values = {names[i]: v for i, v in file.partition.items()}
            where = {"partition": values, "spec_id": file.spec_id}
        paths = _dotted(schema)
        keys = [paths[i] for i in action.keys if i in paths]
        if len(keys) != len(action.keys):
            raise Inapplicable("a key has no name of its own")
        stored = [i for i in action.stored if i in paths and i not in action.keys]
        pruned = prune(schema, [*action.keys, *stored])
        commit.delete_equal(
            [completed(pruned["fields"], row) for row in action.rows],
            keys,
            schema_id=schema["schema-id"],
            stored=[paths[i] for i in stored],
            layout=self._layout(action.layout, schema, None),
            sequence_number=self._number(action.age),
            **where,
        )

    def _layout(self, layout: FileLayout, schema: Json, spec: Json | None) -> FileLayout:
        """Return the layout with field ids stored where names wouldn't lead to every column."""
        names = {f["name"] for f in walk(schema)}
        has_names = layout.format != "avro" or all(sanitized(name) == name for name in names)
        if has_names and covers(self.mapping, schema):
            return layout
        format_ = "parquet" if layout.format == "orc" else layout.format  # it stores no ids
        return replace(layout, field_ids=True, format=format_)

    def _number(self, age: int) -> int | None:
        if not age or self.version == 1:
            return None
        return max(int(self.metadata["last-sequence-number"]) + 1 - age, 0)

    def _remember(self, fields: Sequence[Json], rows: Sequence[Row]) -> None:
        for row in rows:
            for field in fields:
                for leaf, value in _leaves(field, row.get(field["id"])):
                    self.seen.setdefault(leaf["id"], []).append((leaf["type"], value))


# --- rows -----------------------------------------------------------------------------------------


def completed(fields: Sequence[Json], row: Row) -> dict[str, Plain]:
    """Return a row by names, with what is missing as null, or as a zero where null can't be."""
    return {f["name"]: _named(f, row.get(f["id"])) for f in fields}


def _named(field: Json, value: Plain) -> Plain:
    type_ = field["type"]
    if value is None:
        return _zero(type_) if field["required"] else None
    if isinstance(type_, str):
        return value
    match type_["type"]:
        case "struct":
            return completed(type_["fields"], value)
        case "list":
            (element,) = children(type_)
            return [_named(element, v) for v in value]
        case _:
            key, item = children(type_)
            return [(_named(key, k), _named(item, v)) for k, v in value]


def _zero(type_: Json) -> Plain:
    if not isinstance(type_, str):
        return completed(type_["fields"], {}) if type_["type"] == "struct" else []
    if decimal_of(type_):
        return 0
    if (length := fixed_of(type_)) is not None:
        return bytes(length)
    match type_:
        case "boolean":
            return False
        case "string":
            return ""
        case "uuid":
            return bytes(16)
        case "variant":
            return {"metadata": b"\x01\x00\x00", "value": b"\x00"}
        case _ if type_.startswith(("binary", "geo")):
            return b""
        case _:
            return 0


def _leaves(field: Json, value: Plain) -> Iterator[tuple[Json, Plain]]:
    """Yield the values of primitive fields that structs lead to."""
    type_ = field["type"]
    if isinstance(type_, str):
        yield field, value
    elif type_["type"] == "struct" and value is not None:
        for child in type_["fields"]:
            yield from _leaves(child, value.get(child["id"]))


def _with_text(table: pa.Table, kind: str) -> pa.Table:
    target = {
        "large": pa.large_string(),
        "view": pa.string_view(),
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
    }[kind]
    for i, field in enumerate(table.schema):
        if field.type == pa.string():
            table = table.set_column(i, field.with_type(target), table.column(i).cast(target))
    return table


# --- files ----------------------------------------------------------------------------------------


def _by_location(file: WrittenFile) -> str:
    return file.location


def _file(files: Sequence[WrittenFile], number: int) -> WrittenFile:
    if not files:
        raise Inapplicable("no data file")
    return files[number % len(files)]


def _targets(
    commit: Commit, positions: Mapping[int, Sequence[int]]
) -> dict[WrittenFile | str, list[int]]:
    """Return positions by data file, each within its file."""
    files = sorted(commit.data_files().values(), key=_by_location)
    files = [f for f in files if f.record_count and f.location not in commit.removed]
    targets: dict[WrittenFile | str, list[int]] = {}
    for number, wanted in positions.items():
        file = _file(files, number)
        targets.setdefault(file, []).extend(p % file.record_count for p in wanted)
    targets = {f: p for f, p in targets.items() if p}
    if not targets:
        raise Inapplicable("no position to delete")
    return targets


def _forgetful(added: Added, forget: Sequence[int]) -> Added:
    if not forget:
        return added
    metrics = added.file.metrics
    kept = {
        name: {k: v for k, v in getattr(metrics, name).items() if k not in forget}
        for name in type(metrics).__dataclass_fields__
    }
    return replace(added, file=replace(added.file, metrics=type(metrics)(**kept)))


def _dotted(schema: Json) -> dict[int, str]:
    """Return the dotted names of all fields that structs lead to."""
    names: dict[int, str] = {}

    def visit(fields: Sequence[Json], above: str) -> None:
        for field in fields:
            names[field["id"]] = above + field["name"]
            if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
                visit(field["type"]["fields"], above + field["name"] + ".")

    visit(schema["fields"], "")
    # a whole name with dots in it hides what it spells as a path
    return {i: name for i, name in names.items() if _means(schema, name, i)}


def _means(schema: Json, name: str, field_id: int) -> bool:
    try:
        return field_ids(schema, [name]) == [field_id]
    except KeyError:
        return False
