"""Dates and times as they are written in SQL, and what they mean in the session's zone.

Only the plain ISO 8601 forms are read, those that every engine reads alike. DuckDB knows more
(`2024-1-5`, `infinity`, names of zones), and such a text is left to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp
from sqlglot.expressions.core import Expression as Node

from floeberg.process.sql.connecting import known_timezones
from floeberg.protocol import civil_time
from floeberg.protocol.errors import BadCommand, BadSql, UnsupportedSql
from floeberg.protocol.suggestions import cut, quoted

_FORM = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:[ T](?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?P<offset>Z|[+-]\d\d(?::\d\d)?)?)?",
    re.ASCII,
)
_TIME = re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,9})?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
# where the zones' rules are known alike to all; before, they are local mean times and guesses
_FIRST_YEAR, _LAST_YEAR = 1970, 2037
# whose clocks change by the moon, each year as it was predicted when a database was made
_PREDICTED = frozenset({"Africa/Casablanca", "Africa/El_Aaiun", "Asia/Gaza", "Asia/Hebron"})
_LAST_KNOWN_YEAR = 2022


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or time as it was written: nanoseconds since the epoch, in UTC where it named an
    offset (`zoned`), else on the clock of wherever it is read."""

    nanos: int
    zoned: bool
    is_date: bool


def parse_moment(text: str) -> Moment | None:
    """Return what `text` says, or None where it is of no form that is read here, or no date.

    >>> parse_moment("1970-01-02")
    Moment(nanos=86400000000000, zoned=False, is_date=True)
    """
    found = _FORM.fullmatch(text)
    if found is None or found["date"].startswith("0000"):
        return None
    try:
        if found["time"] is None:
            days = civil_time.parse_date(text)
            return Moment(days * civil_time.NANOS_PER_DAY, zoned=False, is_date=True)
        instant = civil_time.parse_timestamp(text)
    except ValueError:
        return None
    return Moment(instant.nanos, instant.zoned, is_date=False)


def parse_clock(text: str) -> int | None:
    """Return the nanoseconds since midnight of a time of day, or None."""
    try:
        return civil_time.parse_time(text) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Zone:
    """A time zone by its name. Raises `BadCommand` for a name that is not known here and to the
    engine: this machine's database has `localtime` and `posix/Europe/Vienna`, which are files."""

    name: str = "UTC"

    def __post_init__(self) -> None:
        _ = self._info

    @cached_property
    def _info(self) -> ZoneInfo | timezone:
        if self.name.upper() == "UTC":
            return UTC
        try:
            if self.name not in known_timezones():
                raise ZoneInfoNotFoundError
            return ZoneInfo(self.name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadCommand(
                f"{quoted(self.name)} is no time zone; write one as Europe/Amsterdam"
            ) from None

    def _is_sure_of(self, year: int) -> bool:
        is_predicted = self.name in _PREDICTED
        return _FIRST_YEAR < year <= (_LAST_KNOWN_YEAR if is_predicted else _LAST_YEAR)

    def local(self, instant: datetime) -> datetime:
        """Return what this zone's clock shows at an instant, without a zone."""
        return instant.astimezone(self._info).replace(tzinfo=None)

    def local_nanos(self, nanos: int) -> int | None:
        """Return what this zone's clock shows at an instant, None for years in which the zone's
        rules are not sure."""
        if self._info is UTC:
            return nanos
        seconds = nanos // civil_time.NANOS_PER_SECOND
        try:
            local = self.local(_EPOCH.replace(tzinfo=UTC) + timedelta(seconds=seconds))
        except OverflowError:
            return None
        if not self._is_sure_of(local.year):
            return None
        shown = (local - _EPOCH) // timedelta(seconds=1)
        return nanos + (shown - seconds) * civil_time.NANOS_PER_SECOND

    def utc(self, local_nanos: int) -> int | None:
        """Return the instant, in nanoseconds, at which this zone's clock shows `local_nanos`.

        None where it shows it twice or never, and for years in which the zone's rules are not sure.
        """
        if self._info is UTC:
            return local_nanos
        seconds = local_nanos // civil_time.NANOS_PER_SECOND
        try:
            local = _EPOCH + timedelta(seconds=seconds)
        except OverflowError:
            return None
        if not self._is_sure_of(local.year):
            return None
        first, second = (local.replace(tzinfo=self._info, fold=fold).utcoffset() for fold in (0, 1))
        if first is None or first != second:
            return None
        return local_nanos - round(first.total_seconds()) * civil_time.NANOS_PER_SECOND


def instant_ms(node: Node, zone: Zone) -> int:
    """Return the milliseconds since the epoch that a literal means, rounded down: text, a
    TIMESTAMP, a TIMESTAMPTZ or a DATE; one without an offset is read in `zone`.

    Raises `UnsupportedSql` for what is no literal, and `BadSql` for one that is no such time.
    """
    text = node
    while isinstance(text, exp.Cast | exp.Paren):
        text = text.this
    if not (isinstance(text, exp.Literal) and text.is_string):
        raise UnsupportedSql(
            "the time that a table is read at is written as it is, with its offset, as in"
            " TIMESTAMP AS OF '2024-05-01T12:00:00Z'"
        )
    moment = parse_moment(str(text.this))
    if moment is None:
        raise BadSql(
            f"{quoted(cut(str(text.this)))} is no time; write one as '2024-05-01T12:00:00Z'"
        )
    nanos = moment.nanos if moment.zoned else zone.utc(moment.nanos)
    if nanos is None:
        raise BadSql(
            f"{quoted(str(text.this))} is not one instant in {zone.name}; write its offset, as in"
            " '2024-05-01T12:00:00+02:00'"
        )
    return nanos // 1_000_000
