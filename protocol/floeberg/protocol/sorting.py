"""Sort orders: how rows may be sorted within a table's files.

Spec: "Sorting", Appendix C, "Sort Orders".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from floeberg.protocol.errors import CorruptMetadata
from floeberg.protocol.transforms import Transform, parse_transform
from floeberg.protocol.types import Json, parse_id, unknown_keys

_ORDER_KEYS = frozenset({"order-id", "fields"})
_FIELD_KEYS = frozenset({"transform", "source-id", "source-ids", "direction", "null-order"})


class SortDirection(StrEnum):
    ASC = "asc"
    DESC = "desc"


class NullOrder(StrEnum):
    FIRST = "nulls-first"
    LAST = "nulls-last"


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order. More than one source id needs a multi-argument transform (v3)."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: SortDirection
    null_order: NullOrder
    extra: Json = field(default=None, compare=False, repr=False)

    @property
    def source_id(self) -> int:
        return self.source_ids[0]

    def to_json(self) -> Json:
        sources: dict[str, Json] = (
            {"source-id": self.source_ids[0]}
            if len(self.source_ids) == 1
            else {"source-ids": list(self.source_ids)}
        )
        return {
            "transform": str(self.transform),
            **sources,
            "direction": str(self.direction),
            "null-order": str(self.null_order),
            **(self.extra or {}),
        }


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The keys by which files are sorted, the first the most significant."""

    order_id: int
    fields: tuple[SortField, ...]
    extra: Json = field(default=None, compare=False, repr=False)

    @classmethod
    def from_json(cls, raw: Json, where: str = "sort order") -> SortOrder:
        """Parse Appendix C's form. Raises `CorruptMetadata` for JSON of another shape."""
        if not isinstance(raw, dict) or not isinstance(raw.get("fields"), list):
            raise CorruptMetadata(f"{where}: a sort order is an object with 'fields'")
        try:
            return cls(
                parse_id(raw["order-id"], where),
                tuple(_parse_field(f, where) for f in raw["fields"]),
                unknown_keys(raw, _ORDER_KEYS),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise CorruptMetadata(f"{where}: the sort order {raw!r} is malformed") from exc

    def to_json(self) -> Json:
        fields = [f.to_json() for f in self.fields]
        return {"order-id": self.order_id, "fields": fields, **(self.extra or {})}

    @property
    def is_unsorted(self) -> bool:
        return not self.fields


def _parse_field(raw: Json, where: str) -> SortField:
    sources = raw.get("source-ids") or [raw["source-id"]]
    return SortField(
        tuple(parse_id(s, where) for s in sources),
        parse_transform(str(raw["transform"])),
        SortDirection(raw["direction"].lower()),
        NullOrder(raw["null-order"].lower()),
        unknown_keys(raw, _FIELD_KEYS),
    )


UNSORTED = SortOrder(0, ())
