"""`python -m tests.bench.deletes`: what it costs to find the deletes of a plan's files.

From the delete files' segments to the lists of all data files: the index is made in each round.
Data files are in 28 days and 16 buckets, and 1,000 of them to a commit. Each holds an eighth of the
values of the column that equality deletes compare, `wide` deletes all of them and narrow ones few.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.protocol.files import Content, FileFormat, ManifestContent, ManifestFile
from floeberg.protocol.manifests import PartitionKind, Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s, Packer
from floeberg.protocol.manifests.packing import pack_lists, segment_facts
from floeberg.protocol.metadata_columns import DELETE_FILE_PATH_ID
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.planned import DeleteFiles
from floeberg.protocol.schema import Schema
from floeberg.protocol.transforms import Bucket, Day
from floeberg.protocol.types import LongType, NestedField
from floeberg.server.planning.vectorised import SegmentDeletes

PARTITIONED = PartitionSpec(
    1, (PartitionField((1,), 1000, "day", Day()), PartitionField((2,), 1001, "bucket", Bucket(16)))
)
UNPARTITIONED = PartitionSpec(0, ())
_SPECS = {spec.spec_id: spec for spec in (UNPARTITIONED, PARTITIONED)}
_SCHEMA = Schema((NestedField(1, "id", LongType()),))
_VALUES = 1 << 20
_DAYS, _BUCKETS, _COMMIT = 28, 16, 1000


@dataclass(frozen=True)
class Lake:
    """Segments of data files, and of delete files."""

    data: Sequence[Segment]
    deletes: Sequence[Segment]


@dataclass(frozen=True)
class Counts:
    """How many deletes there are of each kind."""

    vectors: int = 0
    of_a_file: int = 0
    in_a_partition: int = 0
    equality: int = 0
    wide_equality: int = 0
    everywhere: int = 0

    def __str__(self) -> str:
        found = asdict(self).items()
        return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in found if n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most-files", type=int, default=1_000_000)
    arguments = parser.parse_args()
    table = RichTable("files", "manifests", "deletes", "ms", "of it the index", "pairs")
    mixed = Counts(20_000, 6_000, 4_000, wide_equality=5_000, everywhere=10)
    for files, manifests, counts in (
        (100_000, 7, Counts(vectors=20_000, wide_equality=5_000)),
        (100_000, 7, Counts(vectors=20_000, equality=5_000)),
        (100_000, 1_000, Counts(vectors=20_000, wide_equality=5_000)),
        (1_000_000, 63, Counts(vectors=20_000)),
        (1_000_000, 63, Counts(of_a_file=6_000)),
        (1_000_000, 63, Counts(in_a_partition=4_000)),
        (1_000_000, 63, Counts(wide_equality=5_000)),
        (1_000_000, 63, Counts(equality=5_000)),
        (1_000_000, 63, Counts(everywhere=1_000)),
        (1_000_000, 63, mixed),
        (100_000, 1_000, mixed),
    ):
        if files <= arguments.most_files:
            lake = bench_lake(files, manifests, counts)
            table.add_row(
                f"{files:,}", f"{manifests:,}", str(counts), *_cells(lake, arguments.rounds)
            )
    Console(width=150).print("CPU time, medians:", table)


def _cells(lake: Lake, rounds: int) -> list[str]:
    whole, indexing, pairs = [], [], 0
    for _ in range(rounds):
        began = time.process_time()
        deletes = DeleteFiles([(part, np.arange(len(part))) for part in lake.deletes])
        index = SegmentDeletes(deletes, _SPECS.__getitem__, _SCHEMA)
        indexing.append(time.process_time() - began)
        lists = [index.applying_to(part, np.arange(len(part))) for part in lake.data]
        whole.append(time.process_time() - began)
        pairs = sum(int(found.counts().sum()) for found in lists)
    seconds = [statistics.median(times) for times in (whole, indexing)]
    return [*(f"{second * 1000:.0f}" for second in seconds), f"{pairs:,}"]


def bench_lake(files: int, manifests: int, counts: Counts) -> Lake:
    """Return the columns of a table's manifests, with as many deletes of each kind as `counts`."""
    r = random.Random(files)
    paths = [_path(r, i) for i in range(files)]
    edges = np.linspace(0, files, manifests + 1).astype(np.int64).tolist()
    data = [_data(paths, first, stop) for first, stop in pairwise(edges)]
    found = []
    for count, make in (
        (counts.vectors, _vectors),
        (counts.of_a_file, _of_a_file),
        (counts.in_a_partition, _in_a_partition),
        (counts.equality, _equality),
        (counts.wide_equality, _wide_equality),
        (counts.everywhere, _everywhere),
    ):
        if count:
            found.append(make(r, paths, count))
    return Lake(data, found)


def _path(r: random.Random, i: int) -> str:
    return (
        f"s3://lake/db/events/data/day=2023-11-{i % _DAYS + 1:02}/bucket={i % _BUCKETS}/"
        f"{i % 1000:05}-{i // _COMMIT}-{r.getrandbits(128):032x}-00001.parquet"
    )


