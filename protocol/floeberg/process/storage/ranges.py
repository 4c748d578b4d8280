"""Fetch many byte ranges of one object in few requests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from floeberg.protocol.errors import FloebergError

Range: TypeAlias = tuple[int, int]
"""(start, length) in bytes."""

# One request costs an object store 10-50 ms, in which it streams about a megabyte.
_GAP_BYTES = 256 * 1024
# but beyond this, requests side by side are faster than one
_REQUEST_BYTES = 16 * 1024 * 1024


def coalesce(
    ranges: Sequence[Range], gap_bytes: int = _GAP_BYTES, request_bytes: int = _REQUEST_BYTES
) -> list[Range]:
    """Return ranges, sorted, that cover `ranges`: near ones are joined.

    Each given range lies within one that is returned. Joining adds at most `gap_bytes` between two
    ranges, and stops at `request_bytes`. An empty range needs none.

    >>> coalesce([(100, 50), (0, 40), (50, 60), (1_000_000, 5)])
    [(0, 150), (1000000, 5)]
    """
    joined: list[Range] = []
    for start, length in sorted(r for r in ranges if r[1] > 0):
        if joined:
            last_start, last_length = joined[-1]
            last_stop = last_start + last_length
            stop = max(last_stop, start + length)
            overlaps = start < last_stop
            near = start <= last_stop + gap_bytes and stop - last_start <= request_bytes
            if overlaps or near:
                joined[-1] = (last_start, stop - last_start)
                continue
        joined.append((start, length))
    return joined


def answer(
    ranges: Sequence[Range], parts: Iterator[bytes | FloebergError]
) -> list[bytes] | FloebergError:
    """Return the bytes of each of `ranges`, or the first error, out of the next of `parts`, which
    are what came for each of `coalesce(ranges)`."""
    fetched = coalesce(ranges)
    found: list[bytes] = []
    failed: FloebergError | None = None
    for part in islice(parts, len(fetched)):
        if not isinstance(part, FloebergError):
            found.append(part)
        elif failed is None:
            failed = part
    return cut(ranges, fetched, found) if failed is None else failed


def cut(ranges: Sequence[Range], fetched: Sequence[Range], parts: Sequence[bytes]) -> list[bytes]:
    """Return the bytes of each of `ranges` out of `parts`, the contents of `fetched`, which covers
    them as `coalesce` does."""
    starts = [start for start, _ in fetched]
    out: list[bytes] = []
    for start, length in ranges:
        if length <= 0:
            out.append(b"")
            continue
        i = bisect_right(starts, start) - 1
        offset = start - starts[i]
        part = parts[i]
        whole = offset == 0 and length >= len(part)
        out.append(part if whole else part[offset : offset + length])
    return out
