"""Generated tables are what they say, to whoever reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pyiceberg.table import StaticTable

from floeberg.embedded import open_table
from tests.bench.planning.data_manifests import data_files, data_manifest, path_of
from tests.bench.planning.generating import existing_or_generated
from tests.bench.planning.tables import COLUMNS, BenchTable, Deletes, empty_metadata
from tests.support.lake.manifests import ADDED, DELETED, Spec, read_manifest

LOCATION = "s3://lake/t"
WITH_DELETES = BenchTable(300, Deletes(vectors=60, position_files=800, equality_files=800))


@pytest.mark.parametrize("table", [BenchTable(1), WITH_DELETES], ids=["v2", "v3"])
def test_a_manifest_holds_what_its_columns_say(table: BenchTable):
    metadata = empty_metadata(table, LOCATION)
    spec = Spec.of(metadata, 0)
    files = data_files(np.random.default_rng(7), LOCATION, 0, 500, 1000)

    raw = data_manifest(files, table.format_version, metadata["schemas"][0], spec, LOCATION)

    inherited = {"sequence_number": files.added_sequence_number, "added_snapshot_id": 5}
    entries = read_manifest(raw, inherited, spec)
    assert len(entries) == len(files) == 500
    statuses = set()
    for row, entry in enumerate(entries):
        file = entry.file
        statuses.add(entry.status)
        assert file.location == path_of(files, LOCATION, row)
        assert f"account_id_bucket={files.buckets[row]}/" in file.location
        assert file.partition == {1000: files.days[row], 1001: files.buckets[row]}
        assert entry.status == files.statuses[row]
        assert entry.sequence_number == files.sequence_numbers[row]
        assert file.record_count == files.record_counts[row]
        assert set(file.metrics.value_counts) == set(range(1, len(COLUMNS) + 1))
        for field_id, lower in file.metrics.lower_bounds.items():
            name = list(COLUMNS)[field_id - 1]
            assert lower == files.columns[f"lower of {name}"][row].tobytes()
    assert statuses == {0, ADDED, DELETED}


@pytest.mark.parametrize("table", [BenchTable(40), WITH_DELETES], ids=["v2", "v3"])
def test_the_same_table_is_generated_twice_alike(table: BenchTable, tmp_path: Path):
    metadata_file = existing_or_generated(table, tmp_path)
    first = {path.name: path.read_bytes() for path in metadata_file.parent.iterdir()}
    shutil.rmtree(table.directory(tmp_path))

    existing_or_generated(table, tmp_path)

    second = {path.name: path.read_bytes() for path in metadata_file.parent.iterdir()}
    assert first == second


def test_a_table_that_is_there_is_left_alone(tmp_path: Path):
    metadata_file = existing_or_generated(BenchTable(5), tmp_path)
    metadata_file.write_text("{}")

    assert existing_or_generated(BenchTable(5), tmp_path) == metadata_file
    assert metadata_file.read_text() == "{}"


def test_floeberg_and_pyiceberg_plan_the_same_files(tmp_path: Path):
    metadata_file = str(existing_or_generated(BenchTable(400), tmp_path))

    ours = {t.data_file.location for t in open_table(metadata_file).scan().plan_files()}

    theirs = {
        t.file.file_path for t in StaticTable.from_metadata(metadata_file).scan().plan_files()
    }
    assert ours == theirs
    assert 300 < len(ours) < 400


def test_deletes_of_each_kind_apply_to_some_files(tmp_path: Path):
    metadata_file = existing_or_generated(WITH_DELETES, tmp_path)

    tasks = open_table(str(metadata_file)).scan().plan_files()

    attached = [d for t in tasks for d in t.delete_files]
    assert sum(d.is_deletion_vector for d in attached) == 60
    assert any(d.equality_ids for d in attached)
    assert any(d.referenced_data_file is None and not d.equality_ids for d in attached)
    assert json.loads(metadata_file.read_text())["next-row-id"] == sum(
        t.data_file.record_count for t in tasks
    )
