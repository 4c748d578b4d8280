"""Divide data files into byte ranges that can be read apart.

A range begins where the writer said that a row group begins, so no file is opened to find out. The
split is a property of the scan: whoever plans it again with the same size gets the same ranges.
Spec: "Data File Fields", `split_offsets`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from floeberg.protocol.files import DataFile, FileFormat

SPLIT_SIZE_PROPERTY = "read.split.target-size"
DEFAULT_SPLIT_SIZE_BYTES = 128 * 1024 * 1024


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
