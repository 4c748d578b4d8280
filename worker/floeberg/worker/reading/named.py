"""Turn tasks that manifests name into tasks, by reading these manifests."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace

from floeberg.process.storage.abandonable import Leavable
from floeberg.protocol.errors import MissingFile, StaleTicket
from floeberg.protocol.file_tables import without_metrics
from floeberg.protocol.files import ManifestFile
from floeberg.protocol.manifests import Segment, decode_manifest
from floeberg.protocol.named_tasks import NamedTasks
from floeberg.protocol.plans import ReadPlan
from floeberg.protocol.storage import Storage
from floeberg.worker.cache import LoadingCache

MANIFEST_CACHE_BYTES = 64 << 20
_MANIFESTS_AT_ONCE = 4


def resolved(plan: ReadPlan, storage: Storage, manifests: LoadingCache | None = None) -> ReadPlan:
    """Return `plan` with tasks that can be read; one that lists its tasks comes back as it is.

    `manifests` is what a process keeps of manifests between plans: tickets of one plan share some.
    Raises `StaleTicket` for a manifest that is gone or has other entries than it had, and
    `CorruptManifest`.
    """
    if not isinstance(plan.tasks, NamedTasks):
        return plan
    cache = LoadingCache(MANIFEST_CACHE_BYTES) if manifests is None else manifests
    named = [rows.manifest for rows in plan.tasks.named]
    return replace(plan, tasks=plan.tasks.resolve(_segments(plan, named, storage, cache)))


def _segments(
    plan: ReadPlan, manifests: Sequence[ManifestFile], storage: Storage, cache: LoadingCache
) -> list[Segment]:
    def check() -> None:
        if isinstance(storage, Leavable):
            storage.check()

    def segment(manifest: ManifestFile) -> Segment:
        # what a manifest says of its files depends on what its list says of it
        facts = (manifest.spec_id, manifest.sequence_number)
        origin = (manifest.added_snapshot_id, manifest.first_row_id)
        key = (plan.storage.store, plan.metadata.table_uuid, manifest.location, facts, origin)
        return cache.get(key, lambda: _read(manifest, storage), check)

    if len(manifests) < 2:
        return list(map(segment, manifests))
    pool = ThreadPoolExecutor(_MANIFESTS_AT_ONCE, thread_name_prefix="manifests")
    try:
        # each in a context of its own, so that what is logged names the request
        jobs = [pool.submit(copy_context().run, segment, manifest) for manifest in manifests]
        return [job.result() for job in jobs]
    finally:
        pool.shutdown(cancel_futures=True)


def _read(manifest: ManifestFile, storage: Storage) -> Segment:
    try:
        raw = storage.read(manifest.location)
    except MissingFile as exc:
        raise StaleTicket(manifest.location, "does not exist any more") from exc
    return without_metrics(decode_manifest(raw, manifest))
