"""What the texts that a person types mean: names, lists of columns, pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadRequest
from floeberg.protocol.suggestions import quoted


def pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """Return the `KEY=VALUE` texts of a repeated option."""
    found = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadRequest(f"{option} {text!r} is not of the form KEY=VALUE")
        found[key] = value
    return found


def column_names(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the columns that `--select` names, None without it; one empty text is no column.

    >>> column_names(["id, customer.name", '["a,b"]'])
    ('id', 'customer.name', 'a,b')
    """
    if given is None:
        return None
    names: list[str] = []
    for text in given:
        names += _json_list(text) or [n.strip() for n in text.split(",") if n.strip()]
    return tuple(names)


def _json_list(text: str) -> list[str] | None:
    """Return the names in a JSON list of texts, None where `text` is none: a way to write names
    that hold what otherwise divides names."""
    if not text.startswith("["):
        return None
    try:
        names = json.loads(text)
    except ValueError:
        return None
    return names if names and all(isinstance(name, str) for name in names) else None


def table_name(text: str) -> TableName:
    """Return the table that a text names: dotted, or a JSON list where a name holds a dot or a
    slash. Raises `BadRequest` for what looks like a path.

    >>> table_name('["db", "orders.2024"]').parts
    ('db', 'orders.2024')
    """
    parts = _json_list(text)
    if parts is None and "/" in text:
        raise BadRequest(
            f"{quoted(text)} looks like a path: a table is read without a server with --table PATH,"
            ' and a name that holds a slash is written as a list, such as ["db", "a/b"]'
        )
    return TableName.parse(parts or text)
