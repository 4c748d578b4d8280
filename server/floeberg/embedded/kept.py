"""What a process keeps of a table that it has opened, for the scans that come next.

A table is one version whose files never change, so nothing kept of them grows old.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from floeberg.server.planning import ManifestCache
from floeberg.worker.cache import LoadingCache

_MANIFEST_BYTES = 128 << 20
_FOOTER_BYTES = 32 << 20
_DELETE_BYTES = 64 << 20


@dataclass(frozen=True)
class KeptOfTable:
    """Decoded manifests, footers and delete files, each bounded in bytes. Safe to share between
    threads."""

    manifests: ManifestCache = field(default_factory=lambda: ManifestCache(_MANIFEST_BYTES))
    footers: LoadingCache = field(default_factory=lambda: LoadingCache(_FOOTER_BYTES))
    deletes: LoadingCache = field(default_factory=lambda: LoadingCache(_DELETE_BYTES))
