from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from floeberg.worker.sql.spilling import SpillDirectory


def files_below(path: Path) -> list[str]:
    return sorted(found.name for found in path.rglob("*") if found.is_file())


def test_a_query_has_a_directory_of_its_own_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    spill = SpillDirectory(tmp_path)
    with spill.lend() as one, spill.lend() as other:
        (one / "part").write_bytes(b"rows")
        assert one != other
        assert one.stat().st_mode & 0o077 == 0

    assert not one.exists()
    spill.close()
    assert files_below(tmp_path) == []


def test_what_a_killed_process_left_is_removed_by_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    program = (
        "import sys; from pathlib import Path; from floeberg.worker.sql.spilling import"
        " SpillDirectory\n"
        f"with SpillDirectory(Path({str(tmp_path)!r})).lend() as path:\n"
        "    (path / 'left').write_text('rows'); print('ready', flush=True); sys.stdin.read()"
    )
    roots = [str(Path(__file__).parents[3] / root) for root in ("protocol", "server", "worker")]
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        beside = SpillDirectory(tmp_path)
        with beside.lend() as own:
            (own / "mine").write_text("rows")
            assert "left" in files_below(tmp_path), "it lives"

            process.kill()
            process.wait()
            SpillDirectory(tmp_path).close()

            assert "left" not in files_below(tmp_path)
            assert (own / "mine").exists()
            assert "removed what a query had spilt" in caplog.messages
        beside.close()

    assert files_below(tmp_path) == []


def test_a_directory_that_others_look_into_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"floeberg-spill-{os.geteuid()}").mkdir(mode=0o755)

    with pytest.raises(PermissionError, match="mode 0700"):
        SpillDirectory(tmp_path)


def test_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"floeberg-spill-{os.geteuid()}").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(PermissionError):
        SpillDirectory(tmp_path)
