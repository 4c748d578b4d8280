"""`make bench-manifests`: what a manifest costs to decode, to keep, to prune and to hand out.

Decoders are timed in turns on one manifest, by CPU time an entry; pruning by columns on the same
manifest as often as makes a million entries, each time with another filter. A list of manifests is
pruned by columns and one by one. Tickets are of all files of the manifest, written and opened.
"""

from __future__ import annotations

import argparse
import random
import statistics
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from floeberg.protocol.expressions.binding import bind
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import TRUE
from floeberg.protocol.expressions.projection import project_inclusive
from floeberg.protocol.files import FieldSummary, ManifestFile
from floeberg.protocol.manifests import Segment, decode_plainly
from floeberg.protocol.manifests.decoding import decode_by_walking
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.plan_codec import decode_plan, encode_plan
from floeberg.protocol.planned import PlannedFiles, References
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.schema import Schema
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.transforms import Bucket, Day
from floeberg.protocol.types import (
    DateType,
    DecimalType,
    DoubleType,
    Json,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
)
from floeberg.server.planning.vectorised import PartitionSummaries, SegmentFilter
from tests.support.avro_container import container
from tests.support.plain_planner.summaries import manifest_may_match
from tests.support.plan_strategies import METADATA, SCHEMA

_TYPES: list[PrimitiveType] = [
    LongType(),
    DoubleType(),
    StringType(),
    DateType(),
    TimestampType(),
    DecimalType(9, 2),
]
_FIRST_MICROS, _DAY_MICROS = 1_700_000_000_000_000, 86_400_000_000
_MILLION = 1_000_000
_LISTED = 10_000
_NOWHERE = StorageConfig()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=16_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    console = Console(width=110)
    decoding = RichTable("columns", "codec", "as objects", "as columns", "ratio", "kept")
    for columns in (10, 18):
        for codec in ("deflate", "zstandard", "null"):
            raw, manifest = bench_manifest(arguments.entries, columns, codec)
            decoding.add_row(str(columns), codec, *_decoding_cells(raw, manifest, arguments.rounds))
    console.print("µs of CPU an entry, medians:", decoding)
    raw, manifest = bench_manifest(arguments.entries, 18, "null")
    segment = decode_by_walking(raw, manifest)
    pruning = RichTable("filter", "ms a million entries", "kept of them")
    for title, filter_ in _FILTERS.items():
        pruning.add_row(title, *_pruning_cells(segment, filter_, arguments.rounds))
    console.print("Pruning, CPU time, medians:", pruning)
    lists = RichTable("filter", "ms a list", "one by one", "ratio", "kept")
    for title in ("days", "days, a bucket"):
        lists.add_row(title, *_list_cells(_FILTERS[title], arguments.rounds))
    console.print(f"Pruning a list of {_LISTED:,} manifests, CPU time, medians:", lists)
    tickets = RichTable("tickets that", "bytes a task", "written, µs a task", "opened, µs a task")
    for title, by_manifests in (("list files", False), ("name manifests", True)):
        tickets.add_row(title, *_ticket_cells(segment, manifest, by_manifests, arguments.rounds))
    console.print("Tickets, CPU time, medians:", tickets)


def _decoding_cells(raw: bytes, manifest: ManifestFile, rounds: int) -> list[str]:
    entries = len(decode_by_walking(raw, manifest))  # compiles
    plain, fast = [], []
    for turn in range(rounds):
        if turn < 2:  # slow, and steady
            plain.append(_cpu_seconds(lambda: decode_plainly(raw, manifest)))
        fast.append(_cpu_seconds(lambda: decode_by_walking(raw, manifest)))
    slow, quick = (statistics.median(t) / entries * 1e6 for t in (plain, fast))
    size = decode_by_walking(raw, manifest).size_bytes / entries
    return [f"{slow:.0f}", f"{quick:.1f}", f"{slow / quick:.0f}x", f"{size:.0f} bytes an entry"]


