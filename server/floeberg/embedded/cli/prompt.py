"""A prompt at which a person types statements, over as many lines as each takes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import typer

from floeberg.embedded.cli.errors import tell
from floeberg.embedded.cli.terminal import console
from floeberg.protocol.errors import FloebergError

_GREETING = (
    "A statement ends with a semicolon. help says more; exit, quit or \\q leaves, Ctrl-C drops what"
    " is typed or runs."
)
_HELP = """\
SHOW ALL TABLES;           the tables that there are
DESCRIBE t;                the columns of a table; DESCRIBE SELECT …; those of its rows
SELECT * FROM t LIMIT 10;  a look at its rows
EXPLAIN SELECT …;          how a query is computed, and what it reads
SELECT … FROM t VERSION AS OF 'branch';  or TIMESTAMP AS OF '2024-05-01T12:00:00Z'
help, \\h or \\? shows this; exit, quit, \\q or Ctrl-D leaves."""
_ASK_HELP = frozenset({"help", "\\h", "\\?"})
_PROMPT, _MORE = "floeberg> ", "     ...> "
_LEAVE = frozenset({"\\q", "quit", "exit"})
_HISTORY_LINES = 1000

# what hides a semicolon, whole or still open; and the semicolon itself
_TOKENS = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | --[^\n]*(?:\n|\Z) | /\*.*?(?:\*/|\Z) | ;""",
    re.DOTALL | re.VERBOSE,
)


def run_prompt(run: Callable[[str], None]) -> None:
    """Ask for statements and `run` each, until there are no more. What goes wrong with one is told,
    and the next is asked for."""
    out = console(stderr=True)
    out.print(_GREETING, style="dim")
    with suppress(EOFError):
        for statement in _typed(_editing()):
            try:
                run(statement)
            except FloebergError as error:
                tell(error)
            except KeyboardInterrupt:
                out.print("cancelled")
    _remember()


def _typed(ask: Callable[[str], str]) -> Iterator[str]:
    """Yield the statements that are typed. Raises `EOFError` at the end."""
    buffer = ""
    while True:
        try:
            line = ask(_MORE if buffer.strip() else _PROMPT)
        except KeyboardInterrupt:
            typer.echo("", err=True)
            buffer = ""
            continue
        word = line.strip().rstrip(";").lower()
        if not buffer.strip() and word in _LEAVE:
            return
        if not buffer.strip() and word in _ASK_HELP:
            typer.echo(_HELP, err=True)
            continue
        *whole, buffer = statements_in(f"{buffer}{line}\n")
        yield from (statement.strip() for statement in whole)


def statements_in(text: str) -> list[str]:
    r"""Return the statements in `text` that a semicolon ends, without it, and last what follows
    them. A semicolon in quotes or in a comment ends nothing; what is empty is left out.

    >>> statements_in("SELECT ';' -- ;\n; ; SELECT 2")
    ["SELECT ';' -- ;\n", ' SELECT 2']
    """
    whole: list[str] = []
    begin = 0
    for found in _TOKENS.finditer(text):
        if found[0] == ";":
            if text[begin : found.start()].strip():
                whole.append(text[begin : found.start()])
            begin = found.end()
    return [*whole, text[begin:]]


# --- the line that is typed ----------------------------------------------------------------------


def _editing() -> Callable[[str], str]:
    """Return what asks for a line: with a history, where Python has readline."""
    try:
        import readline  # which is not everywhere
    except ImportError:
        return input
    with suppress(OSError):
        readline.read_history_file(_history())
    return input


def _remember() -> None:
    """Keep what was typed for the next time, for this user's eyes."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    path = _history()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        readline.set_history_length(_HISTORY_LINES)
        readline.write_history_file(path)


def _history() -> Path:
    kept = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(kept) / "floeberg" / "sql_history"
