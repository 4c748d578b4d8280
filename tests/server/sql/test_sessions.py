from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.protocol.errors import Unauthenticated
from floeberg.protocol.flight_sql.actions import OptionError, OptionValue
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.sql.sessions import SessionOptions, with_changes

NAME, VALUE = OptionError.INVALID_NAME, OptionError.INVALID_VALUE
NONE = SessionOptions()


@pytest.fixture
def catalogs(tmp_path: Path) -> Catalogs:
    return Catalogs([WarehouseCatalog(name, str(tmp_path)) for name in ("lake", "pond")])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"catalog": "pond", "schema": "a.b"}, SessionOptions("pond", "a.b")),
        ({"schema": ""}, NONE),
        ({"ref": "audit"}, SessionOptions(ref="audit")),
        ({"snapshot_id": "-7"}, SessionOptions(snapshot_id=-7)),
        ({"snapshot_id": 1 << 62}, SessionOptions(snapshot_id=1 << 62)),
        ({"as_of": 5}, SessionOptions(as_of=5)),
        ({"as_of": "5"}, SessionOptions(as_of=5)),
        ({"as_of": "1970-01-01T01:00:00+01:00"}, SessionOptions(as_of=0)),
        ({"timezone": "Europe/Vienna"}, SessionOptions(timezone="Europe/Vienna")),
        ({"timezone": None, "ref": None}, NONE),
    ],
)
def test_options_are_set(
    changes: dict[str, OptionValue | None], expected: SessionOptions, catalogs: Catalogs
):
    assert with_changes(NONE, changes, catalogs) == (expected, {})
    # and come back from where they are carried
    assert SessionOptions.from_json(expected.to_json()) == expected


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("catlog", "lake", NAME),
        ("", "x", NAME),
        ("to_json", "x", NAME),
        ("catalog", "sea", VALUE),
        ("catalog", "", VALUE),
        ("ref", "", VALUE),
        ("ref", 5, VALUE),
        ("ref", True, VALUE),
        ("schema", "x" * 300, VALUE),
        ("schema", ("a", "b"), VALUE),
        ("snapshot_id", "12a", VALUE),
        ("snapshot_id", "²", VALUE),
        ("snapshot_id", 1 << 63, VALUE),
        ("snapshot_id", True, VALUE),
        ("snapshot_id", 1.0, VALUE),
        ("as_of", "2024-05-01", VALUE),
        ("as_of", "2024-05-01T12:00:00", VALUE),
        ("as_of", "yesterday", VALUE),
        ("as_of", "9" * 30, VALUE),
        ("timezone", "Mars/Olympus", VALUE),
        ("timezone", "../../etc/passwd", VALUE),
        ("timezone", "\0", VALUE),
        ("timezone", "posix/Europe/Vienna", VALUE),
        ("timezone", "localtime", VALUE),
    ],
)
def test_what_cannot_be_set_is_named_and_the_rest_is_set(
    name: str, value: OptionValue, problem: OptionError, catalogs: Catalogs
):
    changed, problems = with_changes(NONE, {name: value, "catalog ": "x"}, catalogs)
    assert (changed, problems) == (NONE, {name: problem, "catalog ": NAME})

    before = SessionOptions(catalog="lake", ref="main")
    changed, problems = with_changes(before, {name: value}, catalogs)
    assert (changed, problems) == (before, {name: problem})


def test_the_last_that_says_which_snapshot_goes_before_others(catalogs: Catalogs):
    by_ref, _ = with_changes(SessionOptions("lake", "db"), {"ref": "main"}, catalogs)

    by_id, problems = with_changes(by_ref, {"snapshot_id": 7}, catalogs)

    assert (by_id, problems) == (SessionOptions("lake", "db", snapshot_id=7), {})
    both, problems = with_changes(by_id, {"as_of": 5, "ref": "main"}, catalogs)
    assert both == SessionOptions("lake", "db", as_of=5)
    assert problems == {"ref": VALUE}


def test_a_client_is_told_where_names_are_looked_up(catalogs: Catalogs):
    assert NONE.told(catalogs) == {"catalog": "lake", "schema": ""}
    assert SessionOptions("pond", "db", as_of=5).told(catalogs) == {
        "catalog": "pond",
        "schema": "db",
        "as_of": 5,
    }


@pytest.mark.parametrize("raw", [{"branch": "x"}, {"ref": 5}, {"as_of": "x"}])
def test_options_of_another_version_end_the_session(raw: dict[str, object]):
    with pytest.raises(Unauthenticated, match="connect again"):
        SessionOptions.from_json(raw)
