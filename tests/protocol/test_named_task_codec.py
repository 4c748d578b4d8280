from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.column_codec import MalformedColumns, NumberColumn, Reader, Writer
from floeberg.protocol.errors import InternalError, StaleTicket
from floeberg.protocol.file_tables import without_metrics
from floeberg.protocol.files import DataFile, FileFormat, ManifestFile, Metrics
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.named_task_codec import can_be_named, decode_named, encode_named
from floeberg.protocol.named_tasks import NamedTasks
from floeberg.protocol.planned_objects import as_planned
from floeberg.protocol.planned_tasks import PlannedTasks
from floeberg.protocol.task_codec import EncodedTasks
from tests.protocol.test_task_codec import same
from tests.protocol.test_task_codec import without_metrics as tasks_without_metrics
from tests.support.plan_strategies import SCHEMA, planned_tasks, tasks_of
from tests.support.planned import planned_files, segment_of

FILES = [
    DataFile(f"s3://lake/{i}.parquet", FileFormat.PARQUET, 10, 100 + i, 0, split_offsets=(4, 60))
    for i in range(8)
]
MANIFESTS = [
    ManifestFile("s3://lake/m0.avro", 1000, 0, sequence_number=7, added_snapshot_id=2**62),
    ManifestFile(
        "s3://lake/ü1.avro", 2000, 0, first_row_id=0, added_files_count=5, existing_files_count=3
    ),
]


def plan(split_size: int = 60) -> PlannedTasks:
    parts = [
        planned_files(FILES, rows, manifest=manifest)
        for rows, manifest in zip([[0, 3, 4, 7], range(8)], MANIFESTS, strict=True)
    ]
    return PlannedTasks(parts, split_size=split_size)


def decoded(document: EncodedTasks) -> NamedTasks:
    described = json.loads(json.dumps(document.described))
    return decode_named(described, memoryview(document.tables), document.keys, SCHEMA)


def segments_of(tasks: PlannedTasks, named: NamedTasks) -> list[Segment]:
    """Decode the named manifests again, as it were."""
    by_location = {p.manifest.location: p.segment for p in tasks.files if p.manifest}
    return [without_metrics(by_location[rows.manifest.location]) for rows in named.named]


@given(planned_tasks())
def test_the_very_tasks_come_back_from_their_manifests(tasks: PlannedTasks):
    named = decoded(encode_named(tasks))

    found = named.resolve(segments_of(tasks, named))

    assert can_be_named(tasks)
    assert len(named) == len(tasks)
    assert same(list(found), tasks_without_metrics(tasks_of(tasks)))


@given(planned_tasks())
def test_the_same_tasks_give_the_same_document(tasks: PlannedTasks):
    document = encode_named(tasks)
    named = decoded(document)

    assert encode_named(tasks) == document
    assert encode_named(named.resolve(segments_of(tasks, named))) == document


def test_what_decoding_a_manifest_takes_is_there():
    named = decoded(encode_named(plan()))

    assert [rows.manifest for rows in named.named] == MANIFESTS
    assert [rows.rows.tolist() for rows in named.named] == [[0, 3, 4, 7], list(range(8))]


def test_a_slice_may_begin_and_end_within_a_file():
    tasks = plan()

    for first in range(len(tasks)):
        for stop in range(first, len(tasks) + 1):
            named = decoded(encode_named(tasks[first:stop]))
            assert named.resolve(segments_of(tasks, named)) == list(tasks)[first:stop]


def test_nothing_is_read_of_tasks_that_were_not_resolved():
    named = decoded(encode_named(plan()))

    for look in (lambda: named[0], lambda: list(named), lambda: named[1:]):
        with pytest.raises(InternalError, match="not resolved"):
            look()


@pytest.mark.parametrize(
    "files",
    [
        FILES[:7],
        [*FILES, FILES[0]],
        [*FILES[:7], replace(FILES[7], size_bytes=1)],
        [*FILES[:7], replace(FILES[7], record_count=11)],
    ],
)
def test_a_manifest_that_holds_something_else_is_refused(files: list[DataFile]):
    named = decoded(encode_named(plan()))
    segments = [segment_of(FILES, MANIFESTS[0]), segment_of(files, MANIFESTS[1])]

    with pytest.raises(StaleTicket, match="which the ticket names, has other entries"):
        named.resolve(segments)


