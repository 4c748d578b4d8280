"""A coordinator and workers of a contender's own, and what they have used so far."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from floeberg.embedded.up import Cluster, UpConfig

_SENT = "floeberg_worker_bytes_total"
# past any proxy that the environment names
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def side_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what a side with a fleet is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("warehouse", help="a directory, or a prefix of a store")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--properties", type=json.loads, default={}, help="what opens the store")
    return parser


class Fleet:
    """Runs over a warehouse from `with` on; but for the number of workers it has its defaults.

    With `keep_blocks` workers keep what they fetch from a store in a directory, which is empty at
    first and gone at the end.
    """

    def __init__(
        self,
        warehouse: Path | str,
        workers: int,
        properties: Mapping[str, str] | None = None,
        *,
        keep_blocks: bool = False,
    ) -> None:
        self._blocks = tempfile.TemporaryDirectory(prefix="floeberg-bench-blocks-")
        catalog = {"kind": "warehouse", "uri": str(warehouse), "properties": properties or {}}
        config = UpConfig(
            catalogs={"bench": catalog},
            port=0,
            workers=workers,
            log_level="error",
            block_cache_dir=self._blocks.name if keep_blocks else None,
        )
        self._cluster = Cluster(config)

    def __enter__(self) -> Fleet:
        self._cluster.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._cluster.__exit__(kind, error, traceback)
        self._blocks.cleanup()

    @property
    def coordinator(self) -> str:
        return self._cluster.coordinator

    def processes(self) -> list[int]:
        """Return the coordinator and the workers: all that the main thread has started."""
        main = Path("/proc/self/task") / str(os.getpid())
        return [int(pid) for pid in (main / "children").read_text().split()]

    def worker_processes(self) -> list[int]:
        return [int(worker["pid"]) for worker in self._workers()]

    def moved_bytes(self) -> int:
        """Return the bytes of batches that workers have sent, to clients and to each other."""
        return sum(_sent(str(worker["http"])) for worker in self._workers())

    def _workers(self) -> list[dict[str, Any]]:
        workers: Any = self._cluster.addresses()["workers"]
        return list(workers)


def _sent(address: str) -> int:
    with _HTTP.open(f"{address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.startswith(_SENT))
