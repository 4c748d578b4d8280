from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol import civil_time

days = st.integers(-(2**31), 2**31 - 1)


@given(date=st.dates())
def test_dates_count_as_the_standard_librarys_do(date: datetime.date):
    count = (date - datetime.date(1970, 1, 1)).days

    assert civil_time.days_from_civil(date.year, date.month, date.day) == count
    assert civil_time.civil_from_days(count) == (date.year, date.month, date.day)
    assert civil_time.format_date(count) == date.isoformat()


@given(days)
def test_days_far_from_now_round_trip(count: int):
    assert civil_time.days_from_civil(*civil_time.civil_from_days(count)) == count


@given(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.booleans())
def test_every_timestamp_round_trips_as_text(value: int, nanos: bool, zoned: bool):
    text = civil_time.format_timestamp(value, nanos=nanos, zoned=zoned)

    assert civil_time.parse_timestamp(text) == civil_time.Instant(
        value if nanos else value * 1000, zoned
    )


@given(st.datetimes(timezones=st.timezones()))
def test_offsets_count_as_the_standard_librarys_do(instant: datetime.datetime):
    offset = instant.utcoffset()
    assert offset is not None
    if offset.seconds % 60:  # before standard time; no text form that we take says seconds
        return
    since = instant - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

    parsed = civil_time.parse_timestamp(instant.isoformat())

    assert parsed == civil_time.Instant(since // datetime.timedelta(microseconds=1) * 1000, True)


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 00:00z", 0),
        ("1970-01-01T01:00:00.5+01:00", 500_000_000),
        ("1969-12-31T19:00:00-0500", 0),
        ("1969-12-31T23:59:59.999999999+00", -1),
    ],
)
def test_the_usual_spellings_of_an_instant_are_read(text: str, nanos: int):
    assert civil_time.parse_timestamp(text) == civil_time.Instant(nanos, zoned=True)


@pytest.mark.parametrize(
    "text",
    [
        "2021-02-29T00:00:00",
        "2021-13-01T00:00:00",
        "2021-00-01T00:00:00",
        "2021-01-01T24:00:00",
        "2021-01-01T00:60:00",
        "2021-01-01T00:00:60",
        "2021-01-01T00:00:00.1234567890",
        "2021-01-01T00:00:00+19:00",
        "2021-01-01T00:00:00+01:60",
        "2021-01-01",
        "2021-1-1T00:00:00",
        " 2021-01-01T00:00:00",
        "٢٠٢١-01-01T00:00:00",
        "",
    ],
)
def test_what_is_no_instant_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        civil_time.parse_timestamp(text)


@pytest.mark.parametrize(
    "text", ["2021-02-30", "12021-01-01", "2100-02-29", "2021-01-01T00:00", "x", "210-01-01"]
)
def test_what_is_no_date_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        civil_time.parse_date(text)
