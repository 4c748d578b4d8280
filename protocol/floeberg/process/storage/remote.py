"""Objects in a store that fsspec reaches: S3 (s3fs), GCS (gcsfs), Azure (adlfs).

Only these: fsspec has dozens of protocols more, and a location comes out of a table's metadata,
which must not make this process talk to whatever its writer thought of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import fsspec
import pyarrow as pa
from aiohttp import ClientError as HttpClientError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)

from floeberg.process.storage.locations import split_location
from floeberg.process.storage.ranges import answer, coalesce
from floeberg.process.storage.remote_file import RemoteFile
from floeberg.process.storage.s3 import s3_options
from floeberg.process.storage.store_errors import not_served, refused
from floeberg.protocol.errors import (
    AccessDenied,
    BadConfig,
    FloebergError,
    MissingFile,
    Unsupported,
)

# What a call may take in all, with every attempt: a store that stalls must not hold a stream for
# ever. A megabyte a second is the slowest store that ranges can still be read from.
_DEADLINE_SECONDS = 60.0
_SLOWEST_BYTES_PER_SECOND = 1_000_000
# s3fs wraps its own attempts around botocore's; these are for a body that breaks off
_BODY_ATTEMPTS = 3

# s3fs takes what follows for the version of an object
_VERSION_MARK = "?versionId="
# which S3 sends with the status of a bad request
_REFUSALS = ("ExpiredToken", "InvalidToken", "TokenRefreshRequired")
_SAS_TOKEN = "adls.sas-token."
_BEYOND_THE_END = ("InvalidRange", "416")

_STORE_ERRORS = (OSError, BotoCoreError, ClientError, HttpClientError)
_NO_CREDENTIALS = (
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)


@contextmanager
def _named_errors(location: str) -> Iterator[None]:
    """Turn a store's errors into floeberg's, which name the location and never the credentials."""
    try:
        yield
    except _STORE_ERRORS as exc:
        raise _named(location, exc) from exc


def _named(location: str, exc: Exception) -> FloebergError:
    code, status = _store_error(exc)
    if isinstance(exc, (FileNotFoundError, IsADirectoryError, ParamValidationError)):
        # the last: botocore itself refuses a bucket whose name no bucket can have
        return MissingFile(location)
    if isinstance(exc, _NO_CREDENTIALS):
        return AccessDenied(f"there are no credentials to read {location} with: {exc}")
    if isinstance(exc, PermissionError) or status in (401, 403) or code in _REFUSALS:
        return refused(location, code)
    return not_served(location, _describe(exc))


def _store_error(exc: Exception) -> tuple[str, int]:
    """Return the store's own code and the HTTP status, where the error has them, else "" and 0."""
    cause = exc if isinstance(exc, ClientError) else exc.__cause__
    if not isinstance(cause, ClientError):
        return "", 0
    response: Mapping[str, Any] = cause.response  # as the store sent it
    code = str(response.get("Error", {}).get("Code", ""))
    return code, int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _describe(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


def _options(scheme: str, properties: Mapping[str, str]) -> dict[str, Any]:
    match scheme:
        case "s3":
            return s3_options(properties)
        case "gs":
            return {
                "project": properties.get("gcs.project-id"),
                "token": properties.get("gcs.oauth2.token"),
            }
        case "abfss" | "wasbs":
            account, token = _sas_token(properties)
            return {
                "account_name": properties.get("adls.account-name") or account,
                "account_key": properties.get("adls.account-key"),
                "sas_token": properties.get("adls.sas-token") or token,
            }
        case _:
            raise BadConfig(
                f"locations with the scheme {scheme!r} cannot be read: there are file, s3, gs,"
                " abfss and wasbs"
            )


def _sas_token(properties: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return an account and its token, as catalogs lend them: the account, or its host, is part of
    the property's name.

    >>> _sas_token({"adls.sas-token.lake.dfs.core.windows.net": "sv=1"})
    ('lake', 'sv=1')
    """
    for key, token in sorted(properties.items()):
        account = key.removeprefix(_SAS_TOKEN)
        if account != key:
            return account.partition(".")[0], token
    return None, None


class RemoteStorage:
    """Reads objects of one scheme through fsspec; implements `Storage`.

    Each has its own connections, which close when it is no longer used. Opening them takes a few
    hundred milliseconds, so one storage is kept for the requests of one set of credentials (see
    `StorageCache`).
    """

    def __init__(
        self,
        scheme: str,
        properties: Mapping[str, str],
        *,
        deadline_seconds: float = _DEADLINE_SECONDS,
    ) -> None:
        self._scheme = scheme
        self._deadline_seconds = deadline_seconds
        options = _options(scheme, properties)
        try:
            # not from fsspec's own cache, which never forgets: vended credentials change often
            self._fs: Any = fsspec.filesystem(scheme, skip_instance_cache=True, **options)
        except ImportError as exc:
            raise BadConfig(
                f"locations with the scheme {scheme!r} cannot be read here: {exc}"
            ) from exc
        if scheme == "s3":
            self._fs.retries = _BODY_ATTEMPTS

    def read(self, location: str) -> bytes:
        with _named_errors(location):
            return bytes(self._call(self._fs.cat_file, self._key(location)))

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        [found] = self.read_many([(location, ranges)])
        if isinstance(found, FloebergError):
            raise found
        return found

    def read_many(
        self, requests: Sequence[tuple[str, Sequence[tuple[int, int]]]]
    ) -> list[list[bytes] | FloebergError]:
        wanted = [
            (location, start, length)
            for location, ranges in requests
            for start, length in coalesce(ranges)
        ]
        found = iter(self._fetch(wanted))
        return [answer(ranges, found) for _, ranges in requests]

    def _fetch(self, wanted: Sequence[tuple[str, int, int]]) -> list[bytes | FloebergError]:
        """Return the bytes of each (location, start, length), or its error, all side by side."""
        keys = [self._key_or_error(location) for location, _, _ in wanted]
        known = [i for i, key in enumerate(keys) if isinstance(key, str)]
        parts: list[object] = list(keys)
        found: Sequence[object]
        try:
            found = self._call(
                self._fs.cat_ranges,
                [keys[i] for i in known],
                [wanted[i][1] for i in known],
                [wanted[i][1] + wanted[i][2] for i in known],
                # the first error would leave the other requests running
                on_error="return",
                length_bytes=sum(wanted[i][2] for i in known),
            )
        except _STORE_ERRORS as exc:
            found = [exc] * len(known)
        for i, part in zip(known, found, strict=True):
            parts[i] = part
        return [
            _range_bytes(location, part, length)
            for (location, _, length), part in zip(wanted, parts, strict=True)
        ]

    def _key_or_error(self, location: str) -> str | FloebergError:
        try:
            return self._key(location)
        except FloebergError as error:
            return error

    def size(self, location: str) -> int:
        key = self._key(location)
        with _named_errors(location):
            try:
                info = self._call(self._fs.info, key)
            except _STORE_ERRORS as exc:
                if _store_error(exc)[1] == 400:
                    # It has no body that says what is bad, expired credentials for one: this has.
                    self._call(self._fs.cat_file, key, start=0, end=1)
                raise
            if info["type"] != "file":
                raise IsADirectoryError(location)
            return int(info["size"])

    def open(self, location: str) -> pa.NativeFile:
        size = self.size(location)

        def fetch(start: int, length: int) -> bytes:
            return self.read_ranges(location, [(start, length)])[0]

        return pa.PythonFile(RemoteFile(fetch, size), mode="r")

    def list(self, location: str) -> Sequence[str]:
        directory = self._key(location).rstrip("/")
        try:
            with _named_errors(location):
                entries = self._call(self._fs.ls, directory, detail=False)
        except MissingFile:
            return []
        # A file lists itself, and so does the marker that some tools leave for a directory.
        prefix = self._fs._strip_protocol(directory) + "/"
        names = (e.removeprefix(prefix).rstrip("/") for e in entries if e.startswith(prefix))
        return sorted(name for name in names if name)

    def is_directory(self, location: str) -> bool:
        # not `isdir`, which lists all of it
        try:
            with _named_errors(location):
                info = self._call(self._fs.info, self._key(location).rstrip("/"))
        except MissingFile:
            return False
        return bool(info["type"] == "directory")

    def is_local(self, location: str) -> bool:
        return False

    def _key(self, location: str) -> str:
        rest = split_location(location)[1]
        if self._scheme == "s3" and _VERSION_MARK in rest:
            raise Unsupported(f"{location}: a key with {_VERSION_MARK!r} in it cannot be read")
        # Azure's account is in the host, which its file system takes out of the whole location
        return rest if self._scheme in ("s3", "gs") else f"{self._scheme}://{rest}"

    def _call(
        self, method: Callable[..., Any], *args: object, length_bytes: int = 0, **kwargs: object
    ) -> Any:
        """Call the file system, for no longer than the deadline allows."""
        seconds = self._deadline_seconds + length_bytes / _SLOWEST_BYTES_PER_SECOND
        # fsspec takes `timeout` for itself when it turns one of its coroutines into a call
        return method(*args, timeout=seconds, **kwargs)


def _range_bytes(location: str, part: object, length: int) -> bytes | FloebergError:
    if isinstance(part, FloebergError):
        return part
    if isinstance(part, _STORE_ERRORS):
        return b"" if _store_error(part)[0] in _BEYOND_THE_END else _named(location, part)
    if isinstance(part, Exception):
        raise part
    assert isinstance(part, (bytes, bytearray, memoryview))
    if len(part) > length:
        # a proxy that ignores the header sends all of the object: not the bytes asked for
        return not_served(location, f"{len(part)} bytes came for a range of {length}")
    return bytes(part)
