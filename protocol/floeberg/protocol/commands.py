"""The scan command: a scan of one table as JSON, as clients send it in a CMD descriptor.

    {"table": "db.orders", "filter": "amount > 10", "select": ["id", "amount"], "limit": 100}

`table` is a dotted name, or a list of its parts (for names that hold dots). `filter` is text or
the JSON form. At most one of `snapshot_id`, `ref` and `as_of` says what to read. A key that is not
known is an error and never passed over: a misspelt filter would return the whole table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from floeberg.protocol.bodies import dump_json, parse_body, validate_body
from floeberg.protocol.errors import BadCommand, ConflictingSnapshot
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.json_form import exact_number, expression_to_json
from floeberg.protocol.expressions.model import TRUE, Expression
from floeberg.protocol.scans import ScanRequest
from floeberg.protocol.suggestions import quoted
from floeberg.protocol.types import Json

_INT64_DIGITS = 19
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- table names ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name as parts: namespace and table, after the catalog's name where it was given.

    Whether the first part is a catalog is for whoever knows the catalogs to say.
    """

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.parts or not all(self.parts):
            raise BadCommand(f"{quoted(str(self))} is not a table's name: a part of it is empty")

    @classmethod
    def parse(cls, raw: str | Sequence[str]) -> TableName:
        """Return the name that a dotted text, or a sequence of parts, means.

        Raises `BadCommand` where a part is empty.

        >>> TableName.parse("lake.db.orders").parts
        ('lake', 'db', 'orders')
        >>> TableName.parse(["db", "orders.2024"]).parts
        ('db', 'orders.2024')
        """
        return cls(tuple(raw.split(".")) if isinstance(raw, str) else tuple(raw))

    @classmethod
    def from_path(cls, path: Sequence[bytes | str]) -> TableName:
        """Return the name in a PATH descriptor: its parts, or one element with the dotted name."""
        try:
            parts = [p.decode() if isinstance(p, bytes) else p for p in path]
        except UnicodeDecodeError as exc:
            raise BadCommand("the descriptor's path is not UTF-8") from exc
        return cls.parse(parts[0] if len(parts) == 1 else parts)

    def to_json(self) -> str | list[str]:
        """Return the dotted form, or the parts where one of them holds a dot."""
        return list(self.parts) if any("." in p for p in self.parts) else str(self)

    def written(self) -> str:
        """Return the name as a person writes it: dotted, or as a JSON list where a part of it holds
        a dot, or a slash, which would look like a path.

        >>> TableName(("db", "orders.2024")).written()
        '["db", "orders.2024"]'
        """
        if any(mark in part for part in self.parts for mark in "./"):
            return json.dumps(self.parts, ensure_ascii=False)
        return str(self)

    def __str__(self) -> str:
        return ".".join(self.parts)


# --- what stands behind a key --------------------------------------------------------------------


def _whole_number(raw: object) -> int:
    """Take an integer, or its digits as text: JavaScript and others lose precision above 2^53."""
    if isinstance(raw, str):
        digits = raw.removeprefix("-")
        # isdigit() alone would take other scripts' digits
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError(f"{raw[:40]!r} is not a whole number")
        if len(digits) > _INT64_DIGITS:
            raise ValueError("does not fit into 64 bits")
        return int(raw)
    # numpy's integers are Integral, and no int
    if isinstance(raw, bool) or not isinstance(raw, Integral):
        raise ValueError(f"{repr(raw)[:40]} is not a whole number")
    return int(raw)


def instant(raw: object) -> int:
    """Return the milliseconds since the epoch that `raw` means: themselves, a datetime, or text in
    ISO 8601 with its offset from UTC. Raises `ValueError` for anything else.
    """
    if isinstance(raw, datetime):
        return milliseconds(raw)
    if not isinstance(raw, str) or raw.removeprefix("-").isdigit():
        return _whole_number(raw)
    try:
        when = datetime.fromisoformat(raw)
    except ValueError:
        raise ValueError(
            f"{raw[:40]!r} is neither milliseconds since the epoch nor a time such as"
            " '2024-05-01T12:00:00Z'"
        ) from None
    return milliseconds(when)


def milliseconds(when: datetime) -> int:
    """Return `when` in milliseconds since the epoch, rounded down.

    Raises `ValueError` for a time without an offset, which elsewhere would mean another time.

    >>> milliseconds(datetime.fromisoformat("1970-01-01T01:00:00.0019+01:00"))
    1
    """
    if when.tzinfo is None:
        raise ValueError(f"{when} has no offset from UTC; write one, as in '2024-05-01T12:00:00Z'")
    return (when - _EPOCH) // timedelta(milliseconds=1)


