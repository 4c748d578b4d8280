"""A table in a local directory, changed one commit at a time.

    table = TableWriter.create(directory, schema({"id": required("long"), "name": "string"}))
    (file,) = table.append([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    table.delete_positions({file: [0]})

Every change writes the next `metadata/vN.metadata.json` and `version-hint.text`, as a table in a
file system has them. Ids and times depend on nothing but the table's location and the calls made:
the same calls write the same table. Spec: "Table Metadata", "File System Tables", "Snapshots".
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.lake import schemas
from tests.support.lake.commit import Commit, Positions, vector_key
from tests.support.lake.files import Rows
from tests.support.lake.manifests import (
    DATA,
    DELETED,
    EXISTING,
    Entry,
    Spec,
    WrittenFile,
    line_of,
    manifest_bytes,
    manifest_list_bytes,
    read_manifest,
    read_manifest_list,
)
from tests.support.lake.partitions import spec_fields
from tests.support.lake.schemas import Json

FIRST_MS = 1735689600000  # 2025-01-01T00:00:00Z
TICK_MS = 60_000


class TableWriter:
    """Writes one table. `metadata` is its current metadata as a JSON dict, to be read only."""

    def __init__(
        self,
        directory: Path,
        metadata: Json,
        version: int,
        clock: Callable[[], int] | None,
    ) -> None:
        self.directory = directory
        self.metadata = metadata
        self.version = version
        self.metadata_suffix = ".metadata.json"
        """With `.gz.metadata.json` or `.metadata.json.gz`, metadata is compressed from then on."""
        self.manifest_codec = "deflate"
        self.entries_per_manifest: int | None = None
        """How many entries a new manifest holds at most; None: all of a commit's of one spec."""
        self._clock = clock

    @classmethod
    def create(
        cls,
        directory: Path | str,
        schema: Json,
        spec: Sequence[Json] = (),
        *,
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        identifier: Sequence[str] = (),
        clock: Callable[[], int] | None = None,
    ) -> TableWriter:
        """Write a table without snapshots.

        schema: Appendix C's JSON, as `schema(...)` makes it. spec: partition fields as JSON or
        `(column, transform)`. location: what metadata says of where the table is; `file://` and the
        directory unless given. clock: gives the time in ms since the epoch; unless given each
        change comes a minute after the last.
        """
        directory = Path(directory).absolute()
        location = location or f"file://{directory}"
        schema = {"type": "struct", "schema-id": 0, "fields": schema["fields"]}
        if identifier:
            schema["identifier-field-ids"] = schemas.field_ids(schema, identifier)
        fields = spec_fields(schema, spec)
        metadata: Json = {
            "format-version": format_version,
            "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, location)),
            "location": location,
            "last-sequence-number": 0,
            "last-updated-ms": clock() if clock else FIRST_MS,
            "last-column-id": schemas.highest_id(schema),
            "schemas": [schema],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": fields}],
            "default-spec-id": 0,
            "last-partition-id": max((f["field-id"] for f in fields), default=999),
            "properties": dict(properties or {}),
            "current-snapshot-id": -1,
            "snapshots": [],
            "snapshot-log": [],
            "metadata-log": [],
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
        }
        if format_version >= 2:
            metadata["refs"] = {}
        if format_version >= 3:
            metadata["next-row-id"] = 0
            metadata["current-snapshot-id"] = None
        (directory / "metadata").mkdir(parents=True)
        table = cls(directory, metadata, 0, clock)
        table._write_metadata()
        return table

    @classmethod
    def open(cls, directory: Path | str, *, clock: Callable[[], int] | None = None) -> TableWriter:
        """Take over a table that stands in `directory`, as its newest metadata describes it."""
        directory = Path(directory).absolute()
        path = current_metadata(directory)
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        table = cls(directory, json.loads(text), _version_of(path), clock)
        return table

    # --- looking ----------------------------------------------------------------------------------

    @property
    def location(self) -> str:
        return str(self.metadata["location"])

    @property
    def metadata_path(self) -> Path:
        """The current metadata file."""
        return current_metadata(self.directory)

    @property
    def current_snapshot_id(self) -> int | None:
        found = self.metadata.get("current-snapshot-id")
        return None if found in (None, -1) else int(found)

    @property
    def snapshot_id(self) -> int:
        """The current snapshot's id; there must be one."""
        found = self.current_snapshot_id
        assert found is not None, "the table has no snapshot"
        return found

    @property
    def format_version(self) -> int:
        return int(self.metadata["format-version"])

    @property
    def schema(self) -> Json:
        return next(
            s
            for s in self.metadata["schemas"]
            if s["schema-id"] == self.metadata["current-schema-id"]
        )

    def snapshot(self, snapshot_id: int | None = None) -> Json:
        """Return a snapshot's JSON, the current one's unless named."""
        wanted = self.snapshot_id if snapshot_id is None else snapshot_id
        return next(s for s in self.metadata["snapshots"] if s["snapshot-id"] == wanted)

    def local(self, location: str) -> Path:
        """Return where a location of this table is on disk."""
        if location.startswith(self.location + "/"):
            return self.directory / location.removeprefix(self.location + "/")
        return Path(location.removeprefix("file://").removeprefix("file:"))

    def new_location(self, name: str) -> str:
        return f"{self.location}/{name}"

    def lines(self, snapshot_id: int | None) -> list[dict[str, Any]]:
        """Return a snapshot's manifest list; nothing for no snapshot."""
        if snapshot_id is None:
            return []
        snapshot = self.snapshot(snapshot_id)
        return read_manifest_list(self.local(snapshot["manifest-list"]).read_bytes())

    def entries(self, snapshot_id: int | None) -> list[Entry]:
        """Return the live entries of a snapshot, after inheritance; nothing for no snapshot."""
        return [e for line in self.lines(snapshot_id) for e in self._entries_of(line) if e.is_live]

    def _entries_of(self, line: Mapping[str, Any]) -> list[Entry]:
        spec = Spec.of(self.metadata, line["partition_spec_id"])
        return read_manifest(self.local(line["manifest_path"]).read_bytes(), line, spec)

    def files(self, snapshot_id: int | None = None) -> list[WrittenFile]:
        """Return a snapshot's live data files, the current one's unless named."""
        wanted = self.current_snapshot_id if snapshot_id is None else snapshot_id
        return [e.file for e in self.entries(wanted) if e.file.content == DATA]

    # --- committing -------------------------------------------------------------------------------

    def append(
        self, rows: Rows, *, branch: str = "main", **options: Any
    ) -> tuple[WrittenFile, ...]:
        """Commit `Commit.append`."""
        with self.commit(branch=branch) as commit:
            return commit.append(rows, **options)

    def delete_positions(
        self, positions: Positions, *, branch: str = "main", **options: Any
    ) -> tuple[WrittenFile, ...]:
        """Commit `Commit.delete_positions`."""
        with self.commit(branch=branch) as commit:
            return commit.delete_positions(positions, **options)

    def delete_equal(
        self,
        rows: Rows,
        columns: Sequence[str],
        *,
        branch: str = "main",
        **options: Any,
    ) -> WrittenFile:
        """Commit `Commit.delete_equal`."""
        with self.commit(branch=branch) as commit:
            return commit.delete_equal(rows, columns, **options)

    def write_vectors(
        self, positions: Positions, *, branch: str = "main", **options: Any
    ) -> tuple[WrittenFile, ...]:
        """Commit `Commit.write_vectors`."""
        with self.commit(branch=branch) as commit:
            return commit.write_vectors(positions, **options)

    def remove(self, *files: WrittenFile | str, branch: str = "main") -> None:
        """Commit `Commit.remove`."""
        with self.commit(branch=branch) as commit:
            commit.remove(*files)

    @contextmanager
    def commit(
        self,
        *,
        branch: str | None = "main",
        operation: str | None = None,
        snapshot_id: int | None = None,
        timestamp_ms: int | None = None,
        summary: Mapping[str, str] | None = None,
        inline_manifests: bool = False,
    ) -> Iterator[Commit]:
        """Make one snapshot of what the block does; nothing is written to the table's metadata if
        it fails.

        branch: None stages the snapshot, so that no ref leads to it; a branch that isn't there
        starts at the current snapshot. operation: derived from the changes unless given.
        inline_manifests: v1 without a manifest list.
        """
        commit = Commit(self, snapshot_id or self._new_snapshot_id(), self._branch_head(branch))
        yield commit
        self._finish(commit, branch, operation, timestamp_ms, summary or {}, inline_manifests)

    def _finish(
        self,
        commit: Commit,
        branch: str | None,
        operation: str | None,
        timestamp_ms: int | None,
        summary: Mapping[str, str],
        inline_manifests: bool,
    ) -> None:
        metadata = copy.deepcopy(self.metadata)
        sequence_number = (
            metadata.get("last-sequence-number", 0) + 1 if self.format_version >= 2 else 0
        )
        lines = self._new_lines(commit, sequence_number) + self._kept_lines(commit, sequence_number)
        now = timestamp_ms if timestamp_ms is not None else self._now()
        snapshot: Json = {"snapshot-id": commit.snapshot_id}
        if commit.parent_id is not None:
            snapshot["parent-snapshot-id"] = commit.parent_id
        if self.format_version >= 2:
            snapshot["sequence-number"] = sequence_number
            metadata["last-sequence-number"] = sequence_number
        snapshot["timestamp-ms"] = now
        snapshot["summary"] = {**_summary(commit, operation), **summary}
        if self.format_version >= 3:
            first_row_id = metadata.get("next-row-id", 0)
            snapshot["first-row-id"] = first_row_id
            next_row_id = _assign_row_ids(lines, first_row_id)
            snapshot["added-rows"] = next_row_id - first_row_id
            metadata["next-row-id"] = next_row_id
        if inline_manifests:
            snapshot["manifests"] = [line["manifest_path"] for line in lines]
        else:
            location = self.new_location(f"metadata/snap-{commit.snapshot_id}-1.avro")
            info = {
                "snapshot-id": str(commit.snapshot_id),
                "parent-snapshot-id": str(commit.parent_id or "null"),
                "sequence-number": str(sequence_number),
                "format-version": str(self.format_version),
            }
            raw = manifest_list_bytes(self.format_version, lines, info, self.manifest_codec)
            self.local(location).write_bytes(raw)
            snapshot["manifest-list"] = location
        snapshot["schema-id"] = metadata["current-schema-id"]
        metadata.setdefault("snapshots", []).append(snapshot)
        if branch is not None:
            _point(metadata, branch, "branch", commit.snapshot_id, now)
        self._write(metadata, now)

    def _new_lines(self, commit: Commit, sequence_number: int) -> list[dict[str, Any]]:
        groups: dict[tuple[int, int], list[Entry]] = {}
        for added in commit.added:
            key = (min(added.file.content, 1), added.file.spec_id)
            groups.setdefault(key, []).append(
                Entry(
                    added.file,
                    snapshot_id=commit.snapshot_id,
                    sequence_number=added.sequence_number,
                )
            )
        lines = []
        for (content, spec_id), entries in groups.items():
            size = self.entries_per_manifest or len(entries)
            for at in range(0, len(entries), size):
                part = entries[at : at + size]
                lines.append(self._write_manifest(commit, content, spec_id, part, sequence_number))
        return lines

    def _kept_lines(self, commit: Commit, sequence_number: int) -> list[dict[str, Any]]:
        lines = []
        touched = commit.removed | commit.rewritten
        missing = set(touched)
        for line in self.lines(commit.parent_id):
            if not touched:
                lines.append(line)
                continue
            entries = [e for e in self._entries_of(line) if e.is_live]
            names = {vector_key(e.file) for e in entries}
            if not names & touched:
                lines.append(line)
                continue
            missing -= names
            kept = [
                Entry(
                    e.file,
                    DELETED if vector_key(e.file) in commit.removed else EXISTING,
                    commit.snapshot_id if vector_key(e.file) in commit.removed else e.snapshot_id,
                    e.sequence_number,
                    e.file_sequence_number,
                    e.first_row_id,
                )
                for e in entries
            ]
            new = self._write_manifest(
                commit,
                line["content"],
                line["partition_spec_id"],
                kept,
                sequence_number,
            )
            # what it holds has its row ids already
            lines.append({**new, "first_row_id": line.get("first_row_id")})
        if missing:
            raise KeyError(f"no live file {', '.join(sorted(missing))}")
        return lines

    def _write_manifest(
        self,
        commit: Commit,
        content: int,
        spec_id: int,
        entries: Sequence[Entry],
        sequence_number: int,
    ) -> dict[str, Any]:
        spec = Spec.of(self.metadata, spec_id)
        raw = manifest_bytes(
            self.format_version,
            self.schema,
            spec,
            entries,
            "deletes" if content else "data",
            self.manifest_codec,
        )
        number = len(list((self.directory / "metadata").glob(f"{commit.snapshot_id:016x}-m*.avro")))
        location = self.new_location(f"metadata/{commit.snapshot_id:016x}-m{number}.avro")
        self.local(location).write_bytes(raw)
        return line_of(
            location,
            len(raw),
            content,
            spec,
            entries,
            commit.snapshot_id,
            sequence_number,
        )

    # --- changing everything else -----------------------------------------------------------------

    def evolve_schema(self, schema: Json) -> int:
        """Make `schema` the current one; return its id. Ids of its fields are taken as they are."""
        metadata = copy.deepcopy(self.metadata)
        schema_id = max(int(s["schema-id"]) for s in metadata["schemas"]) + 1
        metadata["schemas"].append({**schema, "type": "struct", "schema-id": schema_id})
        metadata["current-schema-id"] = schema_id
        metadata["last-column-id"] = max(metadata["last-column-id"], schemas.highest_id(schema))
        self._write(metadata)
        return schema_id

    def add_column(self, name: str, column: Json) -> int:
        """Add a field with fresh ids, in the struct that a dotted name reaches."""
        first_id = self.metadata["last-column-id"] + 1
        return self.evolve_schema(schemas.add_column(self.schema, name, column, first_id))

    def drop_column(self, name: str) -> int:
        return self.evolve_schema(schemas.drop_column(self.schema, name))

    def rename_column(self, name: str, new_name: str) -> int:
        return self.evolve_schema(schemas.change_column(self.schema, name, name=new_name))

    def promote_column(self, name: str, type_: str) -> int:
        return self.evolve_schema(schemas.change_column(self.schema, name, type=type_))

    def evolve_spec(self, fields: Sequence[Json]) -> int:
        """Make a spec of these fields the default; return its id.

        A field as `(column, transform)` keeps the id that an earlier spec gave to the same column
        and transform.
        """
        metadata = copy.deepcopy(self.metadata)
        known = {
            (f.get("source-id"), f["transform"]): f["field-id"]
            for s in metadata["partition-specs"]
            for f in s["fields"]
        }
        new: list[Json] = []
        for given in fields:
            next_id = metadata["last-partition-id"] + 1
            (field,) = spec_fields(self.schema, [given], next_id)
            if not isinstance(given, dict):
                earlier = known.get((field["source-id"], field["transform"]))
                field["field-id"] = next_id if earlier is None else earlier
            metadata["last-partition-id"] = max(metadata["last-partition-id"], field["field-id"])
            new.append(field)
        spec_id = max(int(s["spec-id"]) for s in metadata["partition-specs"]) + 1
        metadata["partition-specs"].append({"spec-id": spec_id, "fields": new})
        metadata["default-spec-id"] = spec_id
        self._write(metadata)
        return spec_id

    def unpartitioned_spec_id(self) -> int:
        """Return the id of a spec without fields; add one, not as the default, if there is none."""
        for spec in self.metadata["partition-specs"]:
            if not spec["fields"]:
                return int(spec["spec-id"])
        metadata = copy.deepcopy(self.metadata)
        spec_id = max(int(s["spec-id"]) for s in metadata["partition-specs"]) + 1
        metadata["partition-specs"].append({"spec-id": spec_id, "fields": []})
        self._write(metadata)
        return spec_id

    def branch(self, name: str, snapshot_id: int | None = None) -> None:
        """Point a branch at a snapshot, the current one unless named; `main` rolls back."""
        self._set_ref(name, "branch", snapshot_id)

    def tag(self, name: str, snapshot_id: int | None = None) -> None:
        self._set_ref(name, "tag", snapshot_id)

    def _set_ref(self, name: str, kind: str, snapshot_id: int | None) -> None:
        metadata = copy.deepcopy(self.metadata)
        now = self._now()
        _point(
            metadata,
            name,
            kind,
            self.snapshot_id if snapshot_id is None else snapshot_id,
            now,
        )
        self._write(metadata, now)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        metadata = copy.deepcopy(self.metadata)
        metadata.setdefault("properties", {}).update(properties)
        self._write(metadata)

    def upgrade(self, format_version: int) -> None:
        """Raise the format version. Existing manifests stay as they are."""
        metadata = copy.deepcopy(self.metadata)
        metadata["format-version"] = format_version
        metadata.setdefault("last-sequence-number", 0)
        if format_version >= 3:
            metadata.setdefault("next-row-id", 0)
        self._write(metadata)

    def edit(self, change: Callable[[Json], None]) -> None:
        """Write the metadata with what `change` does to it in place: for what no method offers."""
        metadata = copy.deepcopy(self.metadata)
        change(metadata)
        self._write(metadata)

    # --- details ----------------------------------------------------------------------------------

    def _branch_head(self, branch: str | None) -> int | None:
        if branch in (None, "main"):
            return self.current_snapshot_id
        ref = self.metadata.get("refs", {}).get(branch)
        return int(ref["snapshot-id"]) if ref else self.current_snapshot_id

    def _new_snapshot_id(self) -> int:
        # a sequence for each table, and past it in a table that was taken over
        taken = {s["snapshot-id"] for s in self.metadata.get("snapshots") or ()}
        numbers = random.Random(f"{self.metadata.get('table-uuid')} {len(taken)}")
        while (number := numbers.getrandbits(62) + 1) in taken:
            pass
        return number

    def _now(self) -> int:
        if self._clock is not None:
            return self._clock()
        return int(self.metadata["last-updated-ms"]) + TICK_MS

    def _write(self, metadata: Json, now: int | None = None) -> None:
        before = {
            "timestamp-ms": self.metadata["last-updated-ms"],
            "metadata-file": self.new_location(f"metadata/{self.metadata_path.name}"),
        }
        metadata.setdefault("metadata-log", []).append(before)
        metadata["last-updated-ms"] = self._now() if now is None else now
        self.metadata = metadata
        self._write_metadata()

    def _write_metadata(self) -> None:
        self.version += 1
        metadata = self.metadata
        if self.format_version == 1:
            spec = next(
                s
                for s in metadata["partition-specs"]
                if s["spec-id"] == metadata["default-spec-id"]
            )
            metadata = {
                **metadata,
                "schema": self.schema,
                "partition-spec": spec["fields"],
            }
            del metadata["last-sequence-number"]
        raw = json.dumps(metadata, indent=2).encode()
        if "gz" in self.metadata_suffix:
            raw = gzip.compress(raw, mtime=0)
        path = self.directory / "metadata" / f"v{self.version}{self.metadata_suffix}"
        path.write_bytes(raw)
        (self.directory / "metadata" / "version-hint.text").write_text(str(self.version))