def _data(paths: Sequence[str], first: int, stop: int) -> Segment:
    packer = _packer(PARTITIONED, ManifestContent.DATA, stop - first)
    files = np.arange(first, stop)
    _own(packer, paths[first:stop], files, files // _COMMIT, FileFormat.PARQUET, Content.DATA)
    _values(packer, files, _VALUES // 8)
    return Segment(packer.finish())


def _vectors(r: random.Random, paths: Sequence[str], count: int) -> Segment:
    files = np.array(r.sample(range(len(paths)), count))
    return _deletes(files, FileFormat.PUFFIN, Content.POSITION_DELETES, names=paths)


def _of_a_file(r: random.Random, paths: Sequence[str], count: int) -> Segment:
    files = np.array(r.sample(range(len(paths)), count))
    return _deletes(files, FileFormat.PARQUET, Content.POSITION_DELETES, names=paths)


def _in_a_partition(r: random.Random, paths: Sequence[str], count: int) -> Segment:
    files = np.array(r.sample(range(len(paths)), count))
    return _deletes(files, FileFormat.PARQUET, Content.POSITION_DELETES, bounds=paths)


def _equality(r: random.Random, paths: Sequence[str], count: int) -> Segment:
    files = np.array(r.sample(range(len(paths)), count))
    return _deletes(files, FileFormat.PARQUET, Content.EQUALITY_DELETES)


def _wide_equality(r: random.Random, paths: Sequence[str], count: int) -> Segment:
    files = np.array(r.sample(range(len(paths)), count))
    return _deletes(files, FileFormat.PARQUET, Content.EQUALITY_DELETES, values=_VALUES)


def _everywhere(r: random.Random, paths: Sequence[str], count: int) -> Segment:
    files = np.array(r.sample(range(len(paths)), count))
    return _deletes(
        files, FileFormat.PARQUET, Content.EQUALITY_DELETES, values=_VALUES, spec=UNPARTITIONED
    )


def _deletes(
    files: Int64s,
    format_: FileFormat,
    content: Content,
    *,
    names: Sequence[str] = (),
    bounds: Sequence[str] = (),
    values: int = 10,
    spec: PartitionSpec = PARTITIONED,
) -> Segment:
    """Return deletes of the commits after those of `files`, in their partitions."""
    packer = _packer(spec, ManifestContent.DELETES, len(files))
    locations = [f"s3://lake/db/events/data/{i:08}-deletes" for i in files.tolist()]
    _own(packer, locations, files, files // _COMMIT + 1, format_, content, spec)
    if names:
        named = [names[i] for i in files.tolist()]
        _strings(packer, (s.OWN, s.REFERENCED_DATA_FILE), named)
    if content is Content.EQUALITY_DELETES:
        _values(packer, files, values)
        pack_lists(
            packer, s.EQUALITY_IDS, np.ones(len(files), np.int64), np.ones(len(files), np.int64)
        )
    if bounds:
        # each of a dozen files of one partition
        last = len(bounds) - 1
        later = [bounds[min(i + 12 * _DAYS * _BUCKETS, last)] for i in files.tolist()]
        ranges = [sorted((bounds[i], path)) for i, path in zip(files.tolist(), later, strict=True)]
        _strings(packer, (s.LOWER_BOUNDS, DELETE_FILE_PATH_ID), [first for first, _ in ranges])
        _strings(packer, (s.UPPER_BOUNDS, DELETE_FILE_PATH_ID), [last for _, last in ranges])
    return Segment(packer.finish())


def _packer(spec: PartitionSpec, content: ManifestContent, rows: int) -> Packer:
    manifest = ManifestFile("s3://lake/m.avro", 1, spec.spec_id, content)
    kinds = [(f.field_id, str(PartitionKind.INTEGER), 0) for f in spec.fields]
    return Packer(rows, segment_facts(manifest, kinds))


def _own(
    packer: Packer,
    locations: Sequence[str],
    files: Int64s,
    sequences: Int64s,
    format_: FileFormat,
    content: Content,
    spec: PartitionSpec = PARTITIONED,
) -> None:
    same = np.ones(len(files), dtype=np.int64)
    for field_id, values in (
        (s.STATUS, same),
        (s.CONTENT, same * int(content)),
        (s.SEQUENCE_NUMBER, sequences),
        (s.FORMAT, same * s.FORMATS.index(format_)),
        (s.RECORD_COUNT, same * 100),
        (s.SIZE_BYTES, same * 10**6),
    ):
        packer.numbers((s.OWN, field_id), values)
    _strings(packer, (s.OWN, s.LOCATION), locations)
    if spec.fields:
        packer.numbers((s.PARTITION, 1000), 19_662 + files % _DAYS)
        packer.numbers((s.PARTITION, 1001), files % _BUCKETS)


def _values(packer: Packer, files: Int64s, width: int) -> None:
    """Add statistics of the column that equality deletes compare."""
    lower = files * 7919 % max(_VALUES - width, 1)
    sizes = np.full(len(files), 8)
    packer.numbers((s.VALUE_COUNTS, 1), np.full(len(files), 100))
    packer.numbers((s.NULL_VALUE_COUNTS, 1), np.zeros(len(files), dtype=np.int64))
    for metric, values in ((s.LOWER_BOUNDS, lower), (s.UPPER_BOUNDS, lower + width)):
        packer.strings((metric, 1), sizes, values.view(np.uint8))


def _strings(packer: Packer, key: tuple[int, int], values: Sequence[str]) -> None:
    lengths = np.array([len(v) for v in values], dtype=np.int64)
    packer.strings(key, lengths, np.frombuffer("".join(values).encode(), dtype=np.uint8))


if __name__ == "__main__":
    main()
