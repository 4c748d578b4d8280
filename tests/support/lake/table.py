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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.lake import schemas
from tests.support.lake.avro import read_avro
from tests.support.lake.commit import Commit, Positions
from tests.support.lake.files import Rows
from tests.support.lake.manifests import (
    DATA,
    Entry,
    Spec,
    WrittenFile,
    line_of,
    read_manifest,
    read_manifest_list,
)
from tests.support.lake.metadata import (
    add_schema,
    add_spec,
    current_metadata,
    current_schema,
    first_metadata,
    point,
    version_of,
    with_v1_forms,
)
from tests.support.lake.schemas import Json
from tests.support.lake.snapshot import SnapshotFiles, summary_of

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

        - `schema`: Appendix C's JSON, as `schema(...)` makes it
        - `spec`: partition fields as JSON, or `(column, transform)`
        - `location`: where metadata says that the table is, the directory if not given
        - `identifier`: names of the identifier fields
        - `clock`: gives the time in ms since the epoch; without it each change comes a minute later
        """
        directory = Path(directory).absolute()
        location = location or f"file://{directory}"
        schema = {"type": "struct", "schema-id": 0, "fields": schema["fields"]}
        if identifier:
            schema["identifier-field-ids"] = schemas.field_ids(schema, identifier)
        now = clock() if clock else FIRST_MS
        metadata = first_metadata(format_version, location, schema, spec, properties or {}, now)
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
        table = cls(directory, json.loads(text), version_of(path), clock)
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
        return current_schema(self.metadata)

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
        if "manifest-list" not in snapshot:
            return [self._inline_line(m, snapshot_id) for m in snapshot["manifests"]]
        return read_manifest_list(self.local(snapshot["manifest-list"]).read_bytes())

    def _inline_line(self, location: str, snapshot_id: int) -> dict[str, Any]:
        """Return the line that a manifest list would have for a v1 snapshot's own manifest."""
        raw = self.local(location).read_bytes()
        spec = Spec.of(self.metadata, int(read_avro(raw)[1]["partition-spec-id"]))
        inherited = {"sequence_number": 0, "added_snapshot_id": snapshot_id}
        entries = read_manifest(raw, inherited, spec)
        return line_of(location, len(raw), DATA, spec, entries, snapshot_id, 0)

    def entries(self, snapshot_id: int | None) -> list[Entry]:
        """Return the live entries of a snapshot, after inheritance; nothing for no snapshot."""
        return [e for line in self.lines(snapshot_id) for e in self.entries_of(line) if e.is_live]

    def entries_of(self, line: Mapping[str, Any]) -> list[Entry]:
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
        """Make one snapshot of what the block does; if it fails, the table stays as it was.

        - `branch`: None stages the snapshot, so that no ref leads to it; a branch that isn't there
          starts at the current snapshot
        - `operation`: follows from the changes unless given
        - `inline_manifests`: v1 without a manifest list
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
        now = self._now() if timestamp_ms is None else timestamp_ms
        snapshot: Json = {"snapshot-id": commit.snapshot_id}
        if commit.parent_id is not None:
            snapshot["parent-snapshot-id"] = commit.parent_id
        sequence_number = 0
        if self.format_version >= 2:
            sequence_number = metadata.get("last-sequence-number", 0) + 1
            snapshot["sequence-number"] = sequence_number
            metadata["last-sequence-number"] = sequence_number
        snapshot["timestamp-ms"] = now
        files = SnapshotFiles(
            self, commit, sequence_number, self.manifest_codec, self.entries_per_manifest
        )
        files.write_manifests()
        total = {"total-data-files": str(files.total_data_files())}
        snapshot["summary"] = {**summary_of(commit, operation), **total, **summary}
        if self.format_version >= 3:
            first_row_id = metadata.get("next-row-id", 0)
            metadata["next-row-id"] = files.assign_row_ids(first_row_id)
            snapshot["first-row-id"] = first_row_id
            snapshot["added-rows"] = metadata["next-row-id"] - first_row_id
        if inline_manifests:
            snapshot["manifests"] = [line["manifest_path"] for line in files.lines]
        else:
            snapshot["manifest-list"] = files.write_list()
        snapshot["schema-id"] = metadata["current-schema-id"]
        metadata.setdefault("snapshots", []).append(snapshot)
        if branch is not None:
            point(metadata, branch, "branch", commit.snapshot_id, now)
        self._write(metadata, now)

    # --- changing everything else -----------------------------------------------------------------

    def evolve_schema(self, schema: Json) -> int:
        """Make `schema` the current one; return its id. Ids of its fields are taken as they are."""
        metadata = copy.deepcopy(self.metadata)
        schema_id = add_schema(metadata, schema)
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
        spec_id = add_spec(metadata, fields)
        metadata["default-spec-id"] = spec_id
        self._write(metadata)
        return spec_id

    def unpartitioned_spec_id(self) -> int:
        """Return the id of a spec without fields; add one, not as the default, if there is none."""
        for spec in self.metadata["partition-specs"]:
            if not spec["fields"]:
                return int(spec["spec-id"])
        metadata = copy.deepcopy(self.metadata)
        spec_id = add_spec(metadata, [])
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
        point(
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
            metadata = with_v1_forms(metadata)
        raw = json.dumps(metadata, indent=2).encode()
        if "gz" in self.metadata_suffix:
            raw = gzip.compress(raw, mtime=0)
        path = self.directory / "metadata" / f"v{self.version}{self.metadata_suffix}"
        path.write_bytes(raw)
        (self.directory / "metadata" / "version-hint.text").write_text(str(self.version))
