"""Generate manifests of delete files: vectors, position deletes of a partition, equality deletes.

They are few beside the data files, and so are written entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.bench.planning.data_manifests import (
    FIRST_SEQUENCE_NUMBER,
    LAST_SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    DataFiles,
    path_of,
)
from tests.bench.planning.tables import BUCKETS, DAYS, ENTRIES_PER_MANIFEST, FIRST_DAY, Deletes
from tests.support.lake import EQUALITY_DELETES, POSITION_DELETES, Entry, Metrics, WrittenFile
from tests.support.lake.manifests import DELETED, EXISTING, Spec, line_of, manifest_bytes
from tests.support.lake.schemas import FILE_PATH_ID, Json
from tests.support.lake.values import to_bytes

_VECTORS_A_FILE = 50
_EVENT_ID = 1


def delete_manifests(
    deletes: Deletes,
    data: Sequence[DataFiles],
    rng: np.random.Generator,
    schema: Json,
    spec: Spec,
    location: str,
) -> Iterator[tuple[bytes, Json]]:
    """Yield the manifests, each with its line of the manifest list but for path and length.

    Delete files are of all ages between the oldest and the newest data file, so that many of them
    apply to a part of their partition only.
    """
    entries = [
        *_vectors(deletes.vectors, data, rng, spec, location),
        *_position_files(deletes.position_files, rng, spec, location),
        *_equality_files(deletes.equality_files, rng, spec, location),
    ]
    for start in range(0, len(entries), ENTRIES_PER_MANIFEST):
        some = entries[start : start + ENTRIES_PER_MANIFEST]
        yield (
            manifest_bytes(3, schema, spec, some, "deletes"),
            line_of("", 0, 1, spec, some, SNAPSHOT_ID, LAST_SEQUENCE_NUMBER),
        )


def _entry(file: WrittenFile, sequence_number: int) -> Entry:
    return Entry(file, EXISTING, SNAPSHOT_ID, sequence_number, sequence_number)


def _vectors(
    count: int, data: Sequence[DataFiles], rng: np.random.Generator, spec: Spec, location: str
) -> Iterator[Entry]:
    """Yield vectors of distinct live files, 50 in a Puffin file as one commit would write them."""
    live = [(m, row) for m in data for row in np.flatnonzero(m.statuses != DELETED).tolist()]
    for number, at in enumerate(rng.choice(len(live), count, replace=False).tolist()):
        files, row = live[at]
        cardinality, size = int(rng.integers(1, 50_000)), int(rng.integers(100, 50_000))
        vector = WrittenFile(
            f"{location}/data/{number // _VECTORS_A_FILE:08}-deletes.puffin",
            POSITION_DELETES,
            "PUFFIN",
            cardinality,
            4_000_000,
            spec.spec_id,
            _partition(int(files.days[row]), int(files.buckets[row])),
            referenced_data_file=path_of(files, location, row),
            content_offset=4 + number % _VECTORS_A_FILE * 50_000,
            content_size_bytes=size,
        )
        yield _entry(vector, LAST_SEQUENCE_NUMBER)


def _position_files(
    count: int, rng: np.random.Generator, spec: Spec, location: str
) -> Iterator[Entry]:
    """Yield position deletes of whole partitions, from before the table was of version 3. Half of
    them say between which paths they delete."""
    for number in range(count):
        day, bucket = _day_and_bucket(rng)
        folder = (
            f"{location}/data/occurred_at_day={np.datetime64(day, 'D')}/account_id_bucket={bucket}"
        )
        first = int(rng.integers(0, 1000))
        bounds = (f"{folder}/{first:05}-", f"{folder}/{first + 200:05}-")
        lower, upper = (to_bytes("string", b) for b in bounds)
        metrics = Metrics()
        if number % 2:
            metrics = Metrics(
                lower_bounds={FILE_PATH_ID: lower}, upper_bounds={FILE_PATH_ID: upper}
            )
        yield _entry(
            WrittenFile(
                f"{folder}/{number:05}-deletes.parquet",
                POSITION_DELETES,
                "PARQUET",
                int(rng.integers(1, 10_000)),
                int(rng.integers(1_000, 1_000_000)),
                spec.spec_id,
                _partition(day, bucket),
                metrics,
            ),
            _sequence_number(rng),
        )


def _equality_files(
    count: int, rng: np.random.Generator, spec: Spec, location: str
) -> Iterator[Entry]:
    """Yield deletes by `event_id` of a partition, half of them without bounds."""
    for number in range(count):
        day, bucket = _day_and_bucket(rng)
        metrics = Metrics()
        if number % 2:
            # the whole table's ids: bounds alone rule nothing out
            metrics = Metrics(
                value_counts={_EVENT_ID: 100},
                null_value_counts={_EVENT_ID: 0},
                lower_bounds={_EVENT_ID: to_bytes("long", 0)},
                upper_bounds={_EVENT_ID: to_bytes("long", 1 << 60)},
            )
        yield _entry(
            WrittenFile(
                f"{location}/data/{number:05}-equality.parquet",
                EQUALITY_DELETES,
                "PARQUET",
                100,
                int(rng.integers(1_000, 100_000)),
                spec.spec_id,
                _partition(day, bucket),
                metrics,
                equality_ids=(_EVENT_ID,),
                sort_order_id=0,
            ),
            _sequence_number(rng),
        )


def _partition(day: int, bucket: int) -> dict[int, int]:
    return {1000: day, 1001: bucket}


def _day_and_bucket(rng: np.random.Generator) -> tuple[int, int]:
    return FIRST_DAY + int(rng.integers(0, DAYS)), int(rng.integers(0, BUCKETS))


def _sequence_number(rng: np.random.Generator) -> int:
    return int(rng.integers(FIRST_SEQUENCE_NUMBER, LAST_SEQUENCE_NUMBER + 1))
