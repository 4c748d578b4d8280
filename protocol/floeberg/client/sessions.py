"""What a query is told beside its text: where names are looked up, what is read of tables, and the
time zone.

A coordinator keeps no session. It seals the options, and the client shows them with each call, as a
cookie: that holds no credential, so it goes with whatever the client logs in with by then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import pyarrow.flight as fl

from floeberg.protocol.commands import instant
from floeberg.protocol.errors import BadCommand, BadRequest, ConflictingSnapshot, InternalError
from floeberg.protocol.flight_sql.actions import OptionError, OptionValue

_FRESH_SECONDS = 300.0
"""How long a cookie is shown: until long before the key is gone that it is sealed with."""

_MOST_KEPT = 64

_MOMENTS = ("snapshot_id", "ref", "as_of")

_REMEDIES = {
    "catalog": "write one that the server has",
    "ref": "write the name of a branch or a tag",
    "timezone": "write a name of the IANA database, such as Europe/Vienna",
}


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """The options of a query, None for the server's defaults. `as_of` is in milliseconds since the
    epoch."""

    catalog: str | None = None
    schema: str | None = None
    ref: str | None = None
    snapshot_id: int | None = None
    as_of: int | None = None
    timezone: str | None = None

    @classmethod
    def from_arguments(
        cls, *, as_of: int | str | datetime | None = None, **options: Any
    ) -> SqlOptions:
        """Raises `BadCommand` for an `as_of` that is no time and for what is no text, and
        `ConflictingSnapshot` for more than one of `ref`, `snapshot_id` and `as_of`."""
        try:
            found = cls(as_of=None if as_of is None else instant(as_of), **options)
        except ValueError as exc:
            raise BadCommand(f"as_of {exc}") from exc
        for name, value in found.given().items():
            if isinstance(value, str):
                check_text(name, value)
        chosen = [name for name in _MOMENTS if getattr(found, name) is not None]
        if len(chosen) > 1:
            raise ConflictingSnapshot(chosen)
        return found

    def given(self) -> dict[str, OptionValue]:
        """Return the options that are set."""
        every = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in every.items() if value is not None}


def check_text(name: str, value: str) -> None:
    """Raise `BadCommand` for text that can't be sent."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadCommand(
            f"{name} holds half of a surrogate pair, which no text does; leave it out"
        ) from None


class Cookies:
    """The cookies of a connection, kept by the options in them. Safe to use from several
    threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[SqlOptions, tuple[float, bytes]] = {}

    def of(self, options: SqlOptions, ask: Callable[[], bytes]) -> bytes:
        """Return the cookie that holds `options`; `ask` asks for one."""
        now = self._clock()
        with self._lock:
            since, cookie = self._kept.get(options, (0.0, b""))
        if cookie and now - since < _FRESH_SECONDS:
            return cookie
        cookie = ask()
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[options] = now, cookie
        return cookie


class SetCookies(fl.ClientMiddlewareFactory):
    """Notes the cookies that a server has a client keep, by their names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def start_call(self, info: fl.CallInfo) -> fl.ClientMiddleware:
        return _SetCookies(self.found)

    def header(self) -> bytes:
        """Return the `cookie` header to show from now on. Raises `InternalError` where the server
        has set none."""
        if not self.found:
            raise InternalError("the coordinator has set the session's options without a cookie")
        return "; ".join(f"{name}={value}" for name, value in self.found.items()).encode()


class _SetCookies(fl.ClientMiddleware):
    def __init__(self, found: dict[str, str]) -> None:
        super().__init__()
        self._found = found

    # the stubs have one value a name
    def received_headers(self, headers: Mapping[str, Any]) -> None:
        for raw in headers.get("set-cookie", ()):
            text = raw.decode("latin-1") if isinstance(raw, bytes) else raw
            name, _, value = text.partition(";")[0].strip().partition("=")
            self._found[name] = value


def refused(options: Mapping[str, OptionValue], errors: Mapping[str, OptionError]) -> BadRequest:
    """Return the error for options that the server doesn't take."""
    reasons = []
    for name, error in errors.items():
        if error is OptionError.INVALID_NAME:
            reasons.append(f"{name} is an option that the server doesn't have")
            continue
        remedy = _REMEDIES.get(name)
        because = f": {remedy}" if remedy else ""
        reasons.append(f"{name}={options.get(name)!r} is refused{because}")
    return BadRequest("; ".join(reasons))