def test_files_that_are_divided_elsewhere_are_refused():
    whole = [replace(file, split_offsets=()) for file in FILES]
    named = decoded(encode_named(plan()))

    with pytest.raises(StaleTicket, match="divides its files elsewhere"):
        named.resolve([segment_of(whole, manifest) for manifest in MANIFESTS])


def test_only_what_a_planner_leaves_of_known_manifests_can_be_named():
    unknown = [replace(part, manifest=None) for part in plan().files]
    locked = [replace(p, manifest=replace(MANIFESTS[0], key_metadata=b"")) for p in plan().files]

    assert not can_be_named(as_planned(list(plan())))
    assert not can_be_named(PlannedTasks(unknown))
    assert not can_be_named(PlannedTasks(locked))
    assert can_be_named(PlannedTasks())


def test_statistics_of_a_segment_are_left_out_and_nothing_else():
    files = [replace(file, key_metadata=b"k", partition={1000: i}) for i, file in enumerate(FILES)]
    measured = [replace(file, metrics=Metrics(value_counts={1: 2})) for file in files]

    slim = without_metrics(segment_of(measured, MANIFESTS[0]))

    assert [entry.file for entry in slim.entries()] == files
    assert slim.location == MANIFESTS[0].location


# --- what is not a document -----------------------------------------------------------------------


def test_every_truncation_is_refused():
    document = encode_named(plan())

    for size in range(len(document.tables)):
        with pytest.raises(MalformedColumns):
            decoded(replace(document, tables=document.tables[:size]))


def test_every_flipped_bit_is_refused_or_gives_tasks_or_a_stale_ticket():
    tasks = plan()
    document = encode_named(tasks)

    for at in range(len(document.tables)):
        for bit in range(8):
            raw = bytearray(document.tables)
            raw[at] ^= 1 << bit
            with contextlib.suppress(MalformedColumns, StaleTicket):
                named = decoded(replace(document, tables=bytes(raw)))
                list(named.resolve([part.segment for part in tasks.files]))


@given(planned_tasks(), st.data())
def test_whatever_stands_in_the_tables_nothing_else_is_raised(
    tasks: PlannedTasks, data: st.DataObject
):
    document = encode_named(tasks)
    raw = bytearray(document.tables)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(MalformedColumns):
        decoded(replace(document, tables=bytes(raw)))


def changed(key: tuple[int, int], value: int | None) -> EncodedTasks:
    document = encode_named(PlannedTasks([planned_files(FILES[:1], manifest=MANIFESTS[0])]))
    reader, writer = Reader(memoryview(document.tables)), Writer()
    manifests, kept = reader.table(), reader.table()
    del manifests.columns[key]
    if value is not None:
        manifests.columns[key] = NumberColumn(np.array([value]))
    writer.table(manifests)
    writer.table(kept)
    return replace(document, tables=writer.finish())


@pytest.mark.parametrize(
    "document",
    [
        changed((s.OWN, 500), None),
        changed((s.OWN, 500), 1),
        changed((s.OWN, 501), None),
        changed((s.OWN, 501), -1),
        changed((s.OWN, 501), 1 << 31),
        changed((s.OWN, 1), 0),
        changed((s.OWN, 1), 1 << 40),
        changed((s.ITEMS, 3), 1),
        changed((s.ITEMS, 3), -1),
        changed((s.ITEMS, 3), 2**63 - 1),
        changed((s.ITEMS, 3), None),
        *(
            replace(encode_named(plan()), described={**encode_named(plan()).described, key: value})
            for key, value in [
                ("tasks", 0),
                ("tasks", -1),
                ("split_size", 1.5),
                ("first_task", "0"),
            ]
        ),
        replace(encode_named(plan()), keys=[b"key"]),
    ],
)
def test_a_document_of_another_shape_is_refused(document: EncodedTasks):
    with pytest.raises(MalformedColumns):
        decoded(document)
