"""Manifest lists and manifests: which files a snapshot is made of."""

from floeberg.protocol.manifests.reading import (
    EntryStatus,
    ManifestEntry,
    describe_manifest,
    read_manifest,
    read_manifest_list,
)

__all__ = [
    "EntryStatus",
    "ManifestEntry",
    "describe_manifest",
    "read_manifest",
    "read_manifest_list",
]
