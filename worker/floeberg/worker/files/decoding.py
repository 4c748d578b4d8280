"""Errors of the decoding libraries, turned into floeberg's where they enter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from floeberg.protocol.errors import CorruptDataFile, CorruptTable, FloebergError, Unsupported


@contextmanager
def decoding(location: str, corrupt: type[CorruptTable] = CorruptDataFile) -> Iterator[None]:
    """Raise `corrupt`, naming `location`, for whatever a decoder says of a file's bytes.

    A feature that the decoder lacks is `Unsupported`; what storage raised passes through.
    """
    try:
        yield
    except FloebergError:
        raise
    except pa.ArrowNotImplementedError as exc:
        raise Unsupported(f"{location} needs a feature that is not read: {exc}") from exc
    except (pa.ArrowException, OSError, ValueError, EOFError, KeyError, OverflowError) as exc:
        raise corrupt(f"{location} cannot be decoded: {exc}") from exc