def _table(raw: object) -> object:
    if isinstance(raw, TableName):
        return raw
    try:
        if isinstance(raw, str):
            return TableName.parse(raw)
        if isinstance(raw, list | tuple) and all(isinstance(p, str) for p in raw):
            return TableName.parse(raw)
    except BadCommand as exc:
        raise ValueError(str(exc)) from exc
    raise ValueError("is a name such as 'db.orders', or the list of its parts")


def _filter(raw: object) -> object:
    if isinstance(raw, str | list):
        return raw
    raise ValueError("is text, or a list such as ['=', 'column', 1]")


_Int64 = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63), BeforeValidator(_whole_number)]
_Count = Annotated[int, Field(ge=0, lt=1 << 63), BeforeValidator(_whole_number)]
_Instant = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63), BeforeValidator(instant)]
_Flag = Annotated[bool, Field(strict=True)]
Table = Annotated[TableName, BeforeValidator(_table)]
Filter: TypeAlias = Annotated[str | list[Json], BeforeValidator(_filter)]


# --- the command ---------------------------------------------------------------------------------

_SNAPSHOT_KEYS = ("snapshot_id", "ref", "as_of")


def _refuse_several_snapshots(given: Sequence[str]) -> None:
    if len(given) > 1:
        raise ConflictingSnapshot(given)


class ScanCommand(BaseModel):
    """A scan of one table, as it travels; `to_request` gives all of it but the table.

    `as_of` is in milliseconds since the epoch; JSON may also hold a time in ISO 8601.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    table: Table
    filter: Filter | None = None
    select: tuple[str, ...] | None = None
    snapshot_id: _Int64 | None = None
    ref: Annotated[str, Field(min_length=1)] | None = None
    as_of: _Instant | None = None
    case_sensitive: _Flag = True
    split_size: _Count | None = None
    limit: _Count | None = None
    ordered: _Flag = False

    @classmethod
    def from_arguments(
        cls,
        table: TableName,
        *,
        filter: str | list[Any] | Expression | None = None,
        select: Iterable[str] | None = None,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | str | datetime | None = None,
        limit: int | None = None,
        ordered: bool = False,
        case_sensitive: bool = True,
        split_size: int | None = None,
    ) -> ScanCommand:
        """Return the command that the arguments of a `scan(…)` in Python mean, wherever it reads.

        Raises `BadCommand`, which names the argument that is wrong, `BadFilter` and
        `ConflictingSnapshot`.
        """
        if isinstance(select, str):
            raise BadCommand(f"select is a list of columns, such as [{quoted(select)}]")
        body = {
            "table": table,
            "filter": None if filter is None else expression_to_json(as_expression(filter)),
            "select": None if select is None else list(select),
            "snapshot_id": snapshot_id,
            "ref": ref,
            "as_of": as_of,
            "limit": limit,
            "ordered": ordered,
            "case_sensitive": case_sensitive,
            "split_size": split_size,
        }
        _refuse_several_snapshots([k for k in _SNAPSHOT_KEYS if body[k] is not None])
        return validate_body(cls, body, "scan")

    @classmethod
    def parse(cls, raw: bytes | str) -> ScanCommand:
        """Return the command that JSON holds.

        Raises `BadCommand`, which names the key that is wrong, and `ConflictingSnapshot`.
        """
        command = parse_body(cls, raw, "scan command", parse_float=exact_number)
        _refuse_several_snapshots([k for k in _SNAPSHOT_KEYS if getattr(command, k) is not None])
        return command

    def to_json(self) -> bytes:
        """Return the command as compact JSON, without the keys that have their defaults."""
        body = self.model_dump(mode="json", exclude={"table"}, exclude_defaults=True)
        return dump_json({"table": self.table.to_json(), **body})

    def to_request(self) -> ScanRequest:
        """Return the scan that is asked for. Raises `BadFilter` for a filter that can't be read."""
        return ScanRequest(
            filter=as_expression(self.filter),
            select=self.select,
            snapshot_id=self.snapshot_id,
            ref=self.ref,
            as_of_ms=self.as_of,
            case_sensitive=self.case_sensitive,
            split_size=self.split_size,
            limit=self.limit,
            ordered=self.ordered,
        )

    @classmethod
    def from_request(cls, table: TableName, request: ScanRequest) -> ScanCommand:
        return cls(
            table=table,
            filter=None if request.filter == TRUE else expression_to_json(request.filter),
            select=request.select,
            snapshot_id=request.snapshot_id,
            ref=request.ref,
            as_of=request.as_of_ms,
            case_sensitive=request.case_sensitive,
            split_size=request.split_size,
            limit=request.limit,
            ordered=request.ordered,
        )
