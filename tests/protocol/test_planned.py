"""Deletes are files by number, made once each; lists of numbers are cut without copying any."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.files import Content, DeleteFile, FileFormat, ManifestContent, ManifestFile
from floeberg.protocol.manifests import EntryStatus, ManifestEntry, Segment
from floeberg.protocol.manifests.packing import pack_entries
from floeberg.protocol.planned import DeleteFiles, References


def segment(name: str, files: int) -> Segment:
    entries = [
        ManifestEntry(
            EntryStatus.ADDED,
            1,
            DeleteFile(
                f"{name}{i}.parquet", Content.POSITION_DELETES, FileFormat.PARQUET, 1, 10, spec_id=0
            ),
        )
        for i in range(files)
    ]
    manifest = ManifestFile(f"{name}.avro", 10, spec_id=0, content=ManifestContent.DELETES)
    return pack_entries(entries, manifest)


def test_deletes_are_numbered_through_the_segments() -> None:
    deletes = DeleteFiles(
        [(segment("a", 3), np.array([0, 2])), (segment("b", 2), np.array([0, 1]))]
    )

    found = deletes.files([3, 0, 2, 1, 3])

    names = [file.location.removesuffix(".parquet") for file in found]
    assert len(deletes) == 4
    assert names == ["b1", "a0", "b0", "a2", "b1"]
    assert found[0] is found[4] is deletes.files(np.array([3]))[0]


def test_no_deletes_have_no_files() -> None:
    assert len(DeleteFiles()) == 0
    assert DeleteFiles().files([]) == []


def test_lists_are_cut_by_rows() -> None:
    lists = References.of_flat(np.array([0, 2, 2, 3]), np.array([4, 5, 9]))

    rest = lists.between(1, 3)

    assert [part.tolist() for part in rest] == [[], [9]]
    assert [part.tolist() for part in lists] == [[4, 5], [], [9]]
    assert rest.used().tolist() == [9]
    assert len(References.none(2)) == 2
    assert References.none(2)[1].tolist() == []


def test_rows_may_share_what_applies_to_all_of_them() -> None:
    starts, stops = np.zeros((10**6, 1), dtype=np.int64), np.full((10**6, 1), 1000)

    lists = References(starts, stops, np.arange(1000))

    assert int(lists.counts().sum()) == 10**9
    assert lists[999_999].tolist() == list(range(1000))
    assert len(lists.used()) == 1000


@st.composite
def lists_of_ranges(draw: st.DrawFn) -> tuple[References, list[list[int]]]:
    """Draw lists of some ranges each, and the same in the plainest form."""
    parts: list[list[int]] = draw(
        st.lists(st.permutations(range(12)).map(lambda p: list(p[:5])), min_size=1, max_size=4)
    )
    numbers = [n for i, part in enumerate(parts) for n in (100 * i + x for x in part)]
    rows, plain = draw(st.integers(0, 4)), []
    starts = np.zeros((rows, len(parts)), dtype=np.int64)
    stops = np.zeros((rows, len(parts)), dtype=np.int64)
    for row in range(rows):
        listed = []
        for j in range(len(parts)):
            first = draw(st.integers(0, 5))
            starts[row, j], stops[row, j] = 5 * j + first, 5 * j + draw(st.integers(first, 5))
            listed += numbers[starts[row, j] : stops[row, j]]
        plain.append(sorted(listed))
    return References(starts, stops, np.array(numbers)), plain


@given(lists_of_ranges())
def test_a_list_is_all_its_ranges_in_order(drawn: tuple[References, list[list[int]]]) -> None:
    lists, plain = drawn

    starts, numbers = lists.flat()

    assert [part.tolist() for part in lists] == plain
    assert [part.tolist() for part in References.of_flat(starts, numbers)] == plain
    assert lists.counts().tolist() == [len(p) for p in plain]
    assert lists.used().tolist() == sorted({n for p in plain for n in p})
