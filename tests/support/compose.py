"""A compose file as `docker compose` reads it, as far as this repository's needs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?:(?P<how>:-|:\?)(?P<word>[^}]*))?\})")


def load_compose(file: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the file with its variables replaced. Raises `KeyError` for one that must be given."""
    loaded: dict[str, Any] = _interpolated(yaml.safe_load(file.read_text()), variables)
    return loaded


def _interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _VARIABLE.sub(lambda found: _replacement(found, variables), value)
        case list():
            return [_interpolated(item, variables) for item in value]
        case dict():
            return {key: _interpolated(item, variables) for key, item in value.items()}
        case _:
            return value


def _replacement(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    given = variables.get(found["name"], "")
    if given or found["how"] is None:
        return given
    if found["how"] == ":?":
        raise KeyError(found["name"])
    return found["word"]
