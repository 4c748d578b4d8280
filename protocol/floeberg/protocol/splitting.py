"""Divide data files into byte ranges that can be read apart.

A range begins where the writer said that a row group begins, so no file is opened to find out. The
split is a property of the scan: whoever does it again with the same size gets the same ranges.
Spec: "Data File Fields", `split_offsets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from floeberg.protocol.files import DataFile, FileFormat
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s, Ints, Mask

SPLIT_SIZE_PROPERTY = "read.split.target-size"
DEFAULT_SPLIT_SIZE_BYTES = 128 * 1024 * 1024

_PARQUET = s.FORMATS.index(FileFormat.PARQUET)
_TOO_FEW_AT_ONCE = 16
_MOST = np.iinfo(np.int64).max


def split_size_of(requested: int | None, properties: Mapping[str, str]) -> int:
    """Return the bytes that a task should have; 0 never splits a file.

    What the scan asks for wins over the table's property, and that over Iceberg's default. A
    property that is no number is passed over, as it was never meant for this reader alone.

    >>> split_size_of(None, {"read.split.target-size": "1024"})
    1024
    """
    if requested is not None:
        return max(requested, 0)
    text = properties.get(SPLIT_SIZE_PROPERTY, "")
    return int(text) if text.isdecimal() and int(text) > 0 else DEFAULT_SPLIT_SIZE_BYTES


def split(file: DataFile, size_bytes: int) -> Sequence[tuple[int, int]]:
    """Return (start, length) of each task of `file`: ranges that cover it exactly once, in order.

    Row groups that follow each other share a range as long as it stays within `size_bytes`; one
    that is larger by itself is not cut. A file is left whole when its offsets are missing or can't
    be right (not ascending, outside the file), and when it is not Parquet.

    The first range begins at 0 and not at the first offset, so that a wrong first offset
    loses no row.
    """
    whole = ((0, file.size_bytes),)
    if size_bytes == 0 or file.size_bytes <= size_bytes or file.format is not FileFormat.PARQUET:
        return whole
    offsets = file.split_offsets
    if len(offsets) < 2 or not _are_valid(offsets, file.size_bytes):
        return whole
    ends = (*offsets[1:], file.size_bytes)
    ranges = []
    start, end = 0, ends[0]
    for next_end in ends[1:]:
        if next_end - start > size_bytes:
            ranges.append((start, end - start))
            start = end
        end = next_end
    ranges.append((start, end - start))
    return ranges


def _are_valid(offsets: Sequence[int], file_bytes: int) -> bool:
    ascending = all(a < b for a, b in pairwise(offsets))
    return ascending and offsets[0] >= 0 and offsets[-1] < file_bytes


class Ranges(NamedTuple):
    """Ranges of files: the number of each one's file, its first byte and its bytes; all (n,)."""

    files: Int64s
    starts: Int64s
    lengths: Int64s


def split_rows(parts: Sequence[tuple[Segment, Int64s]], size_bytes: int) -> Ranges:
    """Return the ranges of many files, in their order: what `split` gives for each of them.

    `parts` are segments of data manifests and rows of each; their files count from 0 through all
    parts. Nothing is done a file: those that are divided are so at once, row group by row group.
    """
    sizes = _gathered([_column(segment, s.SIZE_BYTES, rows) for segment, rows in parts])
    divided, offsets = _divisible(parts, sizes, size_bytes)
    files = np.arange(len(sizes))
    if not len(divided):
        return Ranges(files, np.broadcast_to(np.int64(0), sizes.shape), sizes)
    begins = _begins(offsets, sizes[divided], size_bytes)
    # a divided file stands in its list's place once for each range, all others once
    times = np.ones(len(sizes), dtype=np.int64)
    times[divided] = np.add.reduceat(begins, offsets.firsts, dtype=np.int64)
    files = np.repeat(files, times)
    starts = np.zeros(len(files), dtype=np.int64)
    is_first = np.ones(len(files), dtype=np.bool_)
    is_first[1:] = files[1:] != files[:-1]
    begins[offsets.firsts] = False
    starts[~is_first] = offsets.items[begins]
    ends = sizes[files]
    goes_on = ~is_first[1:]
    ends[:-1][goes_on] = starts[1:][goes_on]
    return Ranges(files, starts, ends - starts)


