"""A catalog that lends credentials, as tests need it."""

from __future__ import annotations

from botocore.exceptions import ClientError

from tests.support.services import LENT_BUCKET, Credentials, Seaweed


def lent_bucket(seaweed: Seaweed) -> str:
    """Return the bucket of which each of `LENT` reads a part, made if need be."""
    try:
        seaweed.make_bucket(LENT_BUCKET)
    except ClientError as error:
        if "BucketAlready" not in str(error):
            raise
    return LENT_BUCKET


def s3_identity(credentials: Credentials, expires_at_ms: int | None = None) -> dict[str, str]:
    """Return credentials as a catalog lends them."""
    ends = {} if expires_at_ms is None else {"s3.session-token-expires-at-ms": str(expires_at_ms)}
    return {
        "s3.access-key-id": credentials.access_key,
        "s3.secret-access-key": credentials.secret_key,
        **ends,
    }
