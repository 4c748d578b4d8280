"""Generate the metadata of a table: its manifests, their list, and the table's own file."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from rich.progress import track

from tests.bench.planning.data_manifests import (
    LAST_SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    DataFiles,
    data_files,
    data_manifest,
)
from tests.bench.planning.delete_manifests import delete_manifests
from tests.bench.planning.tables import ENTRIES_PER_MANIFEST, BenchTable, empty_metadata
from tests.support.avro_container import SYNC
from tests.support.lake import DATA
from tests.support.lake.manifests import ADDED, DELETED, EXISTING, Spec, manifest_list_bytes
from tests.support.lake.schemas import Json
from tests.support.lake.values import to_bytes

_DATA_LOCATION = "s3://analytics-lake/warehouse/bench/events"


def existing_or_generated(table: BenchTable, warehouse: Path) -> Path:
    """Return the table's metadata file; generates the table when it is not there yet.

    It appears whole or not at all. The same table has the same bytes wherever it is generated, but
    for the warehouse's own path.
    """
    wanted = table.metadata_file(warehouse)
    if wanted.exists():
        return wanted
    directory = table.directory(warehouse)
    unfinished = directory.with_name(f"{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / "metadata").mkdir(parents=True)
    _generate(table, f"file://{directory}", unfinished / "metadata")
    unfinished.rename(directory)
    return wanted


def _generate(table: BenchTable, location: str, folder: Path) -> None:
    metadata = empty_metadata(table, location)
    (schema,) = metadata["schemas"]
    spec = Spec.of(metadata, 0)
    lines: list[Json] = []
    made: list[DataFiles] = []
    next_row_id = 0
    for number, files in enumerate(
        _shown(_data(table), f"generating {table.name}", total=_manifests(table))
    ):
        raw = data_manifest(files, table.format_version, schema, spec, _DATA_LOCATION)
        line = _line(files, spec)
        if table.format_version >= 3:
            line["first_row_id"] = next_row_id
            next_row_id += line["added_rows_count"] + line["existing_rows_count"]
        lines.append(_written(folder, location, f"{_uuid(table, 0)}-m{number}.avro", raw, line))
        if table.deletes:
            made.append(files)
    if table.deletes:
        rng = np.random.default_rng([table.files, 1])
        found = delete_manifests(table.deletes, made, rng, schema, spec, _DATA_LOCATION)
        for number, (raw, line) in enumerate(found):
            lines.append(_written(folder, location, f"{_uuid(table, 1)}-m{number}.avro", raw, line))
    raw = manifest_list_bytes(
        table.format_version, lines, {"format-version": str(table.format_version)}
    )
    name = f"snap-{SNAPSHOT_ID}-1-{_uuid(table, 0)}.avro"
    _write(folder / name, raw)
    _add_snapshot(metadata, f"{location}/metadata/{name}", next_row_id)
    (folder / "v1.metadata.json").write_text(json.dumps(metadata))
    (folder / "version-hint.text").write_text("1")


def _shown(files: Iterator[DataFiles], title: str, total: int) -> Iterable[DataFiles]:
    """Return the files with their progress on the terminal, where it takes a moment."""
    return track(files, title, total) if total > 1 else files


def _uuid(table: BenchTable, commit: int) -> uuid.UUID:
    # some engines cache only files that are named by one
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{table.name}/{commit}")


def _manifests(table: BenchTable) -> int:
    return -(-table.files // ENTRIES_PER_MANIFEST)


def _data(table: BenchTable) -> Iterator[DataFiles]:
    for number in range(_manifests(table)):
        first = number * ENTRIES_PER_MANIFEST
        count = min(ENTRIES_PER_MANIFEST, table.files - first)
        # each manifest by itself: a table's first ones don't depend on how many follow
        rng = np.random.default_rng([table.files, 0, number])
        yield data_files(rng, _DATA_LOCATION, first, count, table.files)


def _written(folder: Path, location: str, name: str, raw: bytes, line: Json) -> Json:
    _write(folder / name, raw)
    path = f"{location}/metadata/{name}"
    return {**line, "manifest_path": path, "manifest_length": len(raw)}


def _write(path: Path, avro: bytes) -> None:
    # an Avro file ends with its sync marker, which is random: the same one makes the same file
    path.write_bytes(avro.replace(avro[-len(SYNC) :], SYNC))


def _line(files: DataFiles, spec: Spec) -> Json:
    """Return the manifest list's line for a manifest of data files, but for its path."""
    line: Json = {
        "partition_spec_id": spec.spec_id,
        "content": DATA,
        "sequence_number": files.added_sequence_number,
        "min_sequence_number": int(files.sequence_numbers.min()),
        "added_snapshot_id": SNAPSHOT_ID,
        "partitions": [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": to_bytes("int", int(values.min())),
                "upper_bound": to_bytes("int", int(values.max())),
            }
            for values in (files.days, files.buckets)
        ],
        "key_metadata": None,
    }
    for name, status in {"added": ADDED, "existing": EXISTING, "deleted": DELETED}.items():
        of_status = files.statuses == status
        line[f"{name}_files_count"] = int(of_status.sum())
        line[f"{name}_rows_count"] = int(files.record_counts[of_status].sum())
    return line


def _add_snapshot(metadata: Json, manifest_list: str, next_row_id: int) -> None:
    now = metadata["last-updated-ms"]
    snapshot = {
        "snapshot-id": SNAPSHOT_ID,
        "sequence-number": LAST_SEQUENCE_NUMBER,
        "timestamp-ms": now,
        "manifest-list": manifest_list,
        "summary": {"operation": "overwrite"},
        "schema-id": 0,
    }
    if metadata["format-version"] >= 3:
        snapshot |= {"first-row-id": 0, "added-rows": next_row_id}
        metadata["next-row-id"] = next_row_id
    metadata |= {
        "last-sequence-number": LAST_SEQUENCE_NUMBER,
        "current-snapshot-id": SNAPSHOT_ID,
        "snapshots": [snapshot],
        "snapshot-log": [{"timestamp-ms": now, "snapshot-id": SNAPSHOT_ID}],
        "refs": {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}},
    }