class _Lists(NamedTuple):
    """Lists one after the other: list i is `items[firsts[i] : firsts[i] + counts[i]]`."""

    firsts: Int64s
    counts: Int64s
    items: Int64s


def _divisible(
    parts: Sequence[tuple[Segment, Int64s]], sizes: Int64s, size_bytes: int
) -> tuple[Int64s, _Lists]:
    """Return the numbers of the files that may be divided, and their split offsets."""
    numbers, counts, items = [], [], []
    first = 0
    for segment, rows in parts:
        size = sizes[first : first + len(rows)]
        if size_bytes and len(rows) and size.max() > size_bytes:
            lists = segment.lists(s.SPLIT_OFFSETS)
            is_parquet = _column(segment, s.FORMAT, rows) == _PARQUET
            chosen = np.flatnonzero((size > size_bytes) & is_parquet & (lists[1][rows] > 1))
            found = _lists(*lists, rows[chosen])
            valid = _are_all_valid(found, size[chosen])
            if not valid.all():
                chosen = chosen[valid]
                found = _lists(*lists, rows[chosen])
            numbers.append(chosen + first)
            counts.append(found.counts)
            items.append(found.items)
        first += len(rows)
    count = _gathered(counts)
    return _gathered(numbers), _Lists(np.cumsum(count) - count, count, _gathered(items))


def _lists(starts: Int64s, counts: Int64s, items: Ints, rows: Int64s) -> _Lists:
    count = counts[rows]
    firsts = np.cumsum(count) - count
    places = np.repeat(starts[rows] - firsts, count) + np.arange(count.sum())
    return _Lists(firsts, count, items[places].astype(np.int64))


def _are_all_valid(lists: _Lists, sizes: Int64s) -> Mask:
    """Say of each list of two or more whether it ascends within its file."""
    if not len(sizes):
        return np.zeros(0, dtype=np.bool_)
    ascends = np.ones(len(lists.items), dtype=np.bool_)
    ascends[1:] = lists.items[1:] > lists.items[:-1]
    ascends[lists.firsts] = lists.items[lists.firsts] >= 0
    is_inside = lists.items[lists.firsts + lists.counts - 1] < sizes
    valid: Mask = np.logical_and.reduceat(ascends, lists.firsts) & is_inside
    return valid


def _begins(lists: _Lists, sizes: Int64s, size_bytes: int) -> Mask:
    """Say of each row group whether a range begins with it; the first of a file always does."""
    firsts, counts, items = lists
    begins = np.zeros(len(items), dtype=np.bool_)
    begins[firsts] = True
    start = np.zeros(len(firsts), dtype=np.int64)
    last = firsts + counts - 1
    at = firsts
    while len(at) > _TOO_FEW_AT_ONCE:
        at = at + 1
        end = np.where(at < last, items[np.minimum(at + 1, last)], sizes)
        is_cut = end - start > size_bytes
        begins[at] = is_cut
        start = np.where(is_cut, items[at], start)
        goes_on = at < last
        if not goes_on.all():
            at, start, last, sizes = at[goes_on], start[goes_on], last[goes_on], sizes[goes_on]
    for place, begin, final, size in zip(
        at.tolist(), start.tolist(), last.tolist(), sizes.tolist(), strict=True
    ):
        # few files of many row groups: from range to range
        ends = np.append(items[place + 1 : final + 1], size)
        k, most = 0, len(ends) - 1
        while k < most:
            # the first row group that would make the range too long begins the next one
            too_far = np.searchsorted(ends, min(begin + size_bytes, _MOST), side="right")
            k = max(int(too_far) - 1, k)
            if k < most:
                begin = int(ends[k])
                k += 1
                begins[place + k] = True
    return begins


def _column(segment: Segment, field_id: int, rows: Int64s) -> Int64s:
    """Return the values of rows of a column that every entry has."""
    column = segment.numbers(field_id)
    if column is None:
        return np.zeros(len(rows), dtype=np.int64)
    return column.values[rows].astype(np.int64, copy=False)


def _gathered(arrays: Sequence[Int64s]) -> Int64s:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)
