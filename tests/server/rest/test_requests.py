from __future__ import annotations

import json
from decimal import Decimal

import pytest

from floeberg.protocol.errors import BadCommand, ConflictingSnapshot, Unsupported
from floeberg.server.rest.requests import FetchScanTasksRequest, PlanTableScanRequest


def parse(**members: object) -> PlanTableScanRequest:
    names = {name.replace("_", "-"): value for name, value in members.items()}
    return PlanTableScanRequest.parse(json.dumps(names).encode())


def test_an_empty_request_asks_for_the_whole_table():
    assert PlanTableScanRequest.parse(b"") == parse() == PlanTableScanRequest.parse(b"{}")
    assert parse().filter is True
    assert not parse().use_snapshot_schema


def test_members_have_the_names_of_the_document():
    request = parse(
        snapshot_id=5,
        select=["a"],
        case_sensitive=False,
        use_snapshot_schema=True,
        stats_fields=["a", "b"],
        min_rows_requested=10,
    )

    assert (request.snapshot_id, request.stats_fields) == (5, ("a", "b"))
    assert not request.case_sensitive
    assert request.use_snapshot_schema


def test_numbers_of_a_filter_keep_their_digits():
    raw = b'{"filter": {"type": "eq", "term": "m", "value": 1234567890123456789.5}}'

    assert PlanTableScanRequest.parse(raw).filter["value"] == Decimal("1234567890123456789.5")


@pytest.mark.parametrize(
    "members", [{"start_snapshot_id": 1, "end_snapshot_id": 2}, {"end_snapshot_id": 2}]
)
def test_incremental_scans_are_refused_by_name(members):
    with pytest.raises(Unsupported, match="end-snapshot-id"):
        parse(**members)


def test_a_snapshot_and_a_range_of_them_exclude_each_other():
    with pytest.raises(ConflictingSnapshot, match="snapshot-id and start-snapshot-id"):
        parse(snapshot_id=1, start_snapshot_id=1)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"[]", "not a JSON object"),
        (b"{", "not JSON"),
        (b'{"fitler": true}', "fitler"),
        (b'{"snapshot_id": 1}', "snapshot_id"),
        (b'{"snapshot-id": "1"}', "snapshot-id"),
        (b'{"snapshot-id": 9223372036854775808}', "snapshot-id"),
        (b'{"case-sensitive": 1}', "case-sensitive"),
        (b'{"select": "a"}', "select"),
        (b'{"filter": true, "filter": false}', "given twice"),
    ],
)
def test_what_is_wrong_is_named(raw, said):
    with pytest.raises(BadCommand, match=said):
        PlanTableScanRequest.parse(raw)


def test_a_request_for_tasks_names_a_plan_task():
    assert FetchScanTasksRequest.parse(b'{"plan-task": "x"}').plan_task == "x"
    with pytest.raises(BadCommand, match="plan-task"):
        FetchScanTasksRequest.parse(b"{}")
