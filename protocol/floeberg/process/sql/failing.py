"""What DuckDB raises, as errors of ours: what to change, and nothing of the worker's inside."""

from __future__ import annotations

import logging
import re

from floeberg.protocol.errors import (
    BadSql,
    Cancelled,
    FloebergError,
    InternalError,
    QueryTooLarge,
    SqlFailed,
    UnsupportedSql,
)

logger = logging.getLogger(__name__)

_KIND = re.compile(r"(?P<kind>[A-Za-z][A-Za-z ]*?) Error: (?P<text>.*)", re.DOTALL)
# what follows is a picture of the statement, or advice on settings
_REST = re.compile(r"\n\s*\n|\nLINE \d|\n\s*(?:Did you mean|Candidate|Possible solutions)")
_CANDIDATES = re.compile(r"\n\s*(?:Candidate bindings: |Did you mean )\s*([^\n?]+)")
_LONGEST = 500

# in lower case, as DuckDB writes "Invalid type" and "Mismatch Type"
_BAD = frozenset({"parser", "syntax", "binder", "catalog"})
_FAILED = frozenset(
    {
        *("conversion", "out of range", "divide by zero", "object size", "constraint"),
        *("invalid input", "invalid type", "mismatch type"),
    }
)
_UNSUPPORTED = frozenset({"missing extension", "permission"})


def sql_error(raised: Exception, memory_bytes: int, spill_bytes: int) -> FloebergError:
    """Return the error for what running a statement has raised, its inputs aside."""
    if isinstance(raised, FloebergError):
        return raised
    found = _KIND.match(str(raised))
    kind, text = (found["kind"].lower(), found["text"]) if found else ("", "")
    message = " ".join(_REST.split(text)[0].split())[:_LONGEST]
    if (meant := _CANDIDATES.search(text)) is not None:
        message += f" (there is {meant[1].strip()[:_LONGEST]})"
    if kind in _BAD:
        return BadSql(message)
    if kind in _FAILED:
        return SqlFailed(message)
    if kind == "not implemented":
        return UnsupportedSql(message)
    if kind == "out of memory":
        return QueryTooLarge(memory_bytes, spill_bytes)
    if kind == "interrupt":
        return Cancelled("the query was stopped")
    if kind in _UNSUPPORTED:
        # its own text may name files
        logger.info("a statement was refused by DuckDB", extra={"why": str(raised)})
        return UnsupportedSql("the statement uses what is not available here")
    logger.error("a statement failed", exc_info=raised)
    return InternalError("the SQL engine failed; the worker's log has the details")