def _pruning_cells(
    segment: Segment, filter_: Callable[[random.Random], Json], rounds: int
) -> list[str]:
    schema, spec = bench_schema(18), bench_spec()
    times, kept = max(_MILLION // len(segment), 1), []

    def prune(chosen: Json) -> None:
        compiled = SegmentFilter(bind(expression_from_json(chosen), schema), spec, schema)
        found = [len(compiled.kept_data_files(segment).rows) for _ in range(times)]
        kept.append(sum(found) / times / len(segment))

    filters = [filter_(random.Random(turn)) for turn in range(rounds)]
    seconds = [_cpu_seconds(partial(prune, chosen)) for chosen in filters]
    to_million = _MILLION / times / len(segment)
    return [f"{statistics.median(seconds) * 1000 * to_million:.0f}", f"{statistics.mean(kept):.0%}"]


def _list_cells(filter_: Callable[[random.Random], Json], rounds: int) -> list[str]:
    schema, spec = bench_schema(18), bench_spec()
    types = spec.partition_type(schema)
    manifests = list(_listed(random.Random(1)))
    summaries = PartitionSummaries(manifests)
    at_once, one_by_one, kept = [], [], []
    for turn in range(rounds):
        chosen = bind(expression_from_json(filter_(random.Random(turn))), schema)
        projected = project_inclusive(chosen, spec, schema)
        began = time.process_time()
        found = summaries.may_match(projected, spec, types)
        at_once.append(time.process_time() - began)
        began = time.process_time()
        plainly = [manifest_may_match(projected, spec, types, listed) for listed in manifests]
        one_by_one.append(time.process_time() - began)
        assert found.tolist() == plainly
        kept.append(float(found.mean()))
    fast, slow = (statistics.median(seconds) * 1000 for seconds in (at_once, one_by_one))
    return [f"{fast:.2f}", f"{slow:.0f}", f"{slow / fast:.0f}x", f"{statistics.mean(kept):.0%}"]


def _listed(r: random.Random) -> Iterator[list[FieldSummary]]:
    """Yield the summaries of manifests of a few files each, of one day and several buckets."""
    for i in range(_LISTED):
        day, buckets = 19662 + i % 28, sorted(r.choices(range(16), k=4))
        yield [
            FieldSummary(False, False, struct.pack("<i", low), struct.pack("<i", high))
            for low, high in ((day, day), (buckets[0], buckets[-1]))
        ]


def _ticket_cells(
    segment: Segment, manifest: ManifestFile, by_manifests: bool, rounds: int
) -> list[str]:
    rows = np.arange(len(segment))
    kept = PlannedFiles(
        segment, rows, (TRUE,), np.zeros_like(rows), References.none(len(rows)), manifest
    )
    plan = ReadPlan(METADATA, METADATA.current_schema_id, SCHEMA, PlannedTasks([kept]), _NOWHERE)
    written = [
        _cpu_seconds(lambda: encode_plan(plan, by_manifests=by_manifests)) for _ in range(rounds)
    ]
    raw = encode_plan(plan, by_manifests=by_manifests)
    opened = [_cpu_seconds(lambda: decode_plan(raw)) for _ in range(rounds)]
    to_micros = 1e6 / len(rows)
    return [
        f"{len(raw) / len(rows):.2f}",
        *(f"{statistics.median(seconds) * to_micros:.2f}" for seconds in (written, opened)),
    ]


def _cpu_seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


_FILTERS: dict[str, Callable[[random.Random], Json]] = {
    "none": lambda r: ["true"],
    "a long": lambda r: ["<", "c6", r.randint(0, 10**9)],
    "three numbers": lambda r: [
        "and",
        ["<", "c6", r.randint(0, 10**9)],
        [">", "c1", r.random() * 1000],
        ["<", "c12", r.randint(0, 10**9)],
    ],
    "a text": lambda r: ["=", "c2", f"cust-{r.randint(0, 10**8):08}"],
    "a decimal": lambda r: ["<", "c5", r.randint(0, 10**4)],
    "days": lambda r: [
        "and",
        [">=", "c4", "2023-11-20T00:00:00"],
        ["<", "c4", f"2023-11-{r.randint(21, 30)}T00:00:00"],
    ],
    "days, a bucket": lambda r: [
        "and",
        [">=", "c4", "2023-11-20T00:00:00"],
        ["<", "c4", f"2023-11-{r.randint(21, 30)}T00:00:00"],
        ["=", "c6", r.randint(0, 10**9)],
    ],
}


# --- what is decoded ------------------------------------------------------------------------------


def bench_schema(columns: int) -> Schema:
    """Return a schema of columns `c1`, `c2`, … of six types in turn."""
    return Schema(
        tuple(NestedField(i, f"c{i}", _TYPES[i % len(_TYPES)]) for i in range(1, columns + 1))
    )


def bench_spec() -> PartitionSpec:
    day = PartitionField((4,), 1000, "day", Day())
    return PartitionSpec(0, (day, PartitionField((6,), 1001, "bucket", Bucket(16))))


def bench_manifest(entries: int, columns: int, codec: str) -> tuple[bytes, ManifestFile]:
    """Return a manifest of data files with statistics of all columns, in blocks of about 64 KiB."""
    records = list(_records(random.Random(1), entries, columns))
    raw = container(_ENTRY, records, codec=codec, records_per_block=90 if columns > 12 else 130)
    return raw, ManifestFile(
        "s3://lake/db/events/metadata/m0.avro",
        len(raw),
        0,
        sequence_number=3,
        added_snapshot_id=3051729675574597004,
    )


def _field(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "field-id": field_id}


def _optional(name: str, field_id: int, type_: Any) -> dict[str, Any]:
    return _field(name, field_id, ["null", type_])


def _map(key_id: int, value: str) -> dict[str, Any]:
    fields = [_field("key", key_id, "int"), _field("value", key_id + 1, value)]
    entry = {"type": "record", "name": f"k{key_id}_v{key_id + 1}", "fields": fields}
    return {"type": "array", "logicalType": "map", "items": entry}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


_ENTRY = _record(
    "manifest_entry",
    _field("status", 0, "int"),
    _optional("snapshot_id", 1, "long"),
    _optional("sequence_number", 3, "long"),
    _optional("file_sequence_number", 4, "long"),
    _field(
        "data_file",
        2,
        _record(
            "r2",
            _field("content", 134, "int"),
            _field("file_path", 100, "string"),
            _field("file_format", 101, "string"),
            _field(
                "partition",
                102,
                _record("r102", _optional("day", 1000, "int"), _optional("bucket", 1001, "int")),
            ),
            _field("record_count", 103, "long"),
            _field("file_size_in_bytes", 104, "long"),
            _optional("column_sizes", 108, _map(117, "long")),
            _optional("value_counts", 109, _map(119, "long")),
            _optional("null_value_counts", 110, _map(121, "long")),
            _optional("nan_value_counts", 137, _map(138, "long")),
            _optional("lower_bounds", 125, _map(126, "bytes")),
            _optional("upper_bounds", 128, _map(129, "bytes")),
            _optional("key_metadata", 131, "bytes"),
            _optional("split_offsets", 132, {"type": "array", "items": "long"}),
            _optional("equality_ids", 135, {"type": "array", "items": "int"}),
            _optional("sort_order_id", 140, "int"),
        ),
    ),
)


def _records(r: random.Random, entries: int, columns: int) -> Iterator[dict[str, Any]]:
    ids = range(1, columns + 1)
    for i in range(entries):
        day, rows = i % 28, r.randint(50_000, 2_000_000)
        bounds = {c: _bounds(r, c, day) for c in ids}
        maps = {
            "column_sizes": {c: r.randint(10**4, 10**7) for c in ids},
            "value_counts": dict.fromkeys(ids, rows),
            "null_value_counts": {c: 0 if c % 3 else r.randint(0, 1000) for c in ids},
            "nan_value_counts": {c: 0 for c in ids if c % 6 == 1},
            "lower_bounds": {c: low for c, (low, _) in bounds.items()},
            "upper_bounds": {c: high for c, (_, high) in bounds.items()},
        }
        data_file = {
            "content": 0,
            "file_path": f"s3://lake/db/events/data/day=2023-11-{day + 1:02}/bucket={i % 16}/"
            f"{i:05}-7-{r.getrandbits(128):032x}-00001.parquet",
            "file_format": "PARQUET",
            "partition": {"day": 19662 + day, "bucket": i % 16},
            "record_count": rows,
            "file_size_in_bytes": r.randint(10**7, 5 * 10**8),
            "split_offsets": [4, 128 * 2**20][: 1 + i % 2],
            "sort_order_id": 0,
            **{
                name: [{"key": k, "value": v} for k, v in by_id.items()]
                for name, by_id in maps.items()
            },
        }
        yield {"status": 1, "snapshot_id": None, "data_file": data_file}


def _bounds(r: random.Random, column: int, day: int) -> tuple[bytes, bytes]:
    match _TYPES[column % len(_TYPES)]:
        case LongType():
            low = r.randint(0, 10**9)
            return struct.pack("<q", low), struct.pack("<q", low + r.randint(0, 10**6))
        case DoubleType():
            fraction = r.random() * 1000
            return struct.pack("<d", fraction), struct.pack("<d", fraction + 100)
        case StringType():
            return b"cust-%08d" % r.randint(0, 10**8), b"cust-99999999"
        case DateType():
            low = r.randint(0, 30_000)
            return struct.pack("<i", low), struct.pack("<i", low + 10)
        case TimestampType():
            low = _FIRST_MICROS + day * _DAY_MICROS + r.randint(0, _DAY_MICROS // 2)
            return struct.pack("<q", low), struct.pack("<q", low + _DAY_MICROS // 4)
        case _:
            low = r.randint(1, 10**6)
            return low.to_bytes(4, "big").lstrip(b"\0"), (low + 10**5).to_bytes(4, "big")


if __name__ == "__main__":
    main()
