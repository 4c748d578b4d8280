"""Where rows are written to: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, TypeAlias, cast

from floeberg.embedded.cli.terminal import printable
from floeberg.protocol.errors import BadRequest

BinaryFile: TypeAlias = Any
"""A file to write bytes to; the stubs of io and of pyarrow each have another name for it."""


@contextmanager
def text_output(path: Path | None) -> Iterator[TextIO]:
    """Give a text file for `path`, or standard output; on a terminal, control characters are
    escaped. Lines end as they are written."""
    if path is None:
        # of a file it has what writing rows needs
        yield cast(TextIO, _Harmless(sys.stdout)) if sys.stdout.isatty() else sys.stdout
        return
    with binary_output(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        yield text
        text.detach()


@contextmanager
def binary_output(path: Path | None) -> Iterator[BinaryFile]:
    """Give a binary file for `path`, or standard output, unless that is a terminal.

    A file is written beside `path` and takes its name at the end, so that a scan that fails leaves
    no shorter answer that looks whole. Raises `BadRequest` where nothing can be written.
    """
    if path is None:
        if sys.stdout.isatty():
            raise BadRequest("binary data would garble the terminal; add --output FILE, or a pipe")
        yield sys.stdout.buffer
        return
    if path.exists() and not path.is_file():  # a device, a pipe
        with io.BufferedWriter(_File(path, path)) as file:
            yield file
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with io.BufferedWriter(_File(partial, path)) as file:
            yield file
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


class _File(io.FileIO):
    """A file being written; what goes wrong is told of `name_for_people`."""

    def __init__(self, path: Path, name_for_people: Path) -> None:
        self._name_for_people = name_for_people
        try:
            super().__init__(path, "wb")
        except OSError as exc:
            raise self._unwritable(exc) from exc

    # Any is a buffer, which has no name to write here before Python 3.12
    def write(self, raw: Any, /) -> int:
        try:
            return super().write(raw)
        except OSError as exc:
            raise self._unwritable(exc) from exc

    def _unwritable(self, exc: OSError) -> BadRequest:
        return BadRequest(f"{self._name_for_people} cannot be written: {exc.strerror}")


class _Harmless:
    """A terminal that control characters cannot take hold of."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str, /) -> int:
        return self._terminal.write(printable(text, keep="\n"))
