from __future__ import annotations

import pytest
from sqlglot import exp

from floeberg.protocol.errors import BadCommand, BadSql, ConflictingSnapshot, UnsupportedSql
from floeberg.server.sql.instants import Zone
from floeberg.server.sql.names import Session, TableReference, Version
from floeberg.server.sql.parsing import parse_sql

SESSION = Session(["lake", "Old"], "lake", ("db",), zone=Zone("Europe/Amsterdam"))


def reference(table: str, session: Session = SESSION) -> TableReference:
    found = parse_sql(f"SELECT * FROM {table}").tree.find(exp.Table)
    assert found is not None
    return session.reference(found)


@pytest.mark.parametrize(
    ("table", "meanings"),
    [
        ("t", ["lake.db.t", "lake.t"]),
        ("x.t", ["lake.x.t"]),
        ("lake.x.t", ["lake.x.t", "lake.lake.x.t"]),
        ("old.x.t", ["Old.x.t", "lake.old.x.t"]),
        ("old.t", ["Old.t", "lake.old.t"]),
        ("a.b.c.d.t", ["lake.a.b.c.d.t"]),
    ],
)
def test_a_name_is_completed_from_the_session(table: str, meanings: list[str]) -> None:
    assert [str(m.name) for m in reference(table).meanings] == meanings


def test_quoted_dots_belong_to_the_name_or_part_it() -> None:
    assert [m.name.parts for m in reference('"a.b".t').meanings] == [
        ("lake", "a.b", "t"),
        ("lake", "a", "b", "t"),
    ]
    assert [m.name.parts for m in reference('"x.t"').meanings] == [
        ("lake", "db", "x.t"),
        ("lake", "x.t"),
        ("lake", "x", "t"),
    ]


@pytest.mark.parametrize(
    ("table", "version"),
    [
        ("x.t", Version()),
        ("x.t VERSION AS OF 123", Version(snapshot_id=123)),
        ("x.t FOR VERSION AS OF 123 AS y", Version(snapshot_id=123)),
        ("x.t VERSION AS OF 'main'", Version(ref="main")),
        ("x.t AT (VERSION => 123)", Version(snapshot_id=123)),
        ("x.t TIMESTAMP AS OF '1970-01-01T00:00:01.5Z'", Version(as_of_ms=1500)),
        ("x.t FOR TIMESTAMP AS OF '2024-07-01'", Version(as_of_ms=1_719_784_800_000)),
        (
            "x.t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-07-01 02:00:00'",
            Version(as_of_ms=1_719_792_000_000),
        ),
        (
            "x.t AT (TIMESTAMP => TIMESTAMPTZ '2024-07-01 00:00:00+00')",
            Version(as_of_ms=1_719_792_000_000),
        ),
    ],
)
def test_a_version_is_read_as_engines_write_it(table: str, version: Version) -> None:
    assert [m.version for m in reference(table).meanings] == [version]


def test_an_at_sign_is_part_of_the_name_or_precedes_a_ref() -> None:
    found = [(m.name.parts, m.version) for m in reference('x."t@dev"').meanings]

    assert found == [(("lake", "x", "t@dev"), Version()), (("lake", "x", "t"), Version(ref="dev"))]
    assert reference('x."t@5"').meanings[1].version == Version(snapshot_id=5)


def test_the_session_s_version_holds_where_none_is_stated() -> None:
    session = Session(["lake"], "lake", version=Version(ref="dev"))

    assert reference("t", session).meanings[0].version == Version(ref="dev")
    assert reference("t VERSION AS OF 5", session).meanings[0].version == Version(snapshot_id=5)


@pytest.mark.parametrize("table", ["t.snapshots", '"t$Snapshots"', "T.SNAPSHOTS".lower()])
def test_metadata_tables_come_after_tables_of_that_name(table: str) -> None:
    first, *_ = found = reference(table).meanings

    assert first.metadata_table is None
    assert [(str(m.name), m.metadata_table) for m in found if m.metadata_table] == [
        ("lake.db.t", "snapshots"),
        ("lake.t", "snapshots"),
    ]


def test_the_information_schema_is_no_table_of_a_catalog() -> None:
    assert reference("information_schema.Tables").information_schema == "tables"
    assert reference("lake.INFORMATION_SCHEMA.columns").information_schema == "columns"
    assert reference("information_schema.tables").meanings == ()


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("t AT (TIMESTAMP => now())", UnsupportedSql),
        ("t TIMESTAMP AS OF 'yesterday'", BadSql),
        ("t TIMESTAMP AS OF '2024-03-31 02:30:00'", BadSql),
        ("t VERSION AS OF 1.5", BadSql),
        ("t VERSION AS OF 99999999999999999999", BadSql),
        ("t FOR VERSION BETWEEN 1 AND 2", UnsupportedSql),
        ('"t@dev" VERSION AS OF 5', ConflictingSnapshot),
        ("information_schema.tables VERSION AS OF 5", UnsupportedSql),
        ('""', BadSql),
    ],
)
def test_versions_and_names_that_mean_nothing_are_refused(
    table: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        reference(table)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(BadCommand, match="no time zone"):
        Zone("Mars/Olympus")


@pytest.mark.parametrize(
    ("zone", "local_seconds", "utc_seconds"),
    [
        ("UTC", -(2**40), -(2**40)),
        ("Europe/Amsterdam", 1_719_792_000, 1_719_784_800),
        ("Asia/Kolkata", 1_719_792_000, 1_719_772_200),
        ("Europe/Amsterdam", 1_711_852_200, None),  # 2024-03-31 02:30, which is skipped
        ("Europe/Amsterdam", 1_729_996_200, None),  # 2024-10-27 02:30, which is twice
        ("Europe/Amsterdam", -1_719_792_000, None),
    ],
)
def test_a_clock_is_translated_where_it_is_sure(
    zone: str, local_seconds: int, utc_seconds: int | None
) -> None:
    nanos = None if utc_seconds is None else utc_seconds * 10**9

    assert Zone(zone).utc(local_seconds * 10**9) == nanos
