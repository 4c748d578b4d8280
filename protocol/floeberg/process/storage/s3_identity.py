"""Who asks S3, and where: s3fs's arguments, or else the environment, as obstore takes them.

The environment means what it means to AWS's own tools, profiles among it, so botocore reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from floeberg.process.storage.s3 import is_endpoint

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from obstore.store import S3Credential

# how soon botocore is asked again for credentials, which it renews when they are due
_ASK_AGAIN = timedelta(minutes=1)

# what obstore hasn't, or has in another way
_FOR_S3FS_ENVIRONMENT = (
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
)
_FOR_S3FS_PROFILE = (
    "ca_bundle",
    "endpoint_url",
    "services",
    "use_dualstack_endpoint",
    "use_fips_endpoint",
)


def identity_options(
    options: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> dict[str, Any] | None:
    """Return obstore's arguments for who asks and where, or None where s3fs has to find out.

    `options` are those of `s3_options`. A region is needed where no endpoint is given: obstore does
    not look for it.
    """
    style = options["config_kwargs"].get("s3", {}).get("addressing_style")
    if style == "virtual" or any(environ.get(name) for name in _FOR_S3FS_ENVIRONMENT):
        return None
    client = options["client_kwargs"]
    endpoint = (
        client.get("endpoint_url")
        or environ.get("AWS_ENDPOINT_URL_S3")
        or environ.get("AWS_ENDPOINT_URL")
    )
    if endpoint and not is_endpoint(endpoint):
        return None  # s3fs says what is wrong
    region = client.get("region_name") or ("us-east-1" if endpoint else None)
    # obstore takes what is not said from its own environment variables, which are not AWS's
    where: dict[str, Any] = {"skip_signature": False}
    if endpoint:
        where["endpoint"] = endpoint
    if options["anon"]:
        return {**where, "region": region, "skip_signature": True} if region else None
    if options["key"] and options["secret"] and region:
        keys = _keys(options["key"], options["secret"], options["token"])
        return {**where, "region": region, "credential_provider": lambda: keys}
    if options["key"] or options["secret"]:
        return None
    return _from_environment(options.get("profile"), where, client.get("region_name"))


def _from_environment(
    profile: str | None, where: dict[str, Any], region: str | None
) -> dict[str, Any] | None:
    # here, since it takes a quarter of a second to load
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    session = Session(profile=profile)
    try:
        region = region or session.get_config_variable("region")
        scoped = session.get_scoped_config()
        credentials = session.get_credentials()
    except BotoCoreError:
        return None  # s3fs says what is wrong
    if credentials is None or region is None or any(name in scoped for name in _FOR_S3FS_PROFILE):
        return None
    return {**where, "region": region, "credential_provider": _renewed(credentials)}


def _renewed(credentials: Credentials) -> Callable[[], S3Credential]:
    def credential() -> S3Credential:
        now = credentials.get_frozen_credentials()
        until = datetime.now(UTC) + _ASK_AGAIN
        return _keys(now.access_key or "", now.secret_key or "", now.token, until)

    return credential


def _keys(
    key: str, secret: str, token: str | None, expires_at: datetime | None = None
) -> S3Credential:
    return {
        "access_key_id": key,
        "secret_access_key": secret,
        "token": token,
        "expires_at": expires_at,
    }
