"""Objects in any store that fsspec reaches: S3 (s3fs), GCS (gcsfs), Azure (adlfs), HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import fsspec
import pyarrow as pa
from botocore.exceptions import BotoCoreError, ClientError

from floeberg.process.storage.locations import split_location
from floeberg.protocol.errors import AccessDenied, BadConfig, MissingFile, StorageUnavailable

# The library's defaults give up on a loaded store within seconds, or never.
_CONNECT_TIMEOUT_SECONDS = 10
_READ_TIMEOUT_SECONDS = 30
_ATTEMPTS = 5


@contextmanager
def _named_errors(location: str) -> Iterator[None]:
    """Turn a store's errors into floeberg's, which name the location and never the credentials."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError) as exc:
        raise MissingFile(location) from exc
    except PermissionError as exc:
        raise AccessDenied(
            f"the object store refused to read {location}: check the credentials and their policy"
        ) from exc
    except (OSError, TimeoutError, BotoCoreError, ClientError) as exc:
        raise StorageUnavailable(
            f"the object store did not serve {location}: {type(exc).__name__}: {exc}"
        ) from exc


def s3_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return s3fs's arguments for Iceberg's FileIO properties; what is not given comes from the
    environment.

    >>> s3_options({"s3.endpoint": "http://localhost:9000", "s3.region": "us-east-1"})[
    ...     "client_kwargs"
    ... ]
    {'endpoint_url': 'http://localhost:9000', 'region_name': 'us-east-1'}
    """
    get = properties.get
    client: dict[str, Any] = {}
    if endpoint := get("s3.endpoint"):
        client["endpoint_url"] = endpoint
    if region := get("s3.region", get("client.region")):
        client["region_name"] = region
    config: dict[str, Any] = {
        "connect_timeout": float(get("s3.connect-timeout", _CONNECT_TIMEOUT_SECONDS)),
        "read_timeout": float(get("s3.request-timeout", _READ_TIMEOUT_SECONDS)),
        "retries": {"max_attempts": _ATTEMPTS, "mode": "adaptive"},
    }
    if get("s3.path-style-access", "").lower() == "true":
        config["s3"] = {"addressing_style": "path"}
    return {
        "key": get("s3.access-key-id", get("client.access-key-id")),
        "secret": get("s3.secret-access-key", get("client.secret-access-key")),
        "token": get("s3.session-token", get("client.session-token")),
        "anon": get("s3.anonymous", "").lower() == "true",
        "client_kwargs": client,
        "config_kwargs": config,
        # A lakehouse's objects are immutable and listed rarely: a listing kept would only hide new
        # metadata.
        "use_listings_cache": False,
    }


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
            return {
                "account_name": properties.get("adls.account-name"),
                "account_key": properties.get("adls.account-key"),
                "sas_token": properties.get("adls.sas-token"),
            }
        case _:
            return {}


class RemoteStorage:
    """Reads objects of one scheme through fsspec; implements `Storage`."""

    def __init__(self, scheme: str, properties: Mapping[str, str]) -> None:
        try:
            # Instances are cached by fsspec under their arguments: one connection pool a set of
            # credentials.
            self._fs = fsspec.filesystem(scheme, **_options(scheme, properties))
        except (ImportError, ValueError) as exc:
            raise BadConfig(
                f"locations with the scheme {scheme!r} cannot be read here: {exc}"
            ) from exc

    def read(self, location: str) -> bytes:
        with _named_errors(location):
            return bytes(self._fs.cat_file(_key(location)))

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        key = _key(location)
        with _named_errors(location):
            parts = self._fs.cat_ranges(
                [key] * len(ranges),
                [start for start, _ in ranges],
                [start + length for start, length in ranges],
                on_error="raise",
            )
            return [bytes(part) for part in parts]

    def size(self, location: str) -> int:
        with _named_errors(location):
            return int(self._fs.size(_key(location)))

    def open(self, location: str) -> pa.NativeFile:
        # Read-ahead caches multiply the bytes fetched: readers here know their ranges.
        with _named_errors(location):
            return pa.PythonFile(self._fs.open(_key(location), "rb", cache_type="none"), mode="r")

    def list(self, location: str) -> Sequence[str]:
        try:
            with _named_errors(location):
                entries = self._fs.ls(_key(location), detail=False)
        except MissingFile:
            return []
        return sorted(name for e in entries if (name := e.rstrip("/").rpartition("/")[2]))

    def is_directory(self, location: str) -> bool:
        with _named_errors(location):
            return bool(self._fs.isdir(_key(location)))


def _key(location: str) -> str:
    return split_location(location)[1]
