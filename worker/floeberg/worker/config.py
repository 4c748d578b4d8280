"""What a worker can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Literal

from floeberg.process.config import option
from floeberg.process.service import ServiceConfig
from floeberg.protocol.errors import BadConfig
from floeberg.worker.files.footers import FOOTER_CACHE_BYTES


@dataclass(frozen=True, kw_only=True)
class WorkerConfig(ServiceConfig):
    """The configuration of one worker process."""

    coordinator: tuple[str, ...] = option(
        (),
        "The coordinators to register with, as Flight URIs (`grpc+tcp://host:8815`). Repeat the"
        " flag for several.",
    )
    zone: str | None = option(None, "The zone that this worker runs in, for placement.")
    max_streams: int = option(
        32,
        "How many streams to serve at once. One more is refused, never queued: a client that opens"
        " all its endpoints and reads them in turn would wait for itself.",
        minimum=1,
    )
    memory_bytes: int = option(
        3 << 30,
        "How much memory the process is to stay below. A stream that might go over it is refused:"
        " each counts for what it takes, and for 64 MiB more until its first batch.",
        minimum=256 << 20,
    )
    fetch_ahead_bytes: int = option(
        32 << 20,
        "About how many bytes each stream may fetch from an object store before they are decoded;"
        " with 0, storage is asked only when there is need. A window of up to 16 MiB is fetched at"
        " once in any case.",
        minimum=0,
    )
    footer_cache_bytes: int = option(
        FOOTER_CACHE_BYTES,
        "How much memory the footers of Parquet files, and small files whole, may take; at most a"
        " sixteenth of `memory_bytes`. A footer takes some 2 kB for each column of each row group.",
        minimum=0,
    )
    credential_seconds: float = option(
        60.0,
        "How long before they end credentials that a catalog lent are replaced by others, which a"
        " coordinator has.",
        minimum=0,
        maximum=86400,
    )
    block_cache_dir: str | None = option(
        None,
        "A directory of this machine to keep parts of files in that were fetched from object"
        " stores, as they are stored, so that they need not be fetched again. Several workers of"
        " one user may share it.",
    )
    block_cache_bytes: int = option(
        16 << 30, "About how large `block_cache_dir` may become.", minimum=16 << 20
    )
    sql_memory_bytes: int = option(
        1 << 30,
        "How much memory the SQL statements that run at once may take together; at most half of"
        " `memory_bytes`. Each gets a quarter of what the others leave, and at least 64 MiB.",
        minimum=64 << 20,
    )
    sql_spill_bytes: int = option(
        16 << 30,
        "How much of a disk SQL statements may take together for what does not fit into their"
        " memory, each in proportion to that; with 0, none spills.",
        minimum=0,
    )
    sql_spill_dir: Path | None = option(
        None,
        "Where they put it: within this directory, in one of the worker's own; by default, where"
        " the system has temporary files.",
    )
    on: Literal["host", "ray"] = option(
        "host",
        "Where the worker runs: `host`, in this process; `ray`, as actors of a Ray cluster, which"
        " this process keeps. It needs the extra `ray`.",
    )
    ray_address: str = option(
        "auto", "The Ray cluster, with `on = ray`; `auto` is the one that this machine is part of."
    )
    ray_workers: int = option(2, "How many workers to keep on Ray.", minimum=1)
    ray_cpus: float = option(
        1.0, "The CPUs that Ray sets aside for each worker, beside its `memory_bytes`.", minimum=0
    )
    ray_resources: Mapping[str, str] = option(
        {}, "Ray's custom resources that each worker takes, `NAME=AMOUNT` each."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, amount in self.ray_resources.items():
            if not _is_amount(amount):
                raise BadConfig(f"'ray_resources': {name}={amount} is no amount, such as 1 or 0.5")


def _is_amount(text: str) -> bool:
    try:
        return isfinite(float(text)) and float(text) > 0
    except ValueError:
        return False
