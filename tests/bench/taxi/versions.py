"""What was compared, and where."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.taxi.contenders import CONTENDERS, DAFT, DUCKDB, POLARS, PYARROW, PYICEBERG

_PACKAGES = {
    PYICEBERG: "pyiceberg",
    DAFT: "daft",
    POLARS: "polars",
    DUCKDB: "duckdb",
    PYARROW: "pyarrow",
}
_ASK = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


def versions(pythons: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the peers among `names` with their versions."""
    found = []
    for name, package in _PACKAGES.items():
        if name in names:
            python = pythons.get(CONTENDERS[name].environment, sys.executable)
            said = subprocess.run(
                [python, "-c", _ASK, package], capture_output=True, text=True, check=True
            )
            found.append(f"{name} {said.stdout.strip()}")
    return ", ".join(found)


def machine() -> str:
    """Return what the machine is: cores, memory, processor, and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Python {platform.python_version()}"
