"""How much memory this process has, and giving back what it no longer needs.

Most of what a stream holds lies outside of Python: Arrow's arrays, pages under way, what was
fetched, messages that gRPC has yet to send. Only the system counts all of it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from pathlib import Path

import pyarrow as pa

_STATM = Path("/proc/self/statm")
_PAUSE_SECONDS = 1.0


def resident_bytes() -> int:
    """Return how much memory is resident; where the system doesn't tell (it does on Linux), what
    Arrow has allocated, which is less.
    """
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return pa.total_allocated_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def use_returnable_memory() -> None:
    """Have Arrow allocate by jemalloc, where it has that, or by the C library, unless the variable
    `ARROW_DEFAULT_MEMORY_POOL` names what to use.

    Each stream has a thread of its own. What threads that are gone have allocated, mimalloc, which
    Arrow takes by itself and which is as fast as jemalloc, does not give back.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" in os.environ:
        return
    has_jemalloc = "jemalloc" in pa.supported_memory_backends()
    pa.set_memory_pool(pa.jemalloc_memory_pool() if has_jemalloc else pa.system_memory_pool())


class FreedMemory:
    """Memory that nobody needs and that is not the system's again: what allocators keep for later,
    of 30 streams' 350 MB all but a few, and what objects in cycles hold, for which Python looks by
    the number of objects and not by their bytes. Used by one thread at a time.
    """

    def __init__(self) -> None:
        self._next_time = 0.0
        # C libraries other than glibc don't have it
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def give_back(self) -> None:
        """Give it back to the system, at most once a second: it may take a tenth of one."""
        now = time.monotonic()
        if now < self._next_time:
            return
        gc.collect()
        pa.default_memory_pool().release_unused()
        if self._trim is not None:
            self._trim(0)
        self._next_time = now + _PAUSE_SECONDS
