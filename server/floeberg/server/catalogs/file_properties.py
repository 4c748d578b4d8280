"""Which of a catalog's properties reach its tables' files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_PREFIXES = ("s3.", "client.", "gcs.", "adls.")
# what identifies the caller to S3: all of one kind, or the parts of two would be mixed
_S3_IDENTITY = (
    "access-key-id",
    "secret-access-key",
    "session-token",
    "profile-name",
    "anonymous",
)


def file_properties(
    configured: Mapping[str, object], lent: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Return the FileIO properties among what was configured for a catalog and what it lent for a
    table, which wins.

    Only these travel to the workers: what opens the catalog itself stays here. A table's own
    properties are never among them, since whoever writes a table could redirect its readers.

    >>> file_properties({"credential": "id:secret", "s3.region": "eu"}, {"s3.region": "us"})
    {'s3.region': 'us'}
    """
    own = _files_only(configured)
    vended = _files_only(lent or {})
    if any(key.removeprefix("s3.") in _S3_IDENTITY for key in vended):
        names = {f"{prefix}{name}" for prefix in ("s3.", "client.") for name in _S3_IDENTITY}
        own = {key: value for key, value in own.items() if key not in names}
    return own | vended


def credentials_for(
    location: str, credentials: Sequence[tuple[str, Mapping[str, object]]]
) -> Mapping[str, object]:
    """Return the properties of the credential with the longest prefix of `location`, or none."""
    fitting = [c for c in credentials if location.startswith(c[0])]
    return max(fitting, key=lambda c: len(c[0]))[1] if fitting else {}


def _files_only(properties: Mapping[str, object]) -> dict[str, str]:
    return {
        key: str(value)
        for key, value in properties.items()
        if key.startswith(_PREFIXES) and value is not None
    }
