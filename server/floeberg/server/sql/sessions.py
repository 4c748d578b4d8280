"""What a session says for all of its statements: where names are looked up, and as of when.

A session is nothing that a coordinator keeps. Its options travel with the client, sealed, from call
to call (`floeberg.process.auth.carrying`), so that every coordinator knows them.

Spec: `Flight.proto`, SetSessionOptions and GetSessionOptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from floeberg.protocol.commands import instant
from floeberg.protocol.errors import BadCommand, Unauthenticated
from floeberg.protocol.flight_sql.actions import OptionError, OptionValue
from floeberg.protocol.types import Json
from floeberg.server.catalogs import Catalogs
from floeberg.server.sql.instants import Zone

MAX_VALUE_LENGTH = 256
"""Options travel in headers, which are short."""

_MOMENTS = ("ref", "snapshot_id", "as_of")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of a session, None for what is not set.

    `catalog` and `schema` are where a table is looked up whose name doesn't say. At most one of
    `ref`, `snapshot_id` and `as_of` (milliseconds since the epoch) is set: what is read of tables
    for which a statement doesn't say it. `timezone` is a name of the IANA database.
    """

    catalog: str | None = None
    schema: str | None = None
    ref: str | None = None
    snapshot_id: int | None = None
    as_of: int | None = None
    timezone: str | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Json]) -> SessionOptions:
        """Return the options that a client carries. Raises `Unauthenticated` for those of another
        version."""
        kinds = {f.name: int if f.name in ("snapshot_id", "as_of") else str for f in fields(cls)}
        if not all(name in kinds and isinstance(raw[name], kinds[name]) for name in raw):
            raise Unauthenticated("another version of floeberg has made the session: connect again")
        return cls(**raw)

    def to_json(self) -> dict[str, Json]:
        """Return the options that are set."""
        every = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in every.items() if value is not None}

    def told(self, catalogs: Catalogs) -> dict[str, OptionValue]:
        """Return what a client is told: what is set, and where names are looked up in any case.
        Without a schema, that is among the tables that have no namespace."""
        return {"catalog": catalogs.default.name, "schema": "", **self.to_json()}


_NAMES = frozenset(f.name for f in fields(SessionOptions))

Problems: TypeAlias = Mapping[str, OptionError]


def with_changes(
    session: SessionOptions, changes: Mapping[str, OptionValue | None], catalogs: Catalogs
) -> tuple[SessionOptions, Problems]:
    """Return the session with those changes that can be made, and why others can't.

    None erases an option. What says which snapshot is read takes the place of what said so before.
    `catalogs` are the caller's: another's can't be chosen.
    """
    problems: dict[str, OptionError] = {}
    values = session.to_json()
    chosen = False
    for name, value in changes.items():
        if name not in _NAMES:
            problems[name] = OptionError.INVALID_NAME
            continue
        if value is None or (name, value) == ("schema", ""):
            values.pop(name, None)
            continue
        try:
            read = _read(name, value, catalogs)
        except (ValueError, BadCommand):
            problems[name] = OptionError.INVALID_VALUE
            continue
        if name in _MOMENTS:
            if chosen:
                # two in one call: neither goes before the other
                problems[name] = OptionError.INVALID_VALUE
                continue
            chosen = True
            for other in _MOMENTS:
                values.pop(other, None)
        values[name] = read
    return SessionOptions(**values), problems


def _read(name: str, value: OptionValue, catalogs: Catalogs) -> str | int:
    """Return an option's value as it is kept. Raises `ValueError`, or `BadCommand`."""
    if isinstance(value, str) and not 0 < len(value) <= MAX_VALUE_LENGTH:
        raise ValueError("is empty or too long")
    match name, value:
        case "snapshot_id", str() if value.isascii() and value.removeprefix("-").isdigit():
            return _int64(int(value))
        case "snapshot_id", int() if not isinstance(value, bool):
            return _int64(value)
        case "as_of", str() if value.isascii() and value.removeprefix("-").isdigit():
            return _int64(int(value))
        case "as_of", str() | int() if not isinstance(value, bool):
            return _int64(instant(value))
        case "catalog", str() if value in catalogs.names:
            return value
        case "timezone", str():
            return Zone(value).name
        case "schema" | "ref", str():
            return value
    raise ValueError("is none that the option takes")


def _int64(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("does not fit into 64 bits")
    return number
