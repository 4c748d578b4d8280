"""Lent credentials of many tables, renewed before they end: for a table once at a time.

The one rule for both who hold such credentials: a coordinator renews them at the catalog, a worker
at a coordinator. What still lives goes on serving while a renewal fails, or takes its time.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from floeberg.process.storage.credentials import earliest_expiry_ms, fingerprint
from floeberg.protocol.errors import (
    BadTicket,
    CredentialsUnavailable,
    ExpiredCredentials,
    ExpiredTicket,
    FloebergError,
    InternalError,
    Unavailable,
)
from floeberg.protocol.storage import StorageConfig

logger = logging.getLogger(__name__)

_MAX_TABLES = 4096
_MAX_REFUSED = 16
# how long credentials that still live wait for others
_PATIENCE_SECONDS = 2.0
# A lender that has just answered is not asked again: after a refusal by the store it may have had
# nothing else to give.
_AGAIN_MS = 10_000
_FIRST_BACKOFF_MS = 1000
_LONGEST_BACKOFF_MS = 60_000


class TableKey(NamedTuple):
    """A table, by its name for people, and by what tells it from a later one of that name."""

    name: str
    uuid: str | None

    def __str__(self) -> str:
        return self.name


Renew: TypeAlias = Callable[[], StorageConfig]
"""Fetches fresh credentials. Raises `FloebergError`."""

Ends: TypeAlias = Callable[[StorageConfig], int | None]
"""Says when credentials end, in ms since the epoch; None for never, as far as is known."""


class CredentialSource(Protocol):
    """Where the credentials of one table come from. Safe to use from several threads."""

    def current(self, held: StorageConfig, ends: Ends = earliest_expiry_ms) -> StorageConfig:
        """Return `held`, or others where those end soon.

        Raises `CredentialsUnavailable` and `ExpiredCredentials` where they have ended and no
        others are to be had, now or at all.
        """
        ...

    def after_refusal(self, refused: StorageConfig) -> StorageConfig:
        """Return others than `refused`, which a store did not take, or those again where there are
        none. Raises as `current` does where nobody could be asked."""
        ...


@dataclass(slots=True)
class _Held:
    """What is held of a table: of the credentials that were seen or fetched those that last."""

    config: StorageConfig
    life_ms: int | None = None
    """How long credentials are good that a renewal gives; None before the first."""
    renewing: Future[None] | None = None
    is_late: bool = False
    """Whether somebody whose credentials live has waited for that in vain: nobody else will."""
    failures: int = 0
    error: FloebergError | None = None
    """Why the last renewal failed, if it did."""
    next_ms: int = 0
    """Not to be renewed before."""
    refused: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Fingerprints of what a store did not take, the last ones."""

    def is_refused(self, config: StorageConfig) -> bool:
        return bool(self.refused) and fingerprint(config) in self.refused

    def refuse(self, config: StorageConfig) -> None:
        mark = fingerprint(config)
        self.refused[mark] = None
        self.refused.move_to_end(mark)
        while len(self.refused) > _MAX_REFUSED:
            self.refused.popitem(last=False)

    def offer(self, config: StorageConfig, *, is_fresh: bool = False) -> None:
        """Hold `config` from now on if that lasts longer; one that `is_fresh` unless it is known to
        last less long."""
        if config is self.config or (self.is_refused(config) and not is_fresh):
            return
        new, old = earliest_expiry_ms(config), earliest_expiry_ms(self.config)
        lasts_less = old is None or (new is not None and new <= old)
        if is_fresh:
            lasts_less = old is not None and new is not None and new < old
        if self.is_refused(self.config) or not lasts_less:
            self.config = config


