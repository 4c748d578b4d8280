"""Iceberg's S3 properties as s3fs understands them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from floeberg.protocol.errors import BadConfig, Unsupported

# The defaults of the libraries below give up on a loaded store within seconds, or never.
_CONNECT_TIMEOUT_SECONDS = 5.0
# Silence, not the time that a request takes. A connection that a store or a balancer forgot is
# silent for ever, and a second one answers at once: what this saves, a stream gains.
_REQUEST_TIMEOUT_SECONDS = 10.0
# attempts at a request, for throttling, failures of the server, and a connection that breaks; s3fs
# makes attempts of its own around these, and aiobotocore within
_ATTEMPTS = 3
# column chunks of a few files at once; the library's 10 leaves an object store idle
_CONNECTIONS = 64


def s3_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return s3fs's arguments for Iceberg's FileIO properties; what is not given comes from the
    environment, as AWS's own tools take it.

    Raises `BadConfig` for a value that cannot be used, and `Unsupported` for a way to authenticate
    that s3fs does not have: without it, another identity would be used in silence.

    >>> s3_options({"s3.endpoint": "http://localhost:9000", "s3.region": "us-east-1"})[
    ...     "client_kwargs"
    ... ]
    {'endpoint_url': 'http://localhost:9000', 'region_name': 'us-east-1'}
    """
    _refuse_other_identities(properties)
    client: dict[str, Any] = {}
    if endpoint := properties.get("s3.endpoint"):
        if not is_endpoint(endpoint):
            raise BadConfig("s3.endpoint must be a URL, as https://store.example:9000 is one")
        client["endpoint_url"] = endpoint
    if region := _first(properties, "region"):
        client["region_name"] = region
    config: dict[str, Any] = {
        "connect_timeout": _seconds(properties, "s3.connect-timeout", _CONNECT_TIMEOUT_SECONDS),
        "read_timeout": _seconds(properties, "s3.request-timeout", _REQUEST_TIMEOUT_SECONDS),
        "retries": {"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        "max_pool_connections": _CONNECTIONS,
    }
    if style := _addressing_style(properties):
        config["s3"] = {"addressing_style": style}
    if proxy := properties.get("s3.proxy-uri"):
        config["proxies"] = {"http": proxy, "https": proxy}
    options: dict[str, Any] = {
        "key": _first(properties, "access-key-id"),
        "secret": _first(properties, "secret-access-key"),
        "token": _first(properties, "session-token"),
        "anon": _is_true(properties, "s3.anonymous"),
        "client_kwargs": client,
        "config_kwargs": config,
        # A lakehouse's objects are immutable and listed rarely: a listing kept would only hide new
        # metadata.
        "use_listings_cache": False,
        # In one request, and not asking for its size first: what is read whole is small.
        "max_concurrency": 1,
    }
    if profile := _first(properties, "profile-name"):
        options["profile"] = profile
    return options


def is_endpoint(text: str) -> bool:
    """Say whether requests can be made at this address: the libraries below fail in their own way,
    or end the thread, when they make one."""
    try:
        parts = urlsplit(text)
        is_served = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no port, or no address
        return False
    return bool(is_served) and text.isascii() and text.isprintable() and " " not in text


def _refuse_other_identities(properties: Mapping[str, str]) -> None:
    for key in ("s3.role-arn", "client.role-arn"):
        if properties.get(key):
            raise Unsupported(
                f"{key} is not supported: let an AWS profile assume the role, and name that profile"
                " in s3.profile-name"
            )
    signed_elsewhere = properties.get("s3.signer") or _is_true(
        properties, "s3.remote-signing-enabled"
    )
    if signed_elsewhere and not _first(properties, "access-key-id"):
        raise Unsupported(
            "the catalog asks for remote signing of S3 requests, which is not supported: let it"
            " vend credentials, or configure s3.access-key-id and s3.secret-access-key"
        )


def _addressing_style(properties: Mapping[str, str]) -> str | None:
    if _is_true(properties, "s3.path-style-access"):
        return "path"
    return "virtual" if _is_true(properties, "s3.force-virtual-addressing") else None


def _first(properties: Mapping[str, str], name: str) -> str | None:
    """Return S3's own property, or else the one for all of AWS's clients."""
    for key in (f"s3.{name}", f"client.{name}"):
        if value := properties.get(key):
            if not value.isprintable():  # a line's end, as files have them
                raise BadConfig(f"{key} has a character that no request can hold")
            return value
    return None


def _is_true(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").strip().lower() == "true"


def _seconds(properties: Mapping[str, str], key: str, default: float) -> float:
    text = properties.get(key)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise BadConfig(f"{key} must be a number of seconds above 0, not {text!r}")
    return seconds
