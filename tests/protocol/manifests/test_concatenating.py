from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.files import DataFile, FileFormat, ManifestContent, ManifestFile, Metrics
from floeberg.protocol.manifests import (
    EntryStatus,
    ManifestEntry,
    Segment,
    concat_segments,
    decode_manifest,
    read_manifest,
)
from floeberg.protocol.manifests.packing import pack_entries
from tests.support.random_manifests import random_manifest

MANIFEST = ManifestFile("s3://b/m.avro", 100, 3)


def segment_of(*partitions: dict[int, Any], **facts: Any) -> Segment:
    files = [
        DataFile(f"s3://b/{i}", FileFormat.PARQUET, 1, 1, 3, partition=p, **facts)
        for i, p in enumerate(partitions)
    ]
    return pack_entries([ManifestEntry(EntryStatus.ADDED, 7, f) for f in files], MANIFEST)


@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 100), max_size=4))
def test_parts_of_a_manifest_make_the_whole_to_the_byte(seed, cuts):
    raw, manifest = random_manifest(Random(seed), "null")
    try:
        entries = read_manifest(raw, manifest)
        expected = pack_entries(entries, manifest)
    except FloebergError:
        return
    places = [0, *sorted(cut % (len(entries) + 1) for cut in cuts), len(entries)]
    parts = [entries[a:b] for a, b in pairwise(places)]

    whole = concat_segments([pack_entries(part, manifest) for part in parts])

    if whole is None:  # a part has tuples that are missing, and none that says of what
        assert any(part and not any(e.file.partition for e in part) for part in parts)
        assert expected.partition
        return
    assert whole.buffer == expected.buffer


@given(seeds=st.lists(st.integers(0, 10**6), min_size=1, max_size=4))
def test_several_manifests_keep_their_entries_in_order(seeds):
    segments = []
    for seed in seeds:
        raw, manifest = random_manifest(Random(seed), "null")
        try:
            segments.append(decode_manifest(raw, replace(manifest, content=ManifestContent.DATA)))
        except FloebergError:
            continue
    alike = [s for s in segments if s.spec_id == segments[0].spec_id]
    whole = concat_segments(alike) if alike else None

    if whole is not None:
        # a NaN is not equal to itself
        assert repr(whole.entries()) == repr([e for segment in alike for e in segment.entries()])


def test_what_only_some_have_is_null_in_the_others():
    with_metrics = segment_of({}, metrics=Metrics(value_counts={1: 5}, lower_bounds={2: b"long"}))
    with_more = segment_of({}, sort_order_id=4, split_offsets=(4, 9), key_metadata=b"k")

    whole = concat_segments([with_metrics, segment_of({}), with_more])

    assert whole is not None
    files = [entry.file for entry in whole.entries()]
    assert files == [e.file for s in (with_metrics, segment_of({}), with_more) for e in s.entries()]


def test_partitions_of_other_fields_or_kinds_are_not_put_together():
    number = segment_of({1000: 7})

    assert concat_segments([number, segment_of({1000: None}), number]) is not None
    assert concat_segments([number, segment_of({1000: "7"})]) is None
    assert concat_segments([number, segment_of({1000: 7, 1001: 8})]) is None
    assert concat_segments([number, segment_of({})]) is None
    long_decimal = segment_of({1000: Decimal(10) ** 30})
    assert concat_segments([segment_of({1000: Decimal(10)}), long_decimal]) is None
    hundredths = segment_of({1000: Decimal("1.00")})
    assert concat_segments([segment_of({1000: Decimal(10)}), hundredths]) is None


def test_one_without_entries_adds_none():
    filled, empty = segment_of({1000: 7}), pack_entries([], MANIFEST)

    whole = concat_segments([empty, filled, empty])

    assert whole is not None
    assert whole.buffer == filled.buffer
    assert concat_segments([empty, empty]) is not None


@pytest.mark.parametrize("rows", [1, 8, 9])
def test_missing_tuples_stay_missing(rows):
    some = segment_of(*[{1000: 7}] * rows, {})

    whole = concat_segments([some, segment_of({1000: 8})])

    assert whole is not None
    assert [e.file.partition for e in whole.entries()] == [*[{1000: 7}] * rows, {}, {1000: 8}]
