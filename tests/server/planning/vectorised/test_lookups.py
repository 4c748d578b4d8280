"""A lookup finds the values that a dictionary finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.manifests import Strings
from floeberg.server.planning.vectorised.lookups import NumberLookup, StringLookup


def column_of(values: list[bytes]) -> Strings:
    """Return values as a segment has them: as a matrix if they are of one width."""
    data = np.frombuffer(b"".join(values), dtype=np.uint8)
    if values and len({len(v) for v in values}) == 1:
        return Strings(data.reshape(len(values), len(values[0])), None)
    return Strings(data, np.cumsum([0, *map(len, values)]).astype(np.int32))


def assert_finds(known: list[bytes], values: list[bytes]) -> None:
    rows = np.arange(1, len(values))  # not all of them

    places, numbers = StringLookup(pa.array(known, pa.binary())).find(column_of(values), rows)

    found = dict(zip(places.tolist(), numbers.tolist(), strict=True))
    expected = {v: i for i, v in enumerate(known)}
    assert found == {i - 1: expected[values[i]] for i in rows.tolist() if values[i] in expected}


words = st.binary(max_size=3) | st.sampled_from([b"", b"8 bytes.", b"8 bytes.\0", b"and nine."])
longer = st.lists(words | st.just(b"x" * 70), max_size=4).map(b"".join)


@given(st.lists(words | longer, unique=True), st.lists(words | longer))
def test_strings_are_found(known, others):
    assert_finds(known, others + known)


def test_strings_are_told_that_differ_in_more_places_than_are_looked_at():
    known = [b"a" * i + b"b" + b"a" * (199 - i) for i in range(200)]

    assert_finds(known, [b"a" * 200, *known[::-1]])


def test_strings_are_told_from_longer_ones_that_end_alike():
    known = [b"s3://lake/a/000000_0", b"s3://lake/b/000000_0"]

    assert_finds(known, [b"", b"x" + known[0], b"s3://lake/c/000000_0", known[1]])


INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


@given(st.lists(INT64, unique=True), st.lists(INT64))
def test_numbers_are_found(known, others):
    known.sort()
    values = np.array(others + known, dtype=np.int64)

    found = NumberLookup(np.array(known, dtype=np.int64)).find(values)

    places = {v: i for i, v in enumerate(known)}
    assert found.tolist() == [places.get(v, -1) for v in values.tolist()]
