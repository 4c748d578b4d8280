"""Generate manifests of data files, with numpy: a million entries in half a minute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tests.bench.planning.layouts import (
    Bytes,
    Integers,
    Layout,
    big_endian,
    digits,
    hexadecimal,
    joined,
    raw,
    varints,
)
from tests.bench.planning.tables import BUCKETS, COLUMNS, DAYS, FIRST_DAY
from tests.support.avro_container import SYNC, compress, long, prefixed
from tests.support.lake.manifests import ADDED, DELETED, EXISTING, Spec, manifest_bytes
from tests.support.lake.schemas import Json

SNAPSHOT_ID = 3051729675574597004
FIRST_SEQUENCE_NUMBER, LAST_SEQUENCE_NUMBER = 64, 120
"""Those of the oldest and the newest file; in between they grow with the manifests."""

_BLOCK_ROWS = 85  # about the 64,000 bytes of Java's Avro writer
_DAY_MICROS = 86_400_000_000
_LATE_DAYS = 3
_FLOATS = ("price", "discount", "latency", "score")
_BOUND_WIDTHS = {"long": 8, "timestamptz": 8, "double": 8, "int": 4, "date": 4, "decimal(12, 2)": 3}
_TEXT_WIDTHS = {"country": 2, "city": 12, "product": 16, "session": 16, "agent": 16}
_FIRST_MANTISSA = 1 << 20  # a number from here takes four bytes as a varint, up to 1 << 27


@dataclass(frozen=True)
class DataFiles:
    """The data files of one manifest, a value or a row of bytes each."""

    paths: Bytes
    days: Integers
    buckets: Integers
    statuses: Integers
    record_counts: Integers
    added_sequence_number: int
    """What the manifest gives to the files that it added."""
    sequence_numbers: Integers
    """What readers find after inheritance."""
    columns: dict[str, Bytes]
    """What the slots of the layouts hold."""
    layout_numbers: Integers

    def __len__(self) -> int:
        return len(self.days)


def data_files(
    rng: np.random.Generator, location: str, first: int, count: int, total: int
) -> DataFiles:
    """Return the files `first` to `first + count` of a table that has `total`, as one manifest has
    them."""
    numbers = np.arange(first, first + count)
    late = rng.integers(0, _LATE_DAYS + 1, count)
    days = FIRST_DAY + np.clip(numbers * DAYS // total - late, 0, DAYS - 1)
    buckets = rng.integers(0, BUCKETS, count)
    # of the first half of the table, a part was there before
    chance = rng.random(count)
    is_old = (chance < 0.3) & (numbers < total // 2)
    statuses = np.where(is_old, EXISTING, np.where(chance > 0.96, DELETED, ADDED))
    numbered = statuses != ADDED
    added = LAST_SEQUENCE_NUMBER - FIRST_SEQUENCE_NUMBER
    added = FIRST_SEQUENCE_NUMBER + 1 + added * first // total
    older = rng.integers(FIRST_SEQUENCE_NUMBER, added, count)
    record_counts = rng.integers(_FIRST_MANTISSA, 8 * _FIRST_MANTISSA, count)
    # below the usual split size, so that a file is one task to everybody
    sizes = rng.integers(64 * _FIRST_MANTISSA, 128 * _FIRST_MANTISSA, count)
    has_two_groups = rng.random(count) < 0.5
    has_score = rng.random(count) < 0.9
    columns = {
        "status": varints(statuses, 1),
        "sequence_number": varints(older, 2),
        "day": varints(days, 3),
        "bucket": varints(buckets, 1),
        "record_count": varints(record_counts, 4),
        "file_size": varints(sizes, 4),
        "second_offset": varints(sizes // 2, 4),
    }
    columns["path"] = _paths(rng, location, numbers, days, buckets)
    columns["short_path"] = np.delete(columns["path"], _bucket_place(location), axis=1)
    for name in COLUMNS:
        columns[f"size of {name}"] = varints(
            rng.integers(_FIRST_MANTISSA, 8 * _FIRST_MANTISSA, count), 4
        )
        columns[f"nulls of {name}"] = varints(rng.integers(64, 8192, count), 2)
    for name, (lower, upper) in _bounds(rng, numbers, days).items():
        columns[f"lower of {name}"], columns[f"upper of {name}"] = lower, upper
    choices = (numbered, has_two_groups, buckets >= 10, has_score)
    layout_numbers = sum(choice.astype(np.int64) << i for i, choice in enumerate(choices))
    return DataFiles(
        columns["path"],
        days,
        buckets,
        statuses,
        record_counts,
        added,
        np.where(numbered, older, added),
        columns,
        np.asarray(layout_numbers),
    )


def path_of(files: DataFiles, location: str, row: int) -> str:
    """Return the path of a file as its entry has it."""
    wide = files.paths[row].tobytes()
    if files.buckets[row] >= 10:
        return wide.decode()
    at = _bucket_place(location)
    return (wide[:at] + wide[at + 1 :]).decode()


def data_manifest(
    files: DataFiles, format_version: int, schema: Json, spec: Spec, location: str
) -> bytes:
    """Return the Avro file of a manifest, deflated as Java does."""
    records: list[bytes] = [b""] * len(files)
    for number, layout in enumerate(_layouts(format_version, files.paths.shape[1])):
        rows = np.flatnonzero(files.layout_numbers == number)
        matrix = layout.records(files.columns, rows)
        width, all_bytes = matrix.shape[1], matrix.tobytes()
        for i, row in enumerate(rows.tolist()):
            records[row] = all_bytes[i * width : (i + 1) * width]
    # a manifest without an entry ends with its sync marker, which is random
    header = manifest_bytes(format_version, schema, spec, [], "data")[: -len(SYNC)]
    out = [header, SYNC]
    for start in range(0, len(records), _BLOCK_ROWS):
        block = records[start : start + _BLOCK_ROWS]
        out += [long(len(block)), prefixed(compress("deflate", b"".join(block))), SYNC]
    return b"".join(out)


# --- columns --------------------------------------------------------------------------------------


def _paths(
    rng: np.random.Generator, location: str, numbers: Integers, days: Integers, buckets: Integers
) -> Bytes:
    count = len(numbers)
    dates = raw(days.astype("datetime64[D]").astype("S10"))
    octets = rng.integers(0, 256, (count, 16), dtype=np.uint8)
    parts: list[bytes | Bytes] = [
        location.encode() + b"/data/occurred_at_day=",
        dates,
        b"/account_id_bucket=",
        digits(buckets, 2),
        b"/",
        digits(numbers % 1000, 5),
        b"-",
        digits(numbers // 1000, 5),
        b"-",
        hexadecimal(octets[:, :4]),
        *[p for i in (4, 6, 8) for p in (b"-", hexadecimal(octets[:, i : i + 2]))],
        b"-",
        hexadecimal(octets[:, 10:]),
        b"-00001.parquet",
    ]
    return joined(parts, count)


def _bucket_place(location: str) -> int:
    """Return where a path has the first of the two digits of its bucket."""
    return len(f"{location}/data/occurred_at_day=2025-01-01/account_id_bucket=")


def _bounds(
    rng: np.random.Generator, numbers: Integers, days: Integers
) -> dict[str, tuple[Bytes, Bytes]]:
    count = len(numbers)

    def drawn(low: int, high: int) -> Integers:
        return rng.integers(low, high, count)

    def longs(low: Integers, high: Integers) -> tuple[Bytes, Bytes]:
        return raw(low.astype("<i8")), raw(high.astype("<i8"))

    def ints(low: Integers, high: Integers) -> tuple[Bytes, Bytes]:
        return raw(low.astype("<i4")), raw(high.astype("<i4"))

    def texts(prefix: bytes, width: int, low: Integers, high: Integers) -> tuple[Bytes, Bytes]:
        first, last = (joined([prefix, digits(v, width)], count) for v in (low, high))
        return first, last

    first_micros = days * _DAY_MICROS + drawn(0, _DAY_MICROS // 4)
    last_micros = days * _DAY_MICROS + drawn(_DAY_MICROS // 2, _DAY_MICROS)
    lag = drawn(1_000_000, 60_000_000)
    amounts = drawn(1 << 15, 1 << 22)
    quantities, statuses, cities = drawn(0, 10_000), drawn(0, 10), drawn(0, 10**8)
    bounds = {
        "event_id": longs(numbers * 1_000_000, numbers * 1_000_000 + 999_999),
        "account_id": longs(drawn(0, 10**5), drawn(9 * 10**7, 10**8)),
        "occurred_at": longs(first_micros, last_micros),
        "received_at": longs(first_micros + lag, last_micros + lag),
        "amount": (
            big_endian(amounts, 3),
            big_endian(amounts + drawn(0, 1 << 22), 3),
        ),
        "quantity": ints(quantities, quantities + 1000),
        "country": (joined([b"A", digits(statuses, 1)], count), joined([b"ZZ"], count)),
        "city": texts(b"city", 8, cities, cities + 10**6),
        "product": texts(b"prod-", 11, drawn(0, 10**10), drawn(10**10, 2 * 10**10)),
        "session": (
            hexadecimal(rng.integers(0, 8, (count, 8), dtype=np.uint8)),
            hexadecimal(rng.integers(248, 256, (count, 8), dtype=np.uint8)),
        ),
        "agent": texts(b"Mozilla/5.0 ", 4, drawn(0, 10), drawn(9000, 10_000)),
        "status": ints(100 + statuses, 500 + statuses),
        "ship_date": ints(days, days + drawn(1, 30)),
        "revision": longs(drawn(0, 100), drawn(100, 10_000)),
    }
    for name in _FLOATS:
        low = rng.random(count) * 900
        bounds[name] = raw(low.astype("<f8")), raw((low + rng.random(count) * 100).astype("<f8"))
    return bounds


# --- layouts, in the order of the fields that manifest_bytes writes -------------------------------

_NULL, _VALUE = long(0), long(1)
_END = long(0)


def _layouts(format_version: int, path_width: int) -> Iterator[Layout]:
    """Yield the layouts by number, whose bits are the choices in `data_files`."""
    for choices in product((False, True), repeat=4):
        yield _layout(format_version, path_width, *reversed(choices))


def _layout(
    format_version: int,
    path_width: int,
    is_numbered: bool,
    has_two_groups: bool,
    has_long_path: bool,
    has_score: bool,
) -> Layout:
    layout = Layout()
    layout.slot("status", 1)
    layout.put(_VALUE + varints(np.array([SNAPSHOT_ID]), 9).tobytes() if is_numbered else _NULL)
    for _ in ("sequence_number", "file_sequence_number"):
        layout.put(_VALUE if is_numbered else _NULL)
        if is_numbered:
            layout.slot("sequence_number", 2)
    layout.put(long(0))  # content
    layout.text(*("path", path_width) if has_long_path else ("short_path", path_width - 1))
    layout.put(prefixed(b"PARQUET"))
    layout.put(_VALUE)
    layout.slot("day", 3)
    layout.put(_VALUE)
    layout.slot("bucket", 1)
    layout.slot("record_count", 4)
    layout.slot("file_size", 4)
    ids = {name: field_id for field_id, name in enumerate(COLUMNS, 1)}
    scored = [name for name in ids if has_score or name != "score"]
    _map(layout, {ids[n]: (f"size of {n}", 4) for n in ids})
    _map(layout, {ids[n]: ("record_count", 4) for n in ids})
    # without a score, all are null
    nulls = {ids[n]: (f"nulls of {n}", 2) for n in ids}
    _map(layout, nulls if has_score else {**nulls, ids["score"]: ("record_count", 4)})
    _map(layout, {ids[n]: None for n in _FLOATS if n in scored})
    for side in ("lower", "upper"):
        widths = {n: _TEXT_WIDTHS.get(n) or _BOUND_WIDTHS[COLUMNS[n]] for n in scored}
        _map(layout, {ids[n]: (f"{side} of {n}", widths[n]) for n in scored}, of_bytes=True)
    layout.put(_NULL)  # key_metadata
    layout.put(_VALUE + long(1 + has_two_groups) + long(4))
    if has_two_groups:
        layout.slot("second_offset", 4)
    layout.put(_END)
    layout.put(_NULL)  # equality_ids
    layout.put(_VALUE + long(0))  # sort_order_id
    layout.put(_NULL)  # referenced_data_file
    if format_version >= 3:
        layout.put(_NULL * 3)  # first_row_id, content_offset, content_size_in_bytes
    return layout


def _map(
    layout: Layout, slots: dict[int, tuple[str, int] | None], *, of_bytes: bool = False
) -> None:
    """Add a map by field id: a slot of a width each, or 0."""
    layout.put(_VALUE + long(len(slots)))
    for field_id, slot in slots.items():
        layout.put(long(field_id))
        if slot is None:
            layout.put(long(0))
        elif of_bytes:
            layout.text(*slot)
        else:
            layout.slot(*slot)
    layout.put(_END)
