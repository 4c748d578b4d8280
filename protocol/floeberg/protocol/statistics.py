"""Statistics files that a table's metadata lists; none is needed to read the table.

Spec: "Table Statistics", "Partition Statistics".
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from floeberg.protocol.document import Document, NullIsEmptyList, TextMap


class BlobMetadata(Document):
    """One blob of a Puffin file: what was computed, over which fields of which snapshot."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: TextMap = Field(default_factory=dict)


class StatisticsFile(Document):
    """A Puffin file of statistics about one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    key_metadata: str | None = Field(default=None, repr=False)
    blob_metadata: Annotated[tuple[BlobMetadata, ...], NullIsEmptyList] = ()


class PartitionStatisticsFile(Document):
    """A file with one row of statistics for each partition of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
