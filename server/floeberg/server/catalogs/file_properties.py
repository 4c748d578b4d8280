"""Which of a catalog's properties reach its tables' files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from floeberg.process.storage.credentials import layered
from floeberg.protocol.storage import StorageCredential

_PREFIXES = ("s3.", "client.", "gcs.", "adls.")
# of the catalog, and where to ask it again for credentials: that is the coordinator's to know
_NOT_OF_FILES = re.compile(r".*\.refresh-credentials-(endpoint|enabled)")


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
    return layered(_files_only(configured), _files_only(lent or {}))


def storage_credentials(
    lent: Sequence[tuple[str, Mapping[str, object]]],
) -> tuple[StorageCredential, ...]:
    """Return what a catalog lent by location prefix, as far as it reaches files; of two for one
    prefix the last."""
    found = {prefix: _files_only(config) for prefix, config in lent}
    return tuple(StorageCredential(prefix, own) for prefix, own in found.items() if own)


def _files_only(properties: Mapping[str, object]) -> dict[str, str]:
    return {
        key: str(value)
        for key, value in properties.items()
        if key.startswith(_PREFIXES) and value is not None and not _NOT_OF_FILES.fullmatch(key)
    }
