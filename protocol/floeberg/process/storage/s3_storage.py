"""Objects in S3, fetched by obstore, which does it with a fraction of the work of s3fs.

obstore follows no bucket into its region and cannot spell every key, and it has no directories.
What it has not is left to s3fs, which is loaded only then: that takes half a second.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from floeberg.process.storage.locations import split_location
from floeberg.process.storage.ranges import answer, coalesce
from floeberg.process.storage.remote_file import RemoteFile
from floeberg.process.storage.s3 import s3_options
from floeberg.process.storage.s3_identity import identity_options
from floeberg.process.storage.store_errors import not_served, refused
from floeberg.protocol.errors import BadConfig, FloebergError, MissingFile
from floeberg.protocol.storage import Storage

if TYPE_CHECKING:
    from obstore.store import ClientConfig

_DEADLINE_SECONDS = 60.0
# For a whole object nobody knows the length of: while it flows, it may. A read that stalls ends
# with `s3.request-timeout`.
_WHOLE_SECONDS = 600.0
_SLOWEST_BYTES_PER_SECOND = 1_000_000
_ATTEMPTS = 4
_AT_ONCE = 64
_CHUNK_BYTES = 1 << 20

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_STATUS = re.compile(r"non-2xx status code: (\d+)")
_CODE = re.compile(r"<Code>(\w+)</Code>")
# what a store says to whoever asks in the wrong region, in its words and in obstore's
_ELSEWHERE = ("AuthorizationHeaderMalformed", "PermanentRedirect", "Received redirect without")
_REFUSALS = frozenset(
    {"ExpiredToken", "InvalidToken", "InvalidAccessKeyId", "TokenRefreshRequired", "401", "403"}
)
_BEYOND_THE_END = frozenset({"InvalidRange", "416"})

_STORE_ERRORS = (BaseError, OSError)

T = TypeVar("T")

Place: TypeAlias = tuple[S3Store, str]
"""The store of a bucket, and a key in it."""

Parts: TypeAlias = list[bytes | FloebergError]
Found: TypeAlias = list[list[bytes] | FloebergError | None]


class S3Storage:
    """Reads S3 objects; implements `Storage`. `rest` makes the storage for what obstore can't do.

    Each bucket has its own connections, which close when the storage is no longer used.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        rest: Callable[[], Storage],
        *,
        deadline_seconds: float = _DEADLINE_SECONDS,
    ) -> None:
        self._options = s3_options(properties)
        self._deadline_seconds = deadline_seconds
        self._rest = cache(rest)
        self._lock = threading.Lock()
        self._stores: dict[str, S3Store | None] = {}

    def read(self, location: str) -> bytes:
        return self._ask(
            location,
            _whole,
            lambda rest: rest.read(location),
        )

    def size(self, location: str) -> int:
        return self._ask(location, _size, lambda rest: rest.size(location))

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        [found] = self.read_many([(location, ranges)])
        if isinstance(found, FloebergError):
            raise found
        return found

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        places = [self._place(location) for location, _ in requests]
        wanted = [
            (place, location, start, length)
            for place, (location, ranges) in zip(places, requests, strict=True)
            if place is not None
            for start, length in coalesce(ranges)
        ]
        fetched = iter(self._fetch(wanted))
        found: Found = [
            None if place is None else answer(ranges, fetched)
            for place, (_, ranges) in zip(places, requests, strict=True)
        ]
        left = [i for i, one in enumerate(found) if one is None or isinstance(one, _Elsewhere)]
        if left:
            others = self._rest().read_many([requests[i] for i in left])
            for i, other in zip(left, others, strict=True):
                found[i] = other
        return [one for one in found if one is not None]

    def open(self, location: str) -> pa.NativeFile:
        size = self.size(location)

        def fetch(start: int, length: int) -> bytes:
            return self.read_ranges(location, [(start, length)])[0]

        return pa.PythonFile(RemoteFile(fetch, size), mode="r")

    def list(self, location: str) -> Sequence[str]:
        return self._rest().list(location)

    def is_directory(self, location: str) -> bool:
        return self._rest().is_directory(location)

    def is_local(self, location: str) -> bool:
        return False

    # --- which store, and who asks it -------------------------------------------------------------

    def _place(self, location: str) -> Place | None:
        """Return the store and the key of an object, or None where s3fs has to read it."""
        bucket, _, key = split_location(location)[1].partition("/")
        if not _BUCKET.fullmatch(bucket) or not _can_spell(key):
            return None
        with self._lock:
            if bucket not in self._stores:
                self._stores[bucket] = self._open(bucket)
            store = self._stores[bucket]
        return None if store is None else (store, key)

    def _open(self, bucket: str) -> S3Store | None:
        identity = identity_options(self._options)
        if identity is None:
            return None
        config = self._options["config_kwargs"]
        stall = min(config["read_timeout"], self._deadline_seconds)
        client: ClientConfig = {
            "allow_http": True,
            "connect_timeout": timedelta(seconds=min(config["connect_timeout"], stall)),
            "read_timeout": timedelta(seconds=stall),
            "timeout": timedelta(seconds=_WHOLE_SECONDS),
        }
        if proxies := config.get("proxies"):
            client["proxy_url"] = proxies["https"]
        if bundle := os.environ.get("AWS_CA_BUNDLE"):
            client["root_certificate"] = Path(bundle).read_bytes()
        try:
            return S3Store(
                bucket,
                **identity,
                virtual_hosted_style_request=False,
                client_options=client,
                # pauses of 0.1 s and more, each drawn from a span that grows; a body that breaks
                # off is asked for from there
                retry_config={
                    "max_retries": _ATTEMPTS - 1,
                    "retry_timeout": timedelta(seconds=self._deadline_seconds),
                },
            )
        except BaseError as exc:
            raise BadConfig(
                "S3 can't be reached as it is configured: check s3.proxy-uri, and the certificates"
                " that AWS_CA_BUNDLE names"
            ) from exc

    def _leave_to_rest(self, location: str) -> None:
        bucket = split_location(location)[1].partition("/")[0]
        with self._lock:
            self._stores[bucket] = None

    # --- asking -----------------------------------------------------------------------------------

    def _ask(
        self,
        location: str,
        request: Callable[[S3Store, str], T],
        otherwise: Callable[[Storage], T],
    ) -> T:
        place = self._place(location)
        if place is None:
            return otherwise(self._rest())
        try:
            return request(*place)
        except _STORE_ERRORS as exc:
            error = _named(location, exc)
            if not isinstance(error, _Elsewhere):
                raise error from exc
        self._leave_to_rest(location)
        return otherwise(self._rest())

    def _fetch(self, wanted: Sequence[tuple[Place, str, int, int]]) -> Parts:
        """Return the bytes of each (place, location, start, length), or its error, all side by
        side."""
        if not wanted:
            return []
        seconds = self._deadline_seconds
        seconds += sum(length for *_, length in wanted) / _SLOWEST_BYTES_PER_SECOND
        room = asyncio.Semaphore(_AT_ONCE)

        async def fetch(
            place: Place, location: str, start: int, length: int
        ) -> bytes | FloebergError:
            came = 0
            try:
                for _ in range(_ATTEMPTS):
                    async with room:
                        part = await obstore.get_range_async(*place, start=start, length=length)
                        came = len(part)
                        # less is right at the object's end, and nowhere else
                        if came == length or (came < length and await _ends(place, start + came)):
                            return part.to_bytes()
                    if came > length:
                        break  # a proxy that ignores the header sends all of the object, always
            except _STORE_ERRORS as exc:
                if _said(exc) in _BEYOND_THE_END:
                    return b""
                return _named(location, exc)
            return not_served(location, f"{came} bytes came for a range of {length}")

        async def fetch_in_time(one: tuple[Place, str, int, int]) -> bytes | FloebergError:
            try:
                return await asyncio.wait_for(fetch(*one), seconds)
            except TimeoutError:
                return not_served(one[1], f"it did not come within {seconds:.0f} s")

        async def fetch_all() -> Parts:
            return await asyncio.gather(*map(fetch_in_time, wanted))

        found = asyncio.run_coroutine_threadsafe(fetch_all(), _loop()).result()
        for (_, location, _, _), part in zip(wanted, found, strict=True):
            if isinstance(part, _Elsewhere):
                self._leave_to_rest(location)
        return found