def current_metadata(directory: Path) -> Path:
    """Return the metadata file that the version hint names, else that of the highest version."""
    folder = directory / "metadata"
    hint = folder / "version-hint.text"
    files = [p for p in folder.iterdir() if re.search(r"\.metadata\.json(\.gz)?$", p.name)]
    if hint.exists():
        wanted = int(hint.read_text())
        files = [p for p in files if _version_of(p) == wanted]
    return max(files, key=lambda p: (_version_of(p), p.name))


def _version_of(path: Path) -> int:
    match = re.match(r"v?(\d+)", path.name)
    assert match is not None, f"{path.name} is no metadata file's name"
    return int(match[1])


def _summary(commit: Commit, operation: str | None) -> dict[str, str]:
    data = [a.file for a in commit.added if a.file.content == DATA]
    deletes = [a.file for a in commit.added if a.file.content != DATA]
    if operation is None:
        if not deletes and not commit.removed:
            operation = "append"
        else:
            operation = "overwrite" if data else "delete"
    counts = {
        "added-data-files": len(data),
        "added-records": sum(f.record_count for f in data),
        "added-delete-files": len(deletes),
    }
    return {"operation": operation, **{k: str(v) for k, v in counts.items() if v}}


def _assign_row_ids(lines: Sequence[dict[str, Any]], first_row_id: int) -> int:
    """Give each data manifest without a first row id the next ones; return the first free one."""
    for line in lines:
        if line["content"] == DATA and line.get("first_row_id") is None:
            line["first_row_id"] = first_row_id
            first_row_id += (line["added_rows_count"] or 0) + (line["existing_rows_count"] or 0)
    return first_row_id


def _point(metadata: Json, name: str, kind: str, snapshot_id: int, now: int) -> None:
    if name == "main":
        metadata["current-snapshot-id"] = snapshot_id
        log = metadata.setdefault("snapshot-log", [])
        log.append({"timestamp-ms": now, "snapshot-id": snapshot_id})
        if metadata["format-version"] == 1:
            return
    old = metadata.setdefault("refs", {}).get(name, {})
    metadata["refs"][name] = {**old, "snapshot-id": snapshot_id, "type": kind}
