"""Deletes are files by number, made once each; lists of numbers are cut without copying any."""

from __future__ import annotations

import numpy as np

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
    lists = References(np.array([0, 2, 2, 3]), np.array([4, 5, 9]))

    rest = lists.between(1, 3)

    assert [part.tolist() for part in rest] == [[], [9]]
    assert [part.tolist() for part in lists] == [[4, 5], [], [9]]
    assert len(References.none(2)) == 2
    assert References.none(2)[1].tolist() == []
