"""The fast decoder gives what the plain one gives, to the byte, or the same error."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from random import Random
from threading import Barrier

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import FloebergError
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import (
    Inflated,
    ManifestEntry,
    decode_manifest,
    read_manifest,
    walking,
)
from floeberg.protocol.manifests.avro import read_avro
from floeberg.protocol.manifests.decoding import (
    DecodeManifest,
    decode_by_walking,
    decode_plainly,
)
from floeberg.protocol.manifests.found import Strayed
from floeberg.protocol.manifests.named_schema import NotWalkable
from floeberg.protocol.manifests.walked import pack_walk
from floeberg.protocol.manifests.walking import walked
from tests.support.data_manifests import manifest_with
from tests.support.random_manifests import CODECS, damaged, random_manifest

SEEDS = st.integers(0, 1 << 32)


def outcome(decode: DecodeManifest, raw: bytes, manifest: ManifestFile) -> object:
    """Return the bytes of the segment, or the error."""
    try:
        return bytes(decode(raw, manifest).buffer)
    except FloebergError as exc:
        return type(exc), str(exc)


def comparable(entry: ManifestEntry) -> ManifestEntry:
    """Return an entry whose partition compares by what it shows: NaN equals nothing."""
    shown = {i: repr(value) for i, value in entry.file.partition.items()}
    return replace(entry, file=replace(entry.file, partition=shown))


@given(seed=SEEDS)
@settings(max_examples=150)
def test_a_manifest_of_any_writer_decodes_as_plainly(seed):
    raw, manifest = random_manifest(Random(seed))

    assert outcome(decode_by_walking, raw, manifest) == outcome(decode_plainly, raw, manifest)


@pytest.mark.parametrize("codec", CODECS)
@given(seed=SEEDS)
@settings(max_examples=30)
def test_a_damaged_manifest_gives_the_same_error_or_the_same_values(codec, seed):
    random = Random(seed)
    raw, manifest = random_manifest(random, codec)
    raw = damaged(raw, random)

    assert outcome(decode_by_walking, raw, manifest) == outcome(decode_plainly, raw, manifest)


@given(seed=SEEDS)
@settings(max_examples=50)
def test_a_segment_gives_the_entries_that_were_decoded(seed):
    raw, manifest = random_manifest(Random(seed))
    if isinstance(outcome(decode_plainly, raw, manifest), tuple):
        return
    entries = read_manifest(raw, manifest)

    segment = decode_by_walking(raw, manifest)

    assert [comparable(e) for e in segment.entries()] == [comparable(e) for e in entries]
    assert len(segment) == len(entries)


@pytest.mark.parametrize(
    ("bounds", "entries", "per_block"),
    [
        pytest.param(lambda i: {1: bytes([i % 256])}, 3000, 3000, id="many entries a block"),
        pytest.param(lambda i: {1: bytes([i % 256])}, 700, 1, id="a block an entry"),
        pytest.param(lambda i: {1: b"x" * 200_000}, 40, 5, id="more than the heap holds"),
        pytest.param(lambda i: {1: b"x" * 200_000}, 40, 40, id="a block beyond the heap"),
        pytest.param(
            lambda i: dict.fromkeys(range(i % 3, 300), b"%d" % i),
            600,
            100,
            id="hundreds of columns",
        ),
        pytest.param(lambda i: {i: b"0123456789"}, 300, 100, id="another column each"),
        pytest.param(
            lambda i: dict.fromkeys(range(5000), b""), 3, 1000, id="more columns than are walked"
        ),
        pytest.param(lambda i: {k: b"y" * k for k in (i % 7, 9)}, 900, 50, id="short and long"),
    ],
)
def test_manifests_of_unusual_shapes_decode_as_plainly(bounds, entries, per_block):
    raw, manifest = manifest_with(bounds, entries, per_block)

    segment = decode_by_walking(raw, manifest)

    assert segment.buffer == decode_plainly(raw, manifest).buffer
    assert len(segment) == entries


@pytest.mark.parametrize("first_kept", [0, 700, 1500])
def test_entries_of_deleted_files_leave_nothing_behind(first_kept):
    raw, manifest = manifest_with(
        lambda i: {i % 40: b"%d" % i * 5, 50 + i // 600: b"x"},
        entries=1500,
        per_block=90,
        status=lambda i: 1 if i >= first_kept and i % 7 else 2,
    )

    segment = decode_by_walking(raw, manifest)

    assert segment.buffer == decode_plainly(raw, manifest).buffer
    assert len(segment) == sum(i % 7 != 0 for i in range(first_kept, 1500))


@pytest.mark.parametrize("deleted", [[], [3], range(0, 600, 5)])
def test_text_beyond_ascii_decodes_as_plainly(deleted):
    raw, manifest = manifest_with(
        lambda i: {},
        600,
        status=lambda i: 2 if i in deleted else 1,
        path=lambda i: "s3://b/" + "straße" * (i % 3) + "漢字" * (i % 5),
    )

    assert decode_by_walking(raw, manifest).buffer == decode_plainly(raw, manifest).buffer


@given(seed=SEEDS, is_damaged=st.booleans())
@settings(max_examples=30)
def test_blocks_may_be_inflated_by_others_and_before_their_turn(seed, is_damaged):
    random = Random(seed)
    raw, manifest = random_manifest(random)
    raw = damaged(raw, random) if is_damaged else raw

    def at_once(calls: Sequence[Callable[[], Inflated]]) -> Generator[Inflated, None, None]:
        with ThreadPoolExecutor(2) as pool:
            yield from pool.map(lambda call: call(), calls)

    found = outcome(partial(decode_manifest, in_order=at_once), raw, manifest)

    assert found == outcome(decode_plainly, raw, manifest)


def test_threads_decode_side_by_side():
    cases = [manifest_with(lambda i, n=n: {n: b"%d" % i}, 400 + n) for n in range(8)]
    expected = [decode_plainly(*case).buffer for case in cases]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda case: decode_by_walking(*case).buffer, cases * 5))

    assert found == expected * 5


def test_small_manifests_never_load_the_compiler(tmp_path):
    for entries in (100, 200):
        raw, _ = manifest_with(lambda i: {}, entries)
        (tmp_path / f"{entries}.avro").write_bytes(raw)
    code = (
        "import sys, pathlib\n"
        "from floeberg.protocol.files import ManifestFile\n"
        "from floeberg.protocol.manifests import decode_manifest\n"
        "for entries in (100, 200):\n"
        "    raw = pathlib.Path(sys.argv[1], f'{entries}.avro').read_bytes()\n"
        "    manifest = ManifestFile('m.avro', len(raw), 0, sequence_number=1)\n"
        "    assert len(decode_manifest(raw, manifest)) == entries\n"
        "    assert ('wasmtime' in sys.modules) is (entries == 200)\n"
    )

    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_a_walker_walks_what_writers_write():
    """Else everything above would compare the plain decoder with itself."""
    count = 0
    for seed in range(60):
        raw, manifest = random_manifest(Random(seed), "null")
        with contextlib.suppress(Strayed, NotWalkable):
            file = read_avro(raw, "m.avro")
            with walked(file) as walk:
                pack_walk(walk, file, manifest)
            count += 1

    assert count > 36


def test_entries_are_the_same_before_and_after_a_walker_pays():
    raw, manifest = random_manifest(Random(0))
    expected = [comparable(e) for e in read_manifest(raw, manifest)]

    assert expected
    for _ in range(256 // len(expected) + 2):
        found = decode_manifest(raw, manifest).entries()
        assert [comparable(e) for e in found] == expected


def test_threads_that_begin_together_each_decode(monkeypatch):
    raw, manifest = random_manifest(Random(0))
    expected = outcome(decode_plainly, raw, manifest)
    together = Barrier(8)

    def decode(_: int) -> object:
        together.wait()
        return outcome(decode_by_walking, raw, manifest)

    for _ in range(5):
        # as in a process that has decoded nothing yet
        monkeypatch.setattr(walking, "_walkers", walking._Walkers())
        walking._engine.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(decode, range(8))) == [expected] * 8
