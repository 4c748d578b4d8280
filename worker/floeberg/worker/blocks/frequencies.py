"""How often things were asked for lately, about, in little memory: a sketch that counts.

It is the "TinyLFU" of Einziger, Friedman and Manes: each thing has four counters, which it shares
with others by chance, and the smallest of them is its count, which may be too high and never too
low. After a while all are halved: what was popular once is not for ever.
"""

from __future__ import annotations

import struct

import numpy as np

_PLACES = struct.Struct("<IIII")
_MOST = 15
# Both many: a scan of ten times what there is room for must not wear out the counts of what is hot,
# by making others look popular or by halving.
_COUNTERS_EACH = 64
_LEAST_COUNTERS, _MOST_COUNTERS = 1 << 10, 1 << 24
_ASKED_EACH = 16


class Frequencies:
    """Counts up to 15 of things that are named by digests; made for about `things` of them. Not
    safe to share between threads.
    """

    def __init__(self, things: int) -> None:
        wanted = min(max(things * _COUNTERS_EACH, _LEAST_COUNTERS), _MOST_COUNTERS)
        width = 1 << (wanted - 1).bit_length()
        self._mask = width - 1
        self._counters = bytearray(width)
        self._period = max(things, _LEAST_COUNTERS // _COUNTERS_EACH) * _ASKED_EACH
        self._added = 0

    def add(self, digest: bytes) -> None:
        """Count one more of the thing with `digest`, which has 16 bytes at least."""
        counters, mask = self._counters, self._mask
        places = [place & mask for place in _PLACES.unpack_from(digest)]
        count = min(counters[place] for place in places)
        if count < _MOST:
            for place in places:
                if counters[place] == count:
                    counters[place] = count + 1
        self._added += 1
        if self._added >= self._period:
            self._added //= 2
            np.frombuffer(counters, np.uint8)[:] >>= 1

    def of(self, digest: bytes) -> int:
        """Return how often it was counted lately, or somewhat more."""
        counters, mask = self._counters, self._mask
        places: tuple[int, ...] = _PLACES.unpack_from(digest)
        return min(counters[place & mask] for place in places)
