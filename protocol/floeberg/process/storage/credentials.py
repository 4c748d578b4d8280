"""Which credentials a file is read with, and when they end.

A REST catalog lends credentials by prefixes of locations (Iceberg's REST specification,
`StorageCredential`): for a file, that of the longest prefix counts. A prefix is text, as Iceberg's
Java library takes it, and ends anywhere: `s3://b/a` is one of `s3://b/ab` too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from floeberg.process.storage.locations import SCHEME_ALIASES
from floeberg.protocol.storage import StorageConfig, StorageCredential

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*")

_S3_EXPIRY = "s3.session-token-expires-at-ms"
_GCS_EXPIRY = "gcs.oauth2.token-expires-at"
_ADLS_EXPIRY = "adls.sas-token-expires-at-ms."
_MOMENT = re.compile(r"[0-9]{1,15}")  # with more digits, it is after the year 30000

# What identifies the caller to each store. It is replaced as a whole: the parts of two would mix,
# and the end of one would be taken for the other's.
_IDENTITIES = (
    re.compile(
        r"(s3|client)\.(access-key-id|secret-access-key|session-token(-expires-at-ms)?"
        r"|profile-name|anonymous)"
    ),
    re.compile(r"gcs\.(oauth2\.token(-expires-at)?|no-auth)"),
    re.compile(r"adls\.(account-key|connection-string|token|sas-token(-expires-at-ms)?)(\..*)?"),
)


def layered(lower: Mapping[str, str], upper: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of both, `upper` winning; an identity in it replaces that in `lower`.

    >>> layered({"s3.session-token": "old", "s3.region": "eu"}, {"s3.access-key-id": "new"})
    {'s3.region': 'eu', 's3.access-key-id': 'new'}
    """
    kept = dict(lower)
    for pattern in _IDENTITIES:
        if any(map(pattern.fullmatch, upper)):
            kept = {key: value for key, value in kept.items() if not pattern.fullmatch(key)}
    return kept | dict(upper)


def identity(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of the properties that say who asks."""
    return {k: v for k, v in properties.items() if any(p.fullmatch(k) for p in _IDENTITIES)}


def expiry_ms(properties: Mapping[str, str]) -> int | None:
    """Return when the first of the credentials in `properties` ends, in ms since the epoch; None
    where nothing says so, or what says it is no moment.

    >>> expiry_ms({"s3.session-token-expires-at-ms": "1800000000000"})
    1800000000000
    """
    moments = [
        int(value)
        for key, value in properties.items()
        if (key in (_S3_EXPIRY, _GCS_EXPIRY) or key.startswith(_ADLS_EXPIRY))
        and _MOMENT.fullmatch(value)
    ]
    return min(moments, default=None)


def earliest_expiry_ms(config: StorageConfig) -> int | None:
    """Return when the first of all the credentials in `config` ends, None where nothing says so."""
    moments = [expiry_ms(config.properties)]
    moments += [expiry_ms(layered(config.properties, c.properties)) for c in config.credentials]
    return min((moment for moment in moments if moment is not None), default=None)


def credential_for(
    location: str, credentials: Sequence[StorageCredential]
) -> StorageCredential | None:
    """Return the credential of the longest prefix of `location`, or None.

    Schemes that mean the same store are one (`s3a`, `s3n` and `s3`); of prefixes that are equal
    but for that, the one counts that is spelt as the location is.
    """
    if not credentials:
        return None
    plain = _spelt(location)

    def rank(credential: StorageCredential) -> tuple[int, bool, str]:
        prefix = credential.prefix
        return len(_spelt(prefix)), location.startswith(prefix), prefix

    fitting = (c for c in credentials if plain.startswith(_spelt(c.prefix)))
    return max(fitting, key=rank, default=None)


def properties_for(location: str, config: StorageConfig) -> Mapping[str, str]:
    """Return the properties that a file is read with."""
    found = credential_for(location, config.credentials)
    return config.properties if found is None else layered(config.properties, found.properties)


def fingerprint(config: StorageConfig) -> str:
    """Return what tells properties and credentials from others, and tells nothing of them."""
    lent = sorted((c.prefix, sorted(c.properties.items())) for c in config.credentials)
    text = json.dumps([sorted(config.properties.items()), lent])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def with_credentials_of(config: StorageConfig, lent: StorageConfig) -> StorageConfig:
    """Return `config` with the properties and credentials of `lent`."""
    return replace(config, properties=lent.properties, credentials=lent.credentials)


def _spelt(text: str) -> str:
    """Return a location or a prefix with its scheme's usual name; a prefix may be a scheme alone.

    >>> _spelt("s3a://b/a"), _spelt("s3n"), _spelt("/a:b")
    ('s3://b/a', 's3', '/a:b')
    """
    scheme, colon, rest = text.partition(":")
    usual = SCHEME_ALIASES.get(scheme.lower())
    if colon and _SCHEME.fullmatch(scheme):
        return f"{usual or scheme.lower()}:{rest}"
    return usual or text
