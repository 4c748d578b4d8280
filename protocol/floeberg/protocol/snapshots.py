"""Snapshots of a table, the names that point at them, and the log of which was current when.

Spec: "Snapshots", "Snapshot References", "Table Metadata Fields".
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from floeberg.protocol.document import Document, NullIsEmptyList, TextMap
from floeberg.protocol.types import Json

MAIN_BRANCH = "main"


class Snapshot(Document):
    """The state of a table at one time.

    Its manifests stand in the file `manifest_list` or, in old v1 tables, one by one in
    `manifests`; a snapshot with neither breaks the spec. `sequence_number` is 0 in v1.
    `schema_id` is the schema that was current when the snapshot was made, where the writer
    recorded it.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    manifest_list: str | None = None
    manifests: Annotated[tuple[str, ...], NullIsEmptyList] = ()
    summary: TextMap = Field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None

    @property
    def names_manifests(self) -> bool:
        """Whether the snapshot says where its manifests are; an empty `manifests` says so too."""
        return self.manifest_list is not None or "manifests" in self.model_fields_set

    @property
    def operation(self) -> str:
        """What the commit did: append (also when not recorded), replace, overwrite or delete."""
        return self.summary.get("operation", "append")


class RefType(StrEnum):
    BRANCH = "branch"
    TAG = "tag"


def _lower(raw: Json) -> Json:
    return raw.lower() if isinstance(raw, str) else raw


class SnapshotRef(Document):
    """What a branch or tag points at, and how long it is to be kept."""

    snapshot_id: int
    type: Annotated[RefType, BeforeValidator(_lower)]
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    @property
    def is_branch(self) -> bool:
        return self.type is RefType.BRANCH


class SnapshotLogEntry(Document):
    """From `timestamp_ms` on, the snapshot was the table's current one."""

    timestamp_ms: int
    snapshot_id: int


class MetadataLogEntry(Document):
    """Until `timestamp_ms`, the file was the table's metadata."""

    timestamp_ms: int
    metadata_file: str
