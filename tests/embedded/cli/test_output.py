from __future__ import annotations

import os
from pathlib import Path

import pytest

from floeberg.embedded.cli.output import binary_output, text_output
from floeberg.protocol.errors import BadRequest


def test_a_file_appears_when_it_is_whole(tmp_path: Path):
    path = tmp_path / "rows.csv"

    with text_output(path) as file:
        file.write("a\r\nü\n")
        assert not path.exists()

    assert path.read_bytes() == "a\r\nü\n".encode()
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_what_fails_leaves_the_file_that_was_there(tmp_path: Path):
    path = tmp_path / "rows.bin"
    path.write_bytes(b"before")

    def fail() -> None:
        with binary_output(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["rows.bin"]


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    with binary_output(path) as file:
        file.write(b"rows")

    assert os.read(reader, 100) == b"rows"
    os.close(reader)
    assert path.is_fifo()


def test_what_cannot_be_written_is_told_by_its_name(tmp_path: Path):
    with pytest.raises(BadRequest, match=r"none/rows\.csv cannot be written: No such file"):
        text_output(tmp_path / "none" / "rows.csv").__enter__()
    with (
        pytest.raises(BadRequest, match="/dev/full cannot be written: No space left"),
        binary_output(Path("/dev/full")) as file,
    ):
        file.write(b"x" * 1_000_000)
