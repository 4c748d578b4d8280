"""A finished commit's manifests and manifest list, and what its snapshot says of them.

Spec: "Snapshots", "Manifest Lists", "First Row ID Assignment".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.lake.commit import Commit, Table, vector_key
from tests.support.lake.manifests import (
    DATA,
    DELETED,
    EXISTING,
    Entry,
    Spec,
    line_of,
    manifest_bytes,
    manifest_list_bytes,
)
from tests.support.lake.metadata import current_schema
from tests.support.lake.schemas import Json

Line = dict[str, Any]
"""A manifest's line of the manifest list, by the spec's names."""


@dataclass
class SnapshotFiles:
    """Writes the manifests and the manifest list of one commit."""

    table: Table
    commit: Commit
    sequence_number: int
    codec: str
    entries_per_manifest: int | None
    lines: list[Line] = field(default_factory=list)

    @property
    def version(self) -> int:
        return int(self.table.metadata["format-version"])

    def write_manifests(self) -> None:
        """Write a manifest a kind of new file and spec, and anew those that a file leaves."""
        groups: dict[tuple[int, int], list[Entry]] = {}
        for added in self.commit.added:
            key = (min(added.file.content, 1), added.file.spec_id)
            entry = Entry(
                added.file,
                snapshot_id=self.commit.snapshot_id,
                sequence_number=added.sequence_number,
            )
            groups.setdefault(key, []).append(entry)
        for (content, spec_id), entries in groups.items():
            size = self.entries_per_manifest or len(entries)
            for at in range(0, len(entries), size):
                self._write_manifest(content, spec_id, entries[at : at + size])
        self._keep_manifests()

    def _keep_manifests(self) -> None:
        touched = self.commit.removed | self.commit.rewritten
        missing = set(touched)
        for line in self.table.lines(self.commit.parent_id):
            entries = [e for e in self.table.entries_of(line) if e.is_live] if touched else []
            names = {vector_key(e.file) for e in entries}
            if not names & touched:
                self.lines.append(line)
                continue
            missing -= names
            self._write_manifest(
                line["content"],
                line["partition_spec_id"],
                [self._kept(e) for e in entries],
                # what it holds has its row ids already
                line.get("first_row_id"),
            )
        if missing:
            raise KeyError(f"no live file {', '.join(sorted(missing))}")

    def _kept(self, entry: Entry) -> Entry:
        if vector_key(entry.file) in self.commit.removed:
            return replace(entry, status=DELETED, snapshot_id=self.commit.snapshot_id)
        return replace(entry, status=EXISTING)

    def _write_manifest(
        self,
        content: int,
        spec_id: int,
        entries: Sequence[Entry],
        first_row_id: int | None = None,
    ) -> None:
        spec = Spec.of(self.table.metadata, spec_id)
        raw = manifest_bytes(
            self.version,
            current_schema(self.table.metadata),
            spec,
            entries,
            "deletes" if content else "data",
            self.codec,
        )
        name = f"metadata/{self.commit.snapshot_id:016x}-m{len(self.lines)}.avro"
        location = self.table.new_location(name)
        self.table.local(location).write_bytes(raw)
        line = line_of(
            location,
            len(raw),
            content,
            spec,
            entries,
            self.commit.snapshot_id,
            self.sequence_number,
        )
        self.lines.append({**line, "first_row_id": first_row_id})

    def assign_row_ids(self, first_row_id: int) -> int:
        """Give each data manifest that has no first row id the next; return the first free one."""
        for line in self.lines:
            if line["content"] == DATA and line.get("first_row_id") is None:
                line["first_row_id"] = first_row_id
                first_row_id += line["added_rows_count"] or 0
                first_row_id += line["existing_rows_count"] or 0
        return first_row_id

    def total_data_files(self) -> int:
        return sum(
            (line["added_files_count"] or 0) + (line["existing_files_count"] or 0)
            for line in self.lines
            if line["content"] == DATA
        )

    def write_list(self) -> str:
        """Write the manifest list; return its location."""
        commit = self.commit
        location = self.table.new_location(f"metadata/snap-{commit.snapshot_id}-1.avro")
        info = {
            "snapshot-id": str(commit.snapshot_id),
            "parent-snapshot-id": str(commit.parent_id or "null"),
            "sequence-number": str(self.sequence_number),
            "format-version": str(self.version),
        }
        raw = manifest_list_bytes(self.version, self.lines, info, self.codec)
        self.table.local(location).write_bytes(raw)
        return location


def summary_of(commit: Commit, operation: str | None) -> Json:
    """Return a snapshot's summary; the operation follows from the changes unless it is given."""
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
