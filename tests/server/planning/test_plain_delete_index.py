from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import Content, DataFile, DeleteFile, FileFormat, Metrics
from floeberg.protocol.partitioning import PartitionField, PartitionSpec
from floeberg.protocol.transforms import Identity, Void
from tests.support.plain_planner.delete_index import DeleteIndex
from tests.support.plain_planner.partition_keys import partition_key

BY_P = PartitionSpec(1, (PartitionField((1,), 1000, "p", Identity()),))
BY_P_AGAIN = replace(BY_P, spec_id=2)
PLAIN = PartitionSpec(0, ())
VOIDED = PartitionSpec(3, (PartitionField((1,), 1000, "p", Void()),))
PATH_ID = 2147483546


def data(sequence: int = 5, p: Any = "a", spec: PartitionSpec = BY_P, name: str = "d") -> DataFile:
    return DataFile(
        f"s3://b/{name}",
        FileFormat.PARQUET,
        10,
        100,
        spec.spec_id,
        {1000: p} if spec.fields else {},
        data_sequence_number=sequence,
    )


def deletes(
    content: Content, sequence: int = 5, p: Any = "a", spec: PartitionSpec = BY_P, **fields: Any
) -> DeleteFile:
    return DeleteFile(
        fields.pop("location", "s3://b/x"),
        content,
        fields.pop("format", FileFormat.PARQUET),
        1,
        100,
        spec.spec_id,
        {1000: p} if spec.fields else {},
        data_sequence_number=sequence,
        **fields,
    )


def positions(sequence: int = 5, p: Any = "a", **fields: Any) -> DeleteFile:
    return deletes(Content.POSITION_DELETES, sequence, p, **fields)


def equality(sequence: int = 6, p: Any = "a", **fields: Any) -> DeleteFile:
    return deletes(Content.EQUALITY_DELETES, sequence, p, equality_ids=(1,), **fields)


def vector(sequence: int = 5, p: Any = "a", of: str = "d", **fields: Any) -> DeleteFile:
    return positions(
        sequence,
        p,
        format=FileFormat.PUFFIN,
        referenced_data_file=f"s3://b/{of}",
        content_offset=4,
        content_size_bytes=40,
        **fields,
    )


SPECS = {s.spec_id: s for s in (PLAIN, BY_P, BY_P_AGAIN, VOIDED)}


def applying(file: DataFile, *found: DeleteFile) -> list[DeleteFile]:
    index = DeleteIndex()
    for d in found:
        index.add([d], SPECS[d.spec_id])
    return list(index.applying_to(file, partition_key(SPECS[file.spec_id], file.partition)))


@pytest.mark.parametrize(("sequence", "applies"), [(4, False), (5, True), (6, True)])
def test_positions_apply_to_files_that_are_not_younger(sequence, applies):
    assert bool(applying(data(5), positions(sequence))) is applies
    named = positions(sequence, referenced_data_file="s3://b/d")
    assert bool(applying(data(5), named)) is applies


@pytest.mark.parametrize(("sequence", "applies"), [(4, False), (5, False), (6, True)])
def test_equality_deletes_apply_to_older_files(sequence, applies):
    assert bool(applying(data(5), equality(sequence))) is applies


def test_zero_is_a_sequence_number_like_another():
    assert applying(data(0), positions(0))
    assert not applying(data(0), equality(0))


@pytest.mark.parametrize("make", [positions, equality])
def test_deletes_stay_in_their_partition(make):
    assert applying(data(p="a"), make(p="a"))
    assert not applying(data(p="a"), make(p="b"))
    assert not applying(data(p="a"), make(p=None))
    assert applying(data(p=None), make(p=None))


@pytest.mark.parametrize("make", [positions, equality])
def test_an_equal_tuple_of_another_spec_is_another_partition(make):
    assert not applying(data(spec=BY_P), make(spec=BY_P_AGAIN))


@pytest.mark.parametrize("spec", [PLAIN, VOIDED])
def test_an_equality_delete_of_an_unpartitioned_spec_is_global(spec):
    assert applying(data(spec=BY_P), equality(spec=spec))


def test_a_position_delete_of_an_unpartitioned_spec_is_not_global():
    assert not applying(data(spec=BY_P), positions(spec=PLAIN))
    assert applying(data(spec=PLAIN), positions(spec=PLAIN))


def test_a_position_delete_that_names_a_file_applies_to_no_other():
    named = positions(referenced_data_file="s3://b/other")

    assert not applying(data(), named)


