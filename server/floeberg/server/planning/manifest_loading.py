"""Load manifests ahead of whoever uses them: fetched, decoded and remembered.

Threads are the process's, shared by all plans: many to fetch, which is waiting most of the time,
and one a processor to decode. What was fetched and is not decoded yet is bounded in bytes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple, TypeVar

from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import Inflated, decode_manifest, in_turn
from floeberg.server.planning.fair_pool import FairPool, Job
from floeberg.server.planning.manifest_cache import Loaded, ManifestCache, ManifestKey, Origin
from floeberg.server.planning.run import PlanRun

_FETCHES_AT_ONCE = 16
_FETCHED_BYTES = 32 << 20
# of one plan: what is fetched, decoded, or waits for that, and what waits to be used
_AHEAD_BYTES, _AHEAD = 32 << 20, 64
_DECODING_NICENESS = 5
_BLOCKS_A_JOB, _JOBS_AHEAD = 8, 2  # blocks are of some 64 KiB
# A large plan leaves decoding to the pool, for ten seconds a manifest: one thread more than there
# are processors would gain nothing, and takes a memory of its own.
_PATIENCE = 200

R = TypeVar("R")
Read = Callable[[ManifestFile], bytes]


class _Pools(NamedTuple):
    fetching: FairPool
    decoding: FairPool


@cache
def _pools() -> _Pools:
    return _Pools(
        FairPool(_FETCHES_AT_ONCE, "manifest-fetch", _FETCHED_BYTES),
        FairPool(os.cpu_count() or 1, "manifest-decode", begin_thread=_give_way),
    )


# a fork has none of its parent's threads
os.register_at_fork(after_in_child=_pools.cache_clear)


def _give_way() -> None:
    """Let threads that answer plans go before this one, where a thread has a priority of its own.

    On Linux niceness is a thread's; elsewhere it is the whole process's, and stays as it is.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _DECODING_NICENESS)


def load_in_order(
    manifests: Sequence[ManifestFile],
    cache: ManifestCache,
    table_uuid: str | None,
    read: Read,
    run: PlanRun,
) -> Generator[Loaded, None, None]:
    """Yield the manifests in order, loading some ahead; `read` gives the bytes of one.

    While it waits for what another plan loads, it asks `run` whether it may go on.

    Raises what `run`, `read` and decoding raise, at the first manifest in that order that they fail
    for. Closing the generator gives up what was not begun.
    """
    # one alone is loaded by who waits for it
    lane = object() if len(manifests) > 1 else None
    ahead: deque[_Load] = deque()
    ahead_bytes = 0
    try:
        for manifest in manifests:
            load = _Load(manifest, ManifestKey.of(manifest, table_uuid), cache, read)
            while ahead and (
                len(ahead) == _AHEAD or ahead_bytes + load.fetched_bytes > _AHEAD_BYTES
            ):
                ahead_bytes -= ahead[0].fetched_bytes
                yield _taken(ahead, run)
            load.begin(lane)
            ahead.append(load)
            ahead_bytes += load.fetched_bytes
        while ahead:
            yield _taken(ahead, run)
    finally:
        for load in ahead:
            load.leave()


def call_in_order(calls: Sequence[Callable[[], R]], run: PlanRun) -> list[R]:
    """Return what each call returns, making several at a time in threads that fetch.

    Raises what the first one in order raises that fails; what was not begun then is given up.
    """
    jobs = [Job(call) for call in calls]
    if len(jobs) > 1:
        lane = object()
        for job in jobs:
            _pools().fetching.submit(lane, job)
    try:
        with run.waiting():
            return [job.result(run.check) for job in jobs]
    finally:
        for job in jobs:
            job.cancel()


def _taken(ahead: deque[_Load], run: PlanRun) -> Loaded:
    with run.waiting():
        loaded = ahead[0].result(run.check, _PATIENCE if run.is_large else 0)
    ahead.popleft().leave()
    return loaded


def _inflated_ahead(
    calls: Sequence[Callable[[], Inflated]],
) -> Generator[Inflated, None, None]:
    """Make calls that inflate blocks, some of them early in threads that decode, where these have
    nothing else to do: who decodes the only manifest of a plan is done a fifth sooner.
    """
    lane = object()
    jobs: deque[Job[list[Inflated]]] = deque()
    try:
        for first in range(0, len(calls), _BLOCKS_A_JOB):
            several = calls[first : first + _BLOCKS_A_JOB]
            job = Job(partial(_made, several))
            jobs.append(job)
            if len(calls) > _BLOCKS_A_JOB:
                _pools().decoding.submit(lane, job)
            if len(jobs) > _JOBS_AHEAD:
                yield from jobs.popleft().result()
        while jobs:
            yield from jobs.popleft().result()
    finally:
        for job in jobs:
            job.cancel()


def _made(calls: Sequence[Callable[[], R]]) -> list[R]:
    return [call() for call in calls]


class _Load:
    """One plan's wish for one manifest, which other plans may have too."""

    def __init__(
        self, manifest: ManifestFile, key: ManifestKey, cache: ManifestCache, read: Read
    ) -> None:
        self.fetched_bytes = max(manifest.length, 0)
        self._manifest = manifest
        self._key = key
        self._cache = cache
        self._read = read
        self._raw: bytes | None = None
        self._fetching = Job(self._fetched)
        self._loading = Job(self._decoded)
        self._is_first = True
        self._is_alone = False

    def begin(self, lane: Hashable | None) -> None:
        """Join who loads the manifest already, or else have that done in `lane`, if there is one.

        Whoever begins, leaves.
        """
        self._is_alone = lane is None
        own = self._loading
        self._loading, self._is_first = self._cache.join(self._key, own)
        if self._is_first:
            own.then(self._fetching.cancel)
            if lane is not None:
                self._fetching.then(lambda: self._go_on(lane))
                _pools().fetching.submit(lane, self._fetching, self.fetched_bytes, until=own)

    def result(self, check: Callable[[], None], patience: int) -> Loaded:
        """Return the manifest, loaded by then: if need be here and now."""
        if self._is_first:
            return self._loading.result(check, patience)
        if self._loading.succeeds(check, patience):
            return Loaded(self._loading.result().segment, Origin.MEMORY)
        # what failed for another plan may do for this one, which has a storage of its own
        return self._decoded()

    def leave(self) -> None:
        self._cache.leave(self._key)

    def _fetched(self) -> Loaded | None:
        """Return the manifest where it need not be fetched, else keep what was fetched of it."""
        # another plan may have loaded it since this one asked
        segment = self._cache.segment_if_kept(self._key)
        if segment is not None:
            return Loaded(segment, Origin.MEMORY)
        segment = self._cache.segment_from_disk(self._key)
        if segment is not None:
            return Loaded(segment, Origin.DISK)
        self._raw = self._read(self._manifest)
        return None

    def _go_on(self, lane: Hashable) -> None:
        if not self._loading.is_waiting:
            return
        if self._raw is None:  # there is nothing to decode
            self._loading.run()
        else:
            _pools().decoding.submit(lane, self._loading)

    def _decoded(self) -> Loaded:
        loaded = self._fetching.result()
        if loaded is not None:
            return loaded
        raw, self._raw = self._raw, None
        assert raw is not None
        in_order = _inflated_ahead if self._is_alone else in_turn
        segment = decode_manifest(raw, self._manifest, in_order=in_order)
        self._cache.keep_segment(self._key, segment)
        # nobody waits for the disk
        self._loading.then(lambda: self._cache.keep_on_disk(self._key, segment))
        return Loaded(segment, Origin.STORAGE, len(raw))
