"""Small manifests that stand side by side, as one segment.

Pruning and whatever else is done by columns costs about a millisecond a segment, so thousands of
manifests of a few entries each would make a plan take seconds. Where one run ends and the next
begins depends on the manifests alone, not on how many there are before: a new snapshot, whose list
begins with a manifest or two that are new, has the same runs but for the first.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import Segment

# Segments of more than that gain nothing, and of fewer manifests a plan loses nothing.
_SMALL_BYTES = 64 * 1024
_MANY = 64
# on average, and at most
_MANIFESTS_A_RUN, _LONGEST_RUN = 128, 512


class Part(NamedTuple):
    """The live entries of manifests of one spec and content, in order, as one segment."""

    manifests: Sequence[ManifestFile]
    segment: Segment


def runs(manifests: Sequence[ManifestFile]) -> list[Sequence[ManifestFile]]:
    """Return the manifests in order, divided into those that are used together; most are alone
    where few are small.
    """
    if sum(manifest.length < _SMALL_BYTES for manifest in manifests) < _MANY:
        return [[manifest] for manifest in manifests]
    found: list[Sequence[ManifestFile]] = []
    run: list[ManifestFile] = []
    for manifest in manifests:
        if run and not (len(run) < _LONGEST_RUN and _are_alike(run[-1], manifest)):
            found.append(run)
            run = []
        run.append(manifest)
        if zlib.crc32(manifest.location.encode()) % _MANIFESTS_A_RUN == 0:
            found.append(run)
            run = []
    return [*found, run] if run else found


def _are_alike(one: ManifestFile, other: ManifestFile) -> bool:
    return (
        max(one.length, other.length) < _SMALL_BYTES
        and one.spec_id == other.spec_id
        and one.content is other.content
    )
