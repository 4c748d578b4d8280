"""Dates and times as the numbers that Iceberg stores, and as ISO 8601 text.

The calendar is the proleptic Gregorian one, without leap seconds, and it reaches as far as 32 bits
of days do, which is far beyond `datetime`. A year outside 0 to 9999 is written with its sign. Spec:
"Primitive Types", Appendix D, "JSON single-value serialization".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_DAY = 86_400 * NANOS_PER_SECOND
MICROS_PER_DAY = 86_400 * 1_000_000
MICROS_PER_HOUR = 3_600 * 1_000_000

_DAYS_PER_400_YEARS = 146_097
_DAYS_TO_1970 = 719_468  # from 0000-03-01, where the computing year starts

_DATE = r"([+-]?\d{4}|[+-]\d{5,9})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_OFFSET = r"([Zz]|[+-]\d\d(?::?\d\d)?)"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_TIME, re.ASCII)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}[Tt ]{_TIME}{_OFFSET}?", re.ASCII)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date; earlier dates are negative.

    >>> days_from_civil(1969, 12, 31)
    -1
    """
    if month <= 2:  # years run from March, so that the leap day comes last
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_PER_400_YEARS + day_of_era - _DAYS_TO_1970


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of the date that is `days` after 1970-01-01.

    >>> civil_from_days(-1)
    (1969, 12, 31)
    """
    era, day_of_era = divmod(days + _DAYS_TO_1970, _DAYS_PER_400_YEARS)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day


# --- reading -------------------------------------------------------------------------------------


class WrongForm(ValueError):
    """The text is not of the form that it must have; any other `ValueError` is about what it
    says."""


@dataclass(frozen=True, slots=True)
class Instant:
    """A timestamp as it was written: nanoseconds since the epoch, in UTC where it named an offset
    (`zoned`)."""

    nanos: int
    zoned: bool


def parse_date(text: str) -> int:
    """Return the days since 1970-01-01 of a text like `2017-11-16`; ValueError says what is
    wrong."""
    match = _DATE_TEXT.fullmatch(text)
    if match is None:
        raise WrongForm("a date is written like 2017-11-16")
    return _days(*match.groups())


def parse_time(text: str) -> int:
    """Return the nanoseconds since midnight of a text like `22:31:08.123456`; seconds may be left
    out."""
    match = _TIME_TEXT.fullmatch(text)
    if match is None:
        raise WrongForm("a time is written like 22:31:08.123456")
    return _nanos_of_day(*match.groups())


def parse_timestamp(text: str) -> Instant:
    """Return the instant of a text like `2017-11-16T22:31:08.123456+01:00`.

    A space may stand for the T; seconds and their fraction (up to nanoseconds) may be left out.
    Without an offset the instant is not `zoned`.
    """
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None:
        raise WrongForm("a timestamp is written like 2017-11-16T22:31:08.123456")
    year, month, day, *time, offset = match.groups()
    nanos = _days(year, month, day) * NANOS_PER_DAY + _nanos_of_day(*time)
    if offset is None:
        return Instant(nanos, zoned=False)
    return Instant(nanos - _offset_seconds(offset) * NANOS_PER_SECOND, zoned=True)


def _days(year: str, month: str, day: str) -> int:
    days = days_from_civil(int(year), int(month), int(day))
    if not 1 <= int(month) <= 12 or civil_from_days(days) != (
        int(year),
        int(month),
        int(day),
    ):
        raise ValueError(f"there is no date {year}-{month}-{day}")
    return days


def _nanos_of_day(hour: str, minute: str, second: str | None, fraction: str | None) -> int:
    seconds = int(second or 0)
    if int(hour) > 23 or int(minute) > 59 or seconds > 59:
        raise ValueError(f"there is no time {hour}:{minute}:{second or '00'}")
    whole = (int(hour) * 60 + int(minute)) * 60 + seconds
    return whole * NANOS_PER_SECOND + int((fraction or "").ljust(9, "0"))


def _offset_seconds(offset: str) -> int:
    if offset in "Zz":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 18 or minutes > 59:
        raise ValueError(f"there is no offset {offset}")
    return (hours * 60 + minutes) * (-60 if offset[0] == "-" else 60)


# --- writing -------------------------------------------------------------------------------------


def format_date(days: int) -> str:
    """Return the text of a date; `parse_date` takes it back.

    >>> format_date(17486), format_date(-719529)
    ('2017-11-16', '-0001-12-31')
    """
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def format_time(micros: int) -> str:
    """Return the text of a time, with six digits after the second."""
    return _clock(micros, 6)


def format_timestamp(value: int, *, nanos: bool, zoned: bool) -> str:
    """Return the text of a timestamp in micro- or nanoseconds; `zoned` adds the offset of UTC.

    >>> format_timestamp(-1, nanos=False, zoned=True)
    '1969-12-31T23:59:59.999999+00:00'
    """
    days, rest = divmod(value, NANOS_PER_DAY if nanos else MICROS_PER_DAY)
    return f"{format_date(days)}T{_clock(rest, 9 if nanos else 6)}{'+00:00' if zoned else ''}"


def instant_text(timestamp_ms: int) -> str:
    """Return an instant as people read it, in UTC, and as a number.

    >>> instant_text(1714564800000)
    '2024-05-01T12:00:00.000Z (1714564800000 ms since the epoch)'
    """
    days, rest = divmod(timestamp_ms, MICROS_PER_DAY // 1000)
    return f"{format_date(days)}T{_clock(rest, 3)}Z ({timestamp_ms} ms since the epoch)"


def _clock(value: int, digits: int) -> str:
    seconds, fraction = divmod(value, 10**digits)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{fraction:0{digits}}"
