"""Plans are right whatever happens to the files of the manifest cache."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from floeberg.process.storage import open_storage
from floeberg.server.planning import ManifestCache, Plan, SegmentFiles, plan_files
from tests.support.lake import TableWriter, required, schema
from tests.support.scans import RecordingStorage, scan_of
from tests.support.waiting import wait_until

COLUMNS = schema({"id": required("long"), "region": "string"})
FILTERS = (
    None,
    ["=", "region", "r3"],
    ["<", "id", 20],
    ["and", ["=", "region", "r1"], [">", "id", 5]],
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    """A table of data and delete manifests, a dozen in all."""
    directory = tmp_path_factory.mktemp("table")
    table = TableWriter.create(directory, COLUMNS, (("region", "identity"),))
    for commit in range(8):
        table.append([{"id": commit * 10 + i, "region": f"r{i % 5}"} for i in range(10)])
        if commit % 2:
            table.delete_equal([{"id": commit * 10}], ["id"])
    return table


def plans(table: TableWriter, cache: ManifestCache | None = None) -> list[Plan]:
    """Plan once for each filter, with one cache or without."""
    storage = open_storage()
    return [plan_files(scan_of(table, filter_), storage, cache) for filter_ in FILTERS]


@pytest.fixture(scope="module")
def expected(table: TableWriter) -> list[Plan]:
    return plans(table)


def from_disk(directory: Path, max_bytes: int = 1 << 30) -> ManifestCache:
    """A cache that remembers nothing but on disk."""
    return ManifestCache(0, SegmentFiles(directory, max_bytes))


def files_in(directory: Path) -> list[Path]:
    return sorted((directory / "manifests").glob("*.segment"))


def filled(table: TableWriter, directory: Path) -> list[Path]:
    """Fill a cache with the table, and return its files."""
    cache = from_disk(directory)
    plans(table, cache)
    wait_until(lambda: len(files_in(directory)) == 12, "every manifest to be written")
    return files_in(directory)


def test_a_restarted_process_fetches_no_manifest(table, expected, tmp_path):
    filled(table, tmp_path)
    storage = RecordingStorage()

    planned = plan_files(scan_of(table), storage, ManifestCache(files=SegmentFiles(tmp_path)))

    assert planned == expected[0]
    assert len(storage.read_locations) == 1  # the manifest list
    assert planned.trace.manifests_from_disk == 12
    assert (planned.trace.manifests_cached, planned.trace.manifests_fetched) == (0, 0)


def test_what_is_in_memory_is_not_looked_for_on_disk(table, expected, tmp_path):
    filled(table, tmp_path)
    cache = ManifestCache(files=SegmentFiles(tmp_path))
    plans(table, cache)
    for file in files_in(tmp_path):
        file.unlink()

    again = plan_files(scan_of(table), RecordingStorage(), cache)

    assert again == expected[0]
    assert again.trace.manifests_cached == 12


def test_a_table_without_a_uuid_is_not_kept_on_disk(tmp_path):
    table = TableWriter.create(tmp_path / "table", COLUMNS, format_version=1)
    table.append([{"id": 1, "region": "r"}])
    scan = scan_of(table)
    object.__setattr__(scan.metadata, "table_uuid", None)

    plan_files(scan, open_storage(), from_disk(tmp_path))

    assert files_in(tmp_path) == []


def test_copies_of_a_table_in_two_stores_have_files_of_their_own(table, tmp_path):
    cache = from_disk(tmp_path)
    storage = RecordingStorage()

    for store in ("here", "there"):
        plan_files(scan_of(table), storage, cache.within(store))

    assert len(storage.read_locations) == 2 * 13


@pytest.mark.parametrize("seed", range(6))
def test_damaged_files_are_made_anew(seed, table, expected, tmp_path):
    rng = random.Random(seed)
    files = filled(table, tmp_path)
    contents = [file.read_bytes() for file in files]
    for i, file in enumerate(files):
        raw, place = contents[i], rng.randrange(len(contents[i]))
        file.unlink()
        match rng.randrange(4):
            case 0:
                file.write_bytes(raw[:place])
            case 1:
                file.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            case 2:
                file.write_bytes(contents[i - 1])  # another's
            case _:
                file.write_bytes(rng.randbytes(len(raw)))

    cache = from_disk(tmp_path)
    first = plans(table, cache)
    assert first == expected
    assert cache.files is not None
    assert cache.files.damaged == 12

    wait_until(lambda: len(files_in(tmp_path)) == 12, "every manifest to be written again")
    again = plans(table, from_disk(tmp_path))
    assert again == expected
    assert again[0].trace.manifests_from_disk == 12


def test_files_that_have_changed_places_are_made_anew(table, expected, tmp_path):
    files = filled(table, tmp_path)
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, [*contents[1:], contents[0]], strict=True):
        file.unlink()
        file.write_bytes(content)

    cache = from_disk(tmp_path)

    assert plans(table, cache) == expected
    assert cache.files is not None
    assert cache.files.damaged == 12


def test_a_full_disk_costs_nothing_but_the_cache(table, expected, tmp_path):
    written = 0

    def until_full(file: int, parts: Sequence[bytes | memoryview]) -> int:
        nonlocal written
        written += 1
        if written > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(file, parts[0][:1500])

    cache = ManifestCache(0, SegmentFiles(tmp_path, write=until_full))

    assert plans(table, cache) == expected
    assert plans(table, from_disk(tmp_path)) == expected


def test_a_directory_that_cannot_be_used_costs_nothing_but_the_cache(table, expected, tmp_path):
    (tmp_path / "file").write_text("no directory")

    assert plans(table, from_disk(tmp_path / "file")) == expected
    assert (tmp_path / "file").read_text() == "no directory"


# --- processes ------------------------------------------------------------------------------------


def process(code: str, table: TableWriter, directory: Path) -> subprocess.Popen[str]:
    head = """
        import os, pickle, random, sys
        from pathlib import Path
        from tests.server.planning.test_plans_from_disk import *
        directory, metadata = Path(sys.argv[1]), Path(sys.argv[2])
        class Table: metadata_path = metadata
    """
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(head) + textwrap.dedent(code),
            str(directory),
            str(table.metadata_path),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_wrong(table, expected, tmp_path):
    killed = process(
        """
        count = 0
        def die(file, parts):
            global count
            count += 1
            if count == 6:
                os.write(file, b"".join(parts)[:2000])
                os.kill(os.getpid(), 9)
            return os.writev(file, parts)
        plans(Table, ManifestCache(0, SegmentFiles(directory, write=die)))
        """,
        table,
        tmp_path,
    )
    _, errors = killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL, errors
    assert any(name.endswith(".part") for name in os.listdir(tmp_path / "manifests"))

    assert plans(table, from_disk(tmp_path)) == expected
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path / "manifests"))


def test_processes_that_race_for_room_plan_right(table, tmp_path):
    racing = """
        expected = plans(Table)
        rng = random.Random(os.getpid())
        for _ in range(6):
            cache = from_disk(directory, 40_000)  # a few of the twelve
            assert plans(Table, cache) == expected
            for file in rng.sample(files_in(directory), 2) if rng.random() < 0.5 else ():
                file.unlink(missing_ok=True)
    """
    processes = [process(racing, table, tmp_path) for _ in range(3)]

    for running in processes:
        _, errors = running.communicate(timeout=100)
        assert running.returncode == 0, errors
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path / "manifests"))
