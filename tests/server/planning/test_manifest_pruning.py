"""What is kept of a manifest list, and why, is what is kept of its manifests one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.expressions.model import Expression
from floeberg.protocol.files import ManifestContent, ManifestFile
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.scans import ResolvedScan, ScanRequest, resolve
from floeberg.protocol.types import BinaryType, PrimitiveType, UnknownType
from floeberg.server.planning.manifest_list import ManifestList
from floeberg.server.planning.manifest_pruning import ManifestsToRead, prune_manifests
from floeberg.server.planning.pruning import SpecFilters
from tests.server.planning.vectorised.test_summaries import field_summaries
from tests.support import filter_strategies as filters
from tests.support.lake.metadata import first_metadata
from tests.support.plain_planner.manifest_pruning import prune_manifests_plainly


def metadata() -> TableMetadata:
    """A table of no snapshot that has all of the specs that filters are tried with."""
    raw = first_metadata(3, "file:///t", filters.SCHEMA.to_json(), [], {}, 0)
    raw["partition-specs"] = [spec.to_json() for spec in filters.SPECS]
    return TableMetadata.parse(json.dumps(raw).encode(), "made here")


METADATA = metadata()
_counts = st.sampled_from([None, 0, 0, 0, 1, 7])


@st.composite
def manifests(draw: st.DrawFn) -> ManifestFile:
    spec = draw(st.sampled_from(filters.SPECS))
    types = [f.type for f in spec.partition_type(filters.SCHEMA).fields]
    if draw(st.integers(0, 5)) == 0:  # as v1 has them, or damaged
        types = draw(st.sampled_from([[], types[:-1], [*types, UnknownType()]]))
    # of an unknown type nobody says how its bounds are written
    known = [BinaryType() if isinstance(type_, UnknownType) else type_ for type_ in types]
    summaries = [draw(field_summaries(t)) for t in known if isinstance(t, PrimitiveType)]
    return ManifestFile(
        location=f"{draw(st.integers(0, 10**9))}.avro",
        length=1,
        spec_id=spec.spec_id,
        content=draw(st.sampled_from([*2 * [ManifestContent.DATA], ManifestContent.DELETES])),
        added_files_count=draw(_counts),
        existing_files_count=draw(_counts),
        added_rows_count=draw(_counts),
        existing_rows_count=draw(_counts),
        partitions=tuple(summaries),
    )


def pruned(listed: ManifestList, scan: ResolvedScan) -> ManifestsToRead:
    return prune_manifests(listed, SpecFilters(scan.filter, scan.metadata, scan.schema))


@given(manifests_=st.lists(manifests(), max_size=8), expression=filters.expressions)
@settings(max_examples=100)
def test_the_same_manifests_are_kept_for_the_same_reasons(
    manifests_: list[ManifestFile], expression: Expression
) -> None:
    for filter_ in (expression, ScanRequest().filter):
        scan = resolve(METADATA, ScanRequest(filter_))
        listed = ManifestList(manifests_, None)

        kept = pruned(listed, scan)

        plainly = prune_manifests_plainly(manifests_, scan)
        assert (listed.at(kept.data), listed.at(kept.deletes)) == (plainly.data, plainly.deletes)
        assert kept.data_counters == plainly.data_counters
        assert kept.delete_counters == plainly.delete_counters


def test_a_spec_that_the_table_lacks_is_refused_where_it_has_files():
    scan = resolve(METADATA, ScanRequest())
    unknown: dict[str, Any] = {"length": 1, "spec_id": 99}
    without = ManifestFile("a", added_files_count=0, existing_files_count=0, **unknown)

    assert pruned(ManifestList([without], None), scan).data_counters.without_live_files == 1
    with pytest.raises(CorruptMetadata):
        pruned(ManifestList([without, ManifestFile("b", **unknown)], None), scan)