class _Elsewhere(FloebergError):
    """The bucket is in another region: s3fs finds out which. Never leaves this module."""


def _whole(store: S3Store, key: str) -> bytes:
    # chunks joined take half the memory of asking for all and copying it
    return b"".join(obstore.get(store, key).stream(min_chunk_size=_CHUNK_BYTES))


def _size(store: S3Store, key: str) -> int:
    try:
        return obstore.head(store, key)["size"]
    except BaseError as exc:
        if _said(exc) != "400":
            raise
        # It has no body that says what is bad, expired credentials for one: this has.
        obstore.get_range(store, key, start=0, length=1)
        raise


async def _ends(place: Place, offset: int) -> bool:
    found = await obstore.head_async(*place)
    return found["size"] == offset


def _can_spell(key: str) -> bool:
    """Say whether obstore asks for exactly `key`: it takes paths, and nothing unprintable."""
    # s3fs has a meaning of its own for the mark of a version, and refuses it
    return (
        key.isprintable()
        and "?versionId=" not in key
        and not any(part in ("", ".", "..") for part in key.split("/"))
    )


def _named(location: str, exc: Exception) -> FloebergError:
    """Return the error for what obstore raises; its own text shows its inside, so parts of it."""
    said = _said(exc)
    if any(words in str(exc) for words in _ELSEWHERE):
        return _Elsewhere(location)
    if isinstance(exc, FileNotFoundError):
        return MissingFile(location)
    if isinstance(exc, (PermissionDeniedError, UnauthenticatedError)) or said in _REFUSALS:
        return refused(location, said)
    summary = str(exc).partition("\n")[0]
    return not_served(location, said or summary.rpartition(" - ")[2])


def _said(exc: Exception) -> str:
    """Return the store's own code, or else the HTTP status, or else nothing."""
    text = str(exc)
    found = _CODE.search(text) or _STATUS.search(text)
    return found[1] if found else ""


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop, in a thread of its own, in which ranges of all stores are asked for."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="floeberg-s3", daemon=True).start()
    return loop
