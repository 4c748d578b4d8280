"""What a Flight descriptor asks for: a scan command, from a path or from JSON, or Flight SQL's."""

from __future__ import annotations

from collections.abc import Sequence

from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import BadCommand
from floeberg.protocol.flight_sql import SqlCommand, decode_command


def command_from_path(path: Sequence[bytes | str]) -> ScanCommand:
    """Return the scan of a whole table that a PATH descriptor names. Raises `BadCommand`."""
    if not path:
        raise BadCommand("the descriptor's path is empty; it names a table, such as db, orders")
    return ScanCommand(table=TableName.from_path(path))


def command_from_bytes(raw: bytes) -> ScanCommand | SqlCommand:
    """Return the command that a CMD descriptor holds. Raises `BadCommand`."""
    return decode_command(raw) or ScanCommand.parse(raw)
