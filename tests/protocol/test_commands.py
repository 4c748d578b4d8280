from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.bodies import MAX_BODY_BYTES
from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import BadCommand, BadFilter, ConflictingSnapshot
from floeberg.protocol.expressions.model import TRUE, And, Not, Op, Predicate
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.types import Json

ORDERS = TableName(("db", "orders"))
NOON_MS = 1_714_564_800_000


def parsed(**keys: Json) -> ScanCommand:
    return ScanCommand.parse(json.dumps({"table": "db.orders", **keys}))


def test_a_command_names_its_table_and_nothing_more():
    command = ScanCommand.parse(b'{"table": "db.orders"}')

    assert command.table == ORDERS
    assert command.to_request() == ScanRequest()
    assert command.to_json() == b'{"table":"db.orders"}'


def test_every_key_reaches_the_request():
    command = parsed(
        filter=["and", [">", "amount", 10], ["is-null", "region"]],
        select=["id", "a.b", "_file"],
        snapshot_id=7,
        case_sensitive=False,
        split_size=1 << 20,
        limit=0,
        ordered=True,
    )

    assert command.to_request() == ScanRequest(
        filter=And((Predicate(Op.GT, "amount", (10,)), Predicate(Op.IS_NULL, "region"))),
        select=("id", "a.b", "_file"),
        snapshot_id=7,
        case_sensitive=False,
        split_size=1 << 20,
        limit=0,
        ordered=True,
    )


def test_a_filter_may_be_text():
    assert parsed(filter="amount > 10").to_request().filter == Predicate(Op.GT, "amount", (10,))


def test_a_literal_keeps_its_digits():
    command = ScanCommand.parse('{"table": "t", "filter": ["=", "a", 1234567890123456789.5]}')
    again = ScanCommand.parse(command.to_json())

    assert command.filter is not None
    assert str(command.filter[2]) == str(again.filter[2] if again.filter else "")
    assert str(command.filter[2]) == "1234567890123456789.5"


@given(
    st.builds(
        ScanRequest,
        filter=st.sampled_from(
            [
                TRUE,
                Predicate(Op.EQ, "a", ("x",)),
                Predicate(Op.IN, "a", (1, 2)),
                Not(Predicate(Op.IS_NAN, "a")),
            ]
        ),
        select=st.none() | st.lists(st.text(max_size=5), max_size=3).map(tuple),
        snapshot_id=st.none() | st.integers(-(2**63), 2**63 - 1),
        case_sensitive=st.booleans(),
        split_size=st.none() | st.integers(0, 2**63 - 1),
        limit=st.none() | st.integers(0, 2**63 - 1),
        ordered=st.booleans(),
    ),
    st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4).map(tuple),
)
def test_a_request_comes_back_from_its_command(request: ScanRequest, parts: tuple[str, ...]):
    command = ScanCommand.from_request(TableName(parts), request)

    again = ScanCommand.parse(command.to_json())

    assert again == command
    assert again.table.parts == parts
    assert again.to_request() == request


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"ref": "main"}, "ref"),
        ({"as_of": NOON_MS}, "as_of_ms"),
        ({"snapshot_id": -(2**63)}, "snapshot_id"),
    ],
)
def test_the_snapshot_is_named_in_one_of_three_ways(keys: dict[str, Json], key: str):
    assert getattr(parsed(**keys).to_request(), key) == next(iter(keys.values()))


def test_the_three_exclude_each_other():
    with pytest.raises(ConflictingSnapshot, match="snapshot_id and ref exclude each other"):
        parsed(snapshot_id=1, ref="main")
    with pytest.raises(ConflictingSnapshot, match="ref and as_of"):
        parsed(ref="main", as_of=0)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (NOON_MS, NOON_MS),
        (str(NOON_MS), NOON_MS),
        ("2024-05-01T12:00:00Z", NOON_MS),
        ("2024-05-01T14:00:00+02:00", NOON_MS),
        ("2024-05-01 12:00:00.0019+00:00", NOON_MS + 1),
        ("1969-12-31T23:59:59.9999Z", -1),
    ],
)
def test_a_time_is_milliseconds_or_has_an_offset(raw: Json, expected: int):
    assert parsed(as_of=raw).as_of == expected


def test_python_may_give_a_datetime():
    command = ScanCommand(table=ORDERS, as_of=datetime(2024, 5, 1, 12, tzinfo=UTC))  # type: ignore[arg-type]

    assert command.as_of == NOON_MS