class Renewals:
    """Holds credentials by table, of the last `max_tables`. Safe to use from several threads.

    They are renewed when they are asked for within `margin_ms` of their end, or in the second half
    of the time that renewed ones are good for, where that is less. Those without an end are
    renewed when a store has refused them. Where others still live, nobody waits longer for a
    renewal than `patience_seconds`, and who comes after that not at all.
    """

    def __init__(
        self,
        margin_ms: int,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        jitter: Callable[[], float] = random.random,
        patience_seconds: float = _PATIENCE_SECONDS,
        max_tables: int = _MAX_TABLES,
    ) -> None:
        self.renewed = 0
        self.failed = 0
        self._margin_ms = margin_ms
        self._now_ms = now_ms
        self._jitter = jitter
        self._patience_seconds = patience_seconds
        self._max_tables = max_tables
        self._lock = threading.Lock()
        self._tables: OrderedDict[Hashable, _Held] = OrderedDict()

    def held(self, table: Hashable) -> StorageConfig | None:
        """Return the credentials that are held of a table, if any."""
        with self._lock:
            found = self._tables.get(table)
            return None if found is None else found.config

    def current(
        self, table: Hashable, seen: StorageConfig, renew: Renew, ends: Ends = earliest_expiry_ms
    ) -> StorageConfig:
        """Return `seen` while that is good for long enough, else what is held, renewed if need be.

        `str(table)` is its name for people. Raises as `CredentialSource.current` does, at once for
        a while after a renewal failed.
        """
        with self._lock:
            held = self._of(table, seen)
            for config in (seen, held.config):
                if self._is_good(config, held, ends):
                    return config
            if self._now_ms() < held.next_ms:
                return self._as_it_is(table, held, ends)
            done = self._renewal(table, held, renew)
            lives = self._lives(held.config, ends) and not held.is_refused(held.config)
            patience = 0.0 if held.is_late else self._patience_seconds
        with suppress(TimeoutError):
            done.result(patience if lives else None)
        with self._lock:
            held.is_late = held.renewing is done
            return self._as_it_is(table, held, ends)

    def after_refusal(self, table: Hashable, refused: StorageConfig, renew: Renew) -> StorageConfig:
        """Return other credentials than `refused`, renewed unless they are held already; the same
        where the lender has no others, or has answered just now.

        Raises as `CredentialSource.after_refusal` does.
        """
        with self._lock:
            held = self._of(table, refused)
            held.refuse(refused)
            if not held.is_refused(held.config):
                return held.config
            done = held.renewing
            if done is None and self._now_ms() >= held.next_ms:
                done = self._renewal(table, held, renew)
        if done is not None:
            done.result()
        with self._lock:
            # another may have brought some meanwhile
            if held.error is not None and held.is_refused(held.config):
                raise _none_to_be_had(table, held.error)
            return held.config

    # --- what is held; with the lock --------------------------------------------------------------

    def _of(self, table: Hashable, seen: StorageConfig) -> _Held:
        held = self._tables.get(table)
        if held is None:
            held = self._tables[table] = _Held(seen)
        held.offer(seen)
        self._tables.move_to_end(table)
        while len(self._tables) > self._max_tables:
            self._tables.popitem(last=False)
        return held

    def _is_good(self, config: StorageConfig, held: _Held, ends: Ends) -> bool:
        if held.is_refused(config):
            return False
        margin_ms = self._margin_ms
        if held.life_ms is not None:
            margin_ms = min(margin_ms, held.life_ms // 2)
        return self._lives(config, ends, margin_ms)

    def _lives(self, config: StorageConfig, ends: Ends, margin_ms: int = 0) -> bool:
        end = ends(config)
        return end is None or end - self._now_ms() > margin_ms

    def _as_it_is(self, table: Hashable, held: _Held, ends: Ends) -> StorageConfig:
        if held.error is None or self._lives(held.config, ends):
            return held.config
        raise _none_to_be_had(table, held.error)

    # --- renewing ---------------------------------------------------------------------------------

    def _renewal(self, table: Hashable, held: _Held, renew: Renew) -> Future[None]:
        """Return what ends with the renewal that is under way, or begins now; with the lock."""
        if held.renewing is None:
            done = Future[None]()
            # in a thread of its own: who began it may leave, and others wait for it
            work = (self._renew, table, held, renew, done)
            threading.Thread(
                target=copy_context().run, args=work, name="floeberg-renewal", daemon=True
            ).start()
            held.renewing, held.is_late = done, False
        return held.renewing

    def _renew(self, table: Hashable, held: _Held, renew: Renew, done: Future[None]) -> None:
        try:
            self._ask(table, held, renew)
        finally:
            with self._lock:
                held.renewing = None
            done.set_result(None)

    def _ask(self, table: Hashable, held: _Held, renew: Renew) -> None:
        try:
            fresh = renew()
        except FloebergError as error:
            self._fail(table, held, error)
            return
        except Exception:  # at the edge of a thread: whoever waits would hear nothing of it
            logger.exception("unexpected error", extra={"table": str(table)})
            self._fail(
                table, held, InternalError("renewing failed; the log of this process says why")
            )
            return
        with self._lock:
            self.renewed += 1
            now, end = self._now_ms(), earliest_expiry_ms(fresh)
            held.failures, held.error = 0, None
            held.life_ms = None if end is None else max(0, end - now)
            again_ms = _AGAIN_MS if held.life_ms is None else min(_AGAIN_MS, held.life_ms // 4)
            held.next_ms = now + max(again_ms, _FIRST_BACKOFF_MS)
            held.offer(fresh, is_fresh=True)
            left = self._left_seconds(held.config)
        logger.info("credentials renewed", extra={"table": str(table), "left_seconds": left})

    def _fail(self, table: Hashable, held: _Held, error: FloebergError) -> None:
        # a ticket that is too old to ask with is one stream's matter, and keeps no other waiting
        is_of_all = not isinstance(error, BadTicket | ExpiredTicket)
        with self._lock:
            self.failed += 1
            pause = min(_FIRST_BACKOFF_MS << min(held.failures, 10), _LONGEST_BACKOFF_MS)
            held.failures, held.error = held.failures + is_of_all, error
            if is_of_all:
                held.next_ms = self._now_ms() + int(pause * (0.5 + self._jitter() / 2))
            left = self._left_seconds(held.config)
        told = {"table": str(table), "code": error.code, "error": str(error), "left_seconds": left}
        logger.warning("credentials not renewed", extra=told)

    def _left_seconds(self, config: StorageConfig) -> float | None:
        end = earliest_expiry_ms(config)
        return None if end is None else round((end - self._now_ms()) / 1000, 1)


def _none_to_be_had(table: Hashable, why: FloebergError) -> FloebergError:
    error = (
        CredentialsUnavailable(f"fresh credentials for {table} could not be had: {why}")
        if isinstance(why, Unavailable)
        else ExpiredCredentials(
            f"the credentials that the catalog lent for {table} have ended, and there are no"
            f" others: {why}; ask for the scan again (GetFlightInfo)"
        )
    )
    error.__cause__ = why
    return error
