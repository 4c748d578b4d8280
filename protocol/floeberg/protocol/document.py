"""A JSON object of table metadata as a frozen value that loses nothing.

Attributes have the spec's names in snake_case, the JSON has them in kebab-case. A key that this
version does not know is kept verbatim and written back: a table that went through a reader keeps
what a later writer put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict

from floeberg.protocol.types import Json


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class _HasJson(Protocol):
    def to_json(self) -> Json: ...


_Attribute: TypeAlias = (
    "str | int | _HasJson | tuple[_Attribute, ...] | dict[str, _Attribute] | None"
)


def _plain(value: _Attribute) -> Json:
    if isinstance(value, str):
        return str(value)  # of an enumeration's member too
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value.to_json()


class Document(BaseModel):
    """Base of the parts of table metadata, built by attribute names or from JSON keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=_kebab,
        validate_by_alias=True,
        validate_by_name=True,
        coerce_numbers_to_str=True,
    )

    def to_json(self) -> dict[str, Json]:
        """Return the JSON form: the fields that were given, then the unknown keys.

        An optional field that was absent stays absent, and one that was given as null or empty
        stays so.
        """
        out = {
            _kebab(name): _plain(getattr(self, name))
            for name in type(self).model_fields
            if name in self.model_fields_set
        }
        return out | (self.model_extra or {})


def _text_map(raw: Json) -> Json:
    """Accept what writers put where the spec asks for text: null, numbers and booleans."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        return raw
    return {
        k: str(v).lower() if isinstance(v, bool) else v for k, v in raw.items() if v is not None
    }


def _list_for_null(raw: Json) -> Json:
    return () if raw is None else raw


def _map_for_null(raw: Json) -> Json:
    return {} if raw is None else raw


TextMap = Annotated[dict[str, str], BeforeValidator(_text_map)]
"""A map of strings; null reads as empty."""

NullIsEmptyList = BeforeValidator(_list_for_null)
NullIsEmptyMap = BeforeValidator(_map_for_null)
