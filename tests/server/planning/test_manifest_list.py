"""What a manifest list keeps beside its manifests."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

from floeberg.protocol.files import FieldSummary, ManifestContent, ManifestFile
from floeberg.server.planning.manifest_list import ManifestList


def manifest(number: int, **facts: Any) -> ManifestFile:
    return ManifestFile(f"s3://b/{number}.avro", **{"length": 9000, "spec_id": 0, **facts})


def test_what_entries_inherit_and_the_table_tell_manifests_apart():
    facts: list[dict[str, Any]] = [
        {},
        {"length": 1},
        {"spec_id": 1},
        {"content": ManifestContent.DELETES},
        {"sequence_number": 1},
        {"added_snapshot_id": 1},
        {"first_row_id": 1},
    ]
    several = [manifest(1, **f) for f in facts]
    digests = [
        row.tobytes()
        for listed, table in ((several, "uuid"), (several, None), ([manifest(2)], "uuid"))
        for row in ManifestList(listed, table).digests
    ]

    assert len(set(digests)) == len(digests)
    # and another list says the same of them
    again = ManifestList([manifest(3), *several], "uuid").digests[1:]
    assert [row.tobytes() for row in again] == digests[: len(several)]


def test_its_size_is_about_what_it_takes():
    def read(number: int) -> ManifestFile:
        low, high = (struct.pack("<i", 1000 * number + i) for i in range(2))
        return ManifestFile(
            location=f"s3://lake/warehouse/events/metadata/{number:036}-m0.avro",
            length=10_000 + number,
            spec_id=0,
            sequence_number=1000 + number,
            min_sequence_number=1000 + number,
            added_snapshot_id=(1 << 60) + number,
            added_files_count=500 + number,
            added_rows_count=10**6 + number,
            existing_files_count=0,
            existing_rows_count=0,
            partitions=tuple(FieldSummary(False, False, low, high) for _ in range(3)),
        )

    assert len(ManifestList([read(0)], "uuid").digests) == 1  # what is imported takes more
    tracemalloc.start()
    try:
        listed = ManifestList([read(number) for number in range(500)], "uuid")
        assert len(listed.digests) == 500
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 0.7 < listed.memory_bytes / taken < 1.6
