"""The deletes of a segment's files are those that the plain index finds for one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import (
    Content,
    DataFile,
    DeleteFile,
    FileFormat,
    ManifestContent,
    ManifestFile,
    Metrics,
)
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.metadata_columns import DELETE_FILE_PATH_ID
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.planned import DeleteFiles
from floeberg.protocol.transforms import Bucket, Identity, Transform, UnknownTransform, Void
from floeberg.server.planning.vectorised import SegmentDeletes
from tests.support.plain_planner.delete_index import DeleteIndex
from tests.support.plain_planner.partition_keys import partition_key


def spec(spec_id: int, *fields: tuple[int, Transform]) -> PartitionSpec:
    return PartitionSpec(
        spec_id,
        tuple(PartitionField((i,), 1000 + i, f"p{i}", transform) for i, transform in fields),
    )


SPECS = {
    s.spec_id: s
    for s in (
        spec(0),
        spec(1, (1, Identity())),
        spec(2, (1, Identity())),
        spec(3, (1, Void())),
        spec(4, (1, Identity()), (2, Bucket(16))),
        spec(5, (3, UnknownTransform("zorder[2]")), (1, Identity())),
        spec(6, (1, Identity()), (2, Identity()), (3, Identity())),
    )
}

VALUES: tuple[list[Any], ...] = (
    [0.0, -0.0, math.nan, -math.nan, 1.5],
    [0, 1, 2],
    [-(2**63), 0, 2**63 - 1],
    [False, True],
    ["", "a", "eight888", "nine-long", "größer als acht", "größer als neun"],
    [b"", b"a", b"\0", b"a\0"],
    [Decimal("1.10"), Decimal("-0.01"), Decimal("1.20")],
    [Decimal(2**70).scaleb(-2), Decimal("1.20"), Decimal("0.01")],
)


def manifest(spec_id: int, content: ManifestContent) -> ManifestFile:
    return ManifestFile(f"{content.name}.avro", 1, spec_id, content)


def pack(spec_id: int, files: Sequence[DataFile | DeleteFile], content: ManifestContent) -> Segment:
    entries = [ManifestEntry(EntryStatus.ADDED, None, f) for f in files]
    return pack_entries(entries, manifest(spec_id, content))


PATHS = ["d", "s3://b/d", "s3://b/e", "s3://b/data/1.parquet", "s3://b/data/1.parquet.x", "ü/ä/f"]
SEQUENCES = [0, 1, 2, 2, 3, 3, 1 << 40]
CUTS = [None, 0, 1, 8, 14, 100]


class Table:
    """A few partitions under a few specs, and where each data file is if all is right."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._spec_ids = random.choices(list(SPECS), k=random.randint(1, 2))
        kinds = self._kinds()
        self._partitions = {i: [self._partition(i, kinds) for _ in range(2)] for i in SPECS}
        # a column may change its type between two manifests
        self._others = {i: [self._partition(i, self._kinds())] for i in self._spec_ids}
        self._home = {path: self._chance(2) for path in PATHS}

    def _chance(self, one_of: int) -> bool:
        return self._random.randrange(one_of) == 0

    def _kinds(self) -> list[int]:
        """Return what the values of each source column are, -1 for one without a value."""
        return [self._random.randint(-1, len(VALUES) - 1) for _ in range(4)]

    def _partition(self, spec_id: int, kinds: list[int]) -> dict[int, Any]:
        if self._chance(12):
            return {}
        found: dict[int, Any] = {}
        for f in SPECS[spec_id].fields:
            kind = kinds[f.source_id]
            if kind >= 0:
                found[f.field_id] = None if self._chance(3) else self._random.choice(VALUES[kind])
        return found

    def _segment(self, content: ManifestContent, number: int = 0) -> Segment:
        spec_id = self._random.choice(self._spec_ids)
        make = self._data_file if content is ManifestContent.DATA else self._delete_file
        pool = self._others if self._chance(8) else self._partitions
        files = [
            make(f"delete-{number}-{i}", spec_id, pool[spec_id])
            for i in range(self._random.randint(0, 6))
        ]
        return pack(spec_id, files, content)

    def _partition_of(self, path: str | None, pool: list[dict[int, Any]]) -> dict[int, Any]:
        if path is None or self._chance(20):
            return self._random.choice(pool)
        return pool[self._home[path] % len(pool)]

    def data(self) -> Segment:
        return self._segment(ManifestContent.DATA)

    def deletes(self) -> list[tuple[Segment, list[int]]]:
        """Draw segments of delete manifests, and the rows of each that a filter has kept."""
        segments = [
            self._segment(ManifestContent.DELETES, i) for i in range(self._random.randint(0, 3))
        ]
        return [(s, self.rows(s)) for s in segments]

    def rows(self, segment: Segment) -> list[int]:
        return [i for i in range(len(segment)) if not self._chance(8)]

    def _data_file(self, _: str, spec_id: int, pool: list[dict[int, Any]]) -> DataFile:
        path = self._random.choice(PATHS)
        partition = self._partition_of(path, pool)
        sequence = self._random.choice(SEQUENCES)
        return DataFile(path, FileFormat.PARQUET, 10, 100, spec_id, partition, sequence)

    def _delete_file(self, location: str, spec_id: int, pool: list[dict[int, Any]]) -> DeleteFile:
        kind = self._random.choice(["equality"] * 3 + ["positions"] * 5 + ["vector"])
        path = None
        if kind != "equality" and (kind == "vector" or self._chance(3)):
            path = self._random.choice([None, *PATHS])
        return DeleteFile(
            location,
            Content.EQUALITY_DELETES if kind == "equality" else Content.POSITION_DELETES,
            FileFormat.PUFFIN if kind == "vector" else FileFormat.PARQUET,
            1,
            100,
            spec_id,
            self._partition_of(path, pool),
            self._random.choice(SEQUENCES),
            (1,) if kind == "equality" else (),
            path,
            metrics=self._path_bounds() if kind == "positions" else Metrics(),
        )

    def _path_bounds(self) -> Metrics:
        bounds = [self._path_bound() for _ in range(2)]
        if not self._chance(3):
            bounds.sort(key=lambda b: b or b"")
        if self._chance(3):
            bounds[1] = bounds[0]
        lower, upper = ({} if b is None else {DELETE_FILE_PATH_ID: b} for b in bounds)
        return Metrics(lower_bounds=lower, upper_bounds=upper)

    def _path_bound(self) -> bytes | None:
        length = self._random.choice(CUTS)
        return None if length is None else self._random.choice(PATHS).encode()[:length]