@pytest.mark.parametrize(
    ("lower", "upper", "applies"),
    [
        (b"s3://b/d", b"s3://b/d", True),
        (b"s3://b/a", b"s3://b/z", True),
        (b"s3://b/e", b"s3://b/z", False),
        (b"s3://b/a", b"s3://b/c", False),
        (b"s3://b/", b"s3://b/", True),  # cut, and not rounded up
        (b"s3://b/z", b"s3://b/a", True),  # the wrong way round
        (b"\xff", b"\xff", True),
        (None, b"s3://b/c", True),
        (b"s3://b/e", None, True),
    ],
)
def test_bounds_on_paths_rule_out_only_what_they_surely_exclude(lower, upper, applies):
    metrics = Metrics(
        lower_bounds={} if lower is None else {PATH_ID: lower},
        upper_bounds={} if upper is None else {PATH_ID: upper},
    )

    assert bool(applying(data(), positions(metrics=metrics))) is applies


def test_a_vector_takes_the_place_of_its_files_position_deletes():
    named = positions(location="s3://b/y", referenced_data_file="s3://b/d")

    assert applying(data(), positions(), named, vector()) == [vector()]
    assert applying(data(name="e"), positions(), named, vector()) == [positions()]


def test_a_vector_leaves_equality_deletes_in_force():
    assert applying(data(), vector(), equality(), positions()) == [vector(), equality()]


def test_two_vectors_of_one_file_contradict_each_other():
    with pytest.raises(CorruptDeletes, match=r"s3://b/d has two deletion vectors"):
        applying(data(), vector(), vector(6, location="s3://b/y"))


def test_a_vector_older_than_its_file_contradicts_it():
    with pytest.raises(CorruptDeletes, match="older"):
        applying(data(6), vector(5))


@pytest.mark.parametrize(
    "named", [vector(p="b"), positions(p="b", referenced_data_file="s3://b/d")]
)
def test_a_delete_that_names_a_file_of_another_partition_contradicts_it(named):
    with pytest.raises(CorruptDeletes, match="another partition"):
        applying(data(p="a"), named)


def test_deletes_come_in_the_order_of_manifests():
    first = equality(location="s3://b/1", spec=PLAIN)
    second = positions(location="s3://b/2", referenced_data_file="s3://b/d")
    third, fourth = equality(location="s3://b/3"), positions(location="s3://b/4")

    for order in ([first, second, third, fourth], [fourth, third, second, first]):
        assert applying(data(), *order) == order


# --- beside the spec's rules, a pair at a time ----------------------------------------------------


def applies_by_the_spec(file: DataFile, delete: DeleteFile, vectors: list[DeleteFile]) -> bool:
    """Say whether a delete applies to a data file, word by word as "Scan Planning" has it."""
    same_partition = partition_key(SPECS[file.spec_id], file.partition) == partition_key(
        SPECS[delete.spec_id], delete.partition
    )
    names_it = delete.referenced_data_file in (None, file.location)
    if delete.content is Content.EQUALITY_DELETES:
        is_older = file.data_sequence_number < delete.data_sequence_number
        return is_older and (same_partition or SPECS[delete.spec_id].is_unpartitioned)
    is_not_younger = file.data_sequence_number <= delete.data_sequence_number
    if not (is_not_younger and same_partition and names_it):
        return False
    return delete.is_deletion_vector or not any(
        applies_by_the_spec(file, v, vectors) for v in vectors
    )


PARTITIONS = st.sampled_from([None, 0.0, -0.0, math.nan])
SOME_SPECS = st.sampled_from(list(SPECS.values()))
FILES = st.builds(data, st.integers(0, 4), PARTITIONS, SOME_SPECS, st.sampled_from(["d", "e", "f"]))
NAMES = st.sampled_from([None, "s3://b/d", "s3://b/e"])
DELETES = st.one_of(
    st.builds(equality, st.integers(0, 4), PARTITIONS, spec=SOME_SPECS),
    st.builds(
        positions, st.integers(0, 4), PARTITIONS, spec=SOME_SPECS, referenced_data_file=NAMES
    ),
    st.builds(vector, st.integers(0, 4), PARTITIONS, st.sampled_from("def"), spec=SOME_SPECS),
)


@settings(max_examples=500)
@given(file=FILES, found=st.lists(DELETES, max_size=8))
def test_the_index_agrees_with_the_spec_or_finds_a_contradiction(file, found):
    found = [replace(d, location=f"s3://b/delete-{i}") for i, d in enumerate(found)]
    vectors = [d for d in found if d.is_deletion_vector]
    expected = [d for d in found if applies_by_the_spec(file, d, vectors)]

    try:
        assert [d.location for d in applying(file, *found)] == [d.location for d in expected]
    except CorruptDeletes:
        twice = len({v.referenced_data_file for v in vectors}) < len(vectors)
        named = [d for d in found if d.referenced_data_file == file.location]
        unfit = [d for d in named if not applies_by_the_spec(file, d, [])]
        assert twice or unfit
