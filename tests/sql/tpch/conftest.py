"""The lake of TPC-H, written once for all tests of a run, in whatever process they are."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.sql.tpch.lake import write_lake

SCALE = 0.1


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    directory = shared / "tpch-lake"
    with (shared / "tpch-lake.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.fstat(lock.fileno()).st_size:
            write_lake(directory, SCALE)
            lock.write("written")
            lock.flush()
    return directory