def plainly(
    parts: Sequence[tuple[Segment, Sequence[int]]], segment: Segment, rows: Sequence[int]
) -> list[list[str]]:
    index = DeleteIndex()
    for deletes, kept in parts:
        files = [e.file for e in deletes.entries(kept)]
        index.add([f for f in files if isinstance(f, DeleteFile)], SPECS[deletes.spec_id])
    found = []
    for entry in segment.entries(rows):
        assert isinstance(entry.file, DataFile)
        key = partition_key(SPECS[segment.spec_id], entry.file.partition)
        found.append([d.location for d in index.applying_to(entry.file, key)])
    return found


def by_columns(
    parts: Sequence[tuple[Segment, Sequence[int]]], segment: Segment, rows: Sequence[int]
) -> list[list[str]]:
    deletes = DeleteFiles([(s, np.array(kept, dtype=np.int64)) for s, kept in parts])
    index = SegmentDeletes(deletes, SPECS.__getitem__)
    lists = index.applying_to(segment, np.array(rows, dtype=np.int64))
    return [[d.location for d in deletes.files(numbers)] for numbers in lists]


def assert_agree(
    parts: Sequence[tuple[Segment, Sequence[int]]], segment: Segment, rows: Sequence[int]
) -> None:
    assert outcome(by_columns, parts, segment, rows) == outcome(plainly, parts, segment, rows)


def outcome(
    find: Callable[..., list[list[str]]],
    parts: Sequence[tuple[Segment, Sequence[int]]],
    segment: Segment,
    rows: Sequence[int],
) -> list[list[str]] | str:
    """Return the deletes of each row, or what contradiction was found."""
    try:
        return find(parts, segment, rows)
    except CorruptDeletes as exc:
        return str(exc)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=500)
def test_the_same_deletes_apply_in_the_same_order(seed):
    table = Table(Random(seed))
    parts, segment = table.deletes(), table.data()

    assert_agree(parts, segment, table.rows(segment))


def test_without_deletes_there_is_nothing_to_find():
    segment = pack(
        0, [DataFile("d", FileFormat.PARQUET, 1, 1, 0) for _ in range(3)], ManifestContent.DATA
    )

    lists = SegmentDeletes(DeleteFiles(), SPECS.__getitem__).applying_to(segment, np.arange(3))

    assert lists.counts().tolist() == [0, 0, 0]


def files_of_one_commit(count: int) -> Segment:
    files = [
        DataFile(f"s3://b/p={i % 2}/{i:05}", FileFormat.PARQUET, 1, 1, 1, {1001: i % 2}, 4)
        for i in range(count)
    ]
    return pack(1, files, ManifestContent.DATA)


def positions_between(lower: str, upper: str, p: int, sequence: int = 4) -> DeleteFile:
    bounds = (
        {DELETE_FILE_PATH_ID: lower.encode()},
        {DELETE_FILE_PATH_ID: upper.encode()},
    )
    metrics = Metrics(lower_bounds=bounds[0], upper_bounds=bounds[1])
    content = Content.POSITION_DELETES
    return DeleteFile(
        f"{lower}-{upper}",
        content,
        FileFormat.PARQUET,
        1,
        1,
        1,
        {1001: p},
        sequence,
        metrics=metrics,
    )


def test_bounds_are_not_asked_where_there_would_be_too_many_pairs():
    segment, every = files_of_one_commit(40), np.arange(40)
    found = [positions_between("s3://b/p=0/", f"s3://b/p=0/{i:05}", 0) for i in range(20)]
    deletes = DeleteFiles([(pack(1, found, ManifestContent.DELETES), np.arange(20))])

    exactly = SegmentDeletes(deletes, SPECS.__getitem__).applying_to(segment, every)
    loosely = SegmentDeletes(deletes, SPECS.__getitem__, most_pairs=10).applying_to(segment, every)

    counts = [0 if i % 2 else 20 - min(i, 20) for i in range(40)]
    assert exactly.counts().tolist() == counts
    assert loosely.counts().tolist() == [0 if i % 2 else 20 for i in range(40)]


def test_files_share_the_deletes_that_all_of_them_are_subject_to():
    found = [
        DeleteFile(f"e{i}", Content.EQUALITY_DELETES, FileFormat.PARQUET, 1, 1, 0, {}, 9, (1,))
        for i in range(1000)
    ]
    deletes = DeleteFiles([(pack(0, found, ManifestContent.DELETES), np.arange(1000))])

    lists = SegmentDeletes(deletes, SPECS.__getitem__).applying_to(
        files_of_one_commit(2000), np.arange(2000)
    )

    assert int(lists.counts().sum()) == 2_000_000
    assert len(lists.numbers) == 1000
