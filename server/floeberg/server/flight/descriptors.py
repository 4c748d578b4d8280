"""What a Flight descriptor asks for: a scan command, from a path or from JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence

from floeberg.protocol.commands import ScanCommand, TableName
from floeberg.protocol.errors import BadCommand, Unsupported

# A Flight SQL command is a protobuf Any: field 1, its type's URL.
_FLIGHT_SQL = re.compile(rb"\A\x0a.{1,2}type\.googleapis\.com/arrow\.flight\.protocol\.sql\.(\w+)")


def command_from_path(path: Sequence[bytes | str]) -> ScanCommand:
    """Return the scan of a whole table that a PATH descriptor names. Raises `BadCommand`."""
    if not path:
        raise BadCommand("the descriptor's path is empty; it names a table, such as db, orders")
    return ScanCommand(table=TableName.from_path(path))


def command_from_bytes(raw: bytes) -> ScanCommand:
    """Return the scan that a CMD descriptor holds. Raises `BadCommand`, and `Unsupported` for
    Flight SQL.
    """
    sql = _FLIGHT_SQL.match(raw)
    if sql:
        raise Unsupported(
            f"Flight SQL ({sql[1].decode()}) is not served by this version; send a scan command as"
            ' JSON: {"table": "db.orders"}'
        )
    return ScanCommand.parse(raw)