def test_large_numbers_may_be_text():
    assert parsed(snapshot_id="9223372036854775807").snapshot_id == 2**63 - 1
    assert parsed(limit="10").limit == 10


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"fitler": "a > 1"}, "scan command: unknown key 'fitler'; did you mean 'filter'?"),
        ({"Select": ["a"]}, "unknown key 'Select'; did you mean 'select'?"),
        ({"zzz": 1}, "unknown key 'zzz'; there are table, filter, select"),
        ({"table": 7}, "key 'table': is a name such as 'db.orders'"),
        ({"table": "db."}, "key 'table': 'db.' is not a table's name: a part of it is empty"),
        ({"table": []}, "key 'table': '' is not a table's name"),
        ({"table": ["db", 1]}, "key 'table'"),
        ({"table": None}, "key 'table'"),
        ({"filter": 7}, "key 'filter': is text, or a list"),
        ({"filter": {"a": 1}}, "key 'filter': is text, or a list"),
        ({"select": "id"}, "key 'select': is not a list"),
        ({"select": [1]}, "key 'select.0'"),
        ({"snapshot_id": True}, "key 'snapshot_id': True is not a whole number"),
        ({"snapshot_id": 1.0}, "key 'snapshot_id': 1.0 is not a whole number"),
        ({"snapshot_id": "0x1"}, "key 'snapshot_id': '0x1' is not a whole number"),
        ({"snapshot_id": "\u0661"}, "key 'snapshot_id': '\u0661' is not a whole number"),
        ({"snapshot_id": 2**63}, "key 'snapshot_id': must be less than 9223372036854775808"),
        ({"snapshot_id": "9" * 5000}, "key 'snapshot_id': does not fit into 64 bits"),
        ({"ref": ""}, "key 'ref': is empty"),
        ({"ref": 7}, "key 'ref': is not text"),
        ({"as_of": "yesterday"}, "key 'as_of': 'yesterday' is neither milliseconds"),
        ({"as_of": "2024-05-01T12:00:00"}, "has no offset from UTC"),
        ({"as_of": 1.5}, "key 'as_of'"),
        ({"limit": -1}, "key 'limit'"),
        ({"limit": "-1"}, "key 'limit'"),
        ({"limit": True}, "key 'limit'"),
        ({"split_size": -1}, "key 'split_size'"),
        ({"ordered": 1}, "key 'ordered'"),
        ({"case_sensitive": "no"}, "key 'case_sensitive'"),
    ],
)
def test_a_wrong_key_is_named(keys: dict[str, Json], words: str):
    with pytest.raises(BadCommand) as raised:
        parsed(**keys)

    assert words in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not JSON"),
        (b"table", "not JSON: Expecting value"),
        (b"\xff", "not JSON: it cannot be decoded"),
        (b'{"table": "t"', "not JSON"),
        (b'["t"]', "not a JSON object"),
        (b"{}", "key 'table' is missing"),
        (b'{"filter": "a > 1"}', "key 'table' is missing"),
        (b'{"table": "t", "limit": NaN}', "not JSON"),
        (b'{"table": "t", "filter": "a > 1", "filter": "true"}', "key 'filter' is given twice"),
        (b'{"table": "t", "filter": ' + b"[" * 100_000 + b"}", "not JSON"),
        (b'{"table": "t", "limit": ' + b"9" * 5000 + b"}", "not JSON"),
        (b" " * (MAX_BODY_BYTES + 1), "has 16777217 bytes; at most 16777216 are read"),
    ],
)
def test_what_is_no_command_is_refused(raw: bytes, words: str):
    with pytest.raises(BadCommand, match=words):
        ScanCommand.parse(raw)


@given(st.binary(max_size=50) | st.text(max_size=50).map(lambda t: f'{{"table": "t", {t}'.encode()))
def test_other_bytes_are_bad_commands_and_nothing_else(raw: bytes):
    with pytest.raises(BadCommand):
        ScanCommand.parse(raw)


def test_a_filter_that_cannot_be_read_is_a_bad_filter():
    for wrong in (["like", "a", "x"], ["=", "a"], []):
        with pytest.raises(BadFilter):
            parsed(filter=wrong).to_request()


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ([b"db", b"orders"], ("db", "orders")),
        ([b"db.orders"], ("db", "orders")),
        ([b"db", b"orders.2024"], ("db", "orders.2024")),
        (["lake", "db", "orders"], ("lake", "db", "orders")),
    ],
)
def test_a_path_is_a_name(path: list[bytes | str], parts: tuple[str, ...]):
    assert TableName.from_path(path).parts == parts


@pytest.mark.parametrize("path", [[], [b""], [b"db", b""], [b"\xff", b"orders"], [b"db..t"]])
def test_a_path_without_a_name_is_refused(path: list[bytes]):
    with pytest.raises(BadCommand):
        TableName.from_path(path)


def test_a_name_with_dots_travels_as_its_parts():
    assert TableName(("db", "orders.2024")).to_json() == ["db", "orders.2024"]
    assert ORDERS.to_json() == "db.orders"
