from __future__ import annotations

import json

import pytest

from floeberg.protocol.actions import (
    COUNT,
    DESCRIPTIONS,
    PLAN,
    SNAPSHOTS,
    STATUS,
    TABLES,
    CountReply,
    PlanPage,
    TablesRequest,
    pages,
)
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import BadCommand, FloebergError
from floeberg.protocol.status import StatusRequest


def test_an_empty_body_asks_for_everything():
    assert TABLES.parse_request(b"") == TablesRequest()
    assert STATUS.parse_request(b"{}") == StatusRequest()


def test_a_request_is_read_strictly():
    with pytest.raises(BadCommand, match=r"floeberg\.tables: unknown key 'namspace'; did you mean"):
        TABLES.parse_request(b'{"namspace": ["db"]}')
    with pytest.raises(BadCommand, match=r"floeberg\.snapshots: key 'table' is missing"):
        SNAPSHOTS.parse_request(b"")


def test_a_table_is_named_as_in_a_scan():
    assert SNAPSHOTS.parse_request(b'{"table": "db.t"}').table == TableName(("db", "t"))
    assert SNAPSHOTS.parse_request(b'{"table": ["db", "t.x"]}').table.parts == ("db", "t.x")


def test_counting_takes_a_scan_command():
    request = COUNT.parse_request(b'{"table": "db.t", "filter": "a > 1"}')

    assert request == ScanCommand(table=TableName(("db", "t")), filter="a > 1")


def test_a_reply_comes_back():
    page = PlanPage(
        snapshot_id=7,
        tasks=({"data-file": {"file-path": "a"}, "residual-filter": True},),
        counters={"manifests": 3},
    )

    assert PLAN.parse_reply(PLAN.encode_reply(page)) == page
    assert json.loads(COUNT.encode_reply(CountReply(count=None, snapshot_id=None))) == {
        "count": None,
        "snapshot_id": None,
    }


def test_a_newer_servers_reply_may_say_more():
    assert COUNT.parse_reply(b'{"count": 3, "snapshot_id": 1, "mood": "good"}').count == 3


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"count": "many"}', b"\xff"])
def test_a_reply_that_is_not_understood_is_an_error(raw: bytes):
    with pytest.raises(FloebergError, match=r"answer to floeberg\.count can't be read"):
        COUNT.parse_reply(raw)


def test_every_action_is_listed_once():
    names = [name for name, _ in DESCRIPTIONS]

    assert len(set(names)) == len(names) == 13
    assert all(name.startswith("floeberg.") for name in names)


def test_pages_hold_everything_in_order():
    for count in (0, 1, 999, 1000, 1001, 2500):
        found = list(pages(range(count)))

        assert [i for page in found for i in page] == list(range(count))
        assert len(found) == max(1, -(-count // 1000))
