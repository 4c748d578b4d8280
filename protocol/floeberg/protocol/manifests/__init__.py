"""Manifest lists and manifests: which files a snapshot is made of.

`decode_manifest` gives a manifest as a `Segment` of columns, `read_manifest` plainly as objects.
"""

from floeberg.protocol.manifests.avro import Inflated, in_turn
from floeberg.protocol.manifests.columns import DamagedBuffer, Numbers, Strings
from floeberg.protocol.manifests.concatenating import concat_segments
from floeberg.protocol.manifests.decoding import (
    DecodeManifest,
    decode_deleted,
    decode_manifest,
    decode_plainly,
)
from floeberg.protocol.manifests.reading import (
    EntryStatus,
    ManifestEntry,
    describe_manifest,
    read_deleted_entries,
    read_manifest,
    read_manifest_list,
)
from floeberg.protocol.manifests.segment import PartitionColumn, PartitionKind, Segment

__all__ = [
    "DamagedBuffer",
    "DecodeManifest",
    "EntryStatus",
    "Inflated",
    "ManifestEntry",
    "Numbers",
    "PartitionColumn",
    "PartitionKind",
    "Segment",
    "Strings",
    "concat_segments",
    "decode_deleted",
    "decode_manifest",
    "decode_plainly",
    "describe_manifest",
    "in_turn",
    "read_deleted_entries",
    "read_manifest",
    "read_manifest_list",
]
