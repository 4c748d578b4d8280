"""Equality of partition tuples.

Spec: "Scan Planning", note 3: floats are equal when their bits are, with every NaN made the same.
So -0.0 and 0.0 are two partitions, and NaN is one; Python's own equality says the opposite.
"""

from __future__ import annotations

import struct

from floeberg.protocol.types import Value


def normalised(value: Value | None) -> Value | None:
    """Return what is equal, and hashes alike, for values that make partitions equal."""
    if not isinstance(value, float):
        return value
    if value != value:
        return "NaN"  # a float field holds no text, so nothing else is equal to it
    return struct.pack("<d", value)
