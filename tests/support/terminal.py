"""Run a command as a person does, on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Seen:
    """What came to the screen, escape sequences and all, and to a pipe where there was one."""

    raw: str
    piped: bytes
    status: int

    @property
    def text(self) -> str:
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n")


def on_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    pipe_output: bool = False,
    columns: int = 120,
    typed: str = "",
) -> Seen:
    """Run `command` to its end on a terminal; with `pipe_output`, its standard output is a pipe.
    `typed` is what the terminal has for it to read."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=subprocess.PIPE if pipe_output else theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm", "COLUMNS": str(columns)},
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    # a terminal holds little: it must be read while the command writes
    shown = bytearray()
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    piped, _ = process.communicate()
    return Seen(shown.decode(), piped or b"", process.returncode)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""  # Linux tells so that the last writer has gone
