"""Make a failing case small: leave things out as long as it fails in the same way."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.fuzz.cases import Both, Case, Not, Question


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float) -> Case:
    """Return a case that still fails, and that nothing can be left out of, if time allowed.

    A candidate that can't be written or read plainly is one that does not fail: `fails` says so.
    """
    end = time.monotonic() + seconds
    case = _one_question(case, fails)
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for candidate in smaller(case):
            if time.monotonic() > end:
                break
            if fails(candidate):
                case, improved = candidate, True
                break
    return case


def _one_question(case: Case, fails: Callable[[Case], bool]) -> Case:
    for question in case.questions:
        alone = dataclasses.replace(case, questions=(question,))
        if fails(alone):
            return alone
    return case


def smaller(value: Any) -> Iterator[Any]:
    """Yield values with something left out or set to its default, the boldest cuts first."""
    match value:
        case Both(_, parts):
            yield from parts
            yield from (Both(value.op, p) for p in _smaller_sequence(parts) if p)
        case Not(part):
            yield part
            yield from (Not(p) for p in smaller(part))
        case tuple():
            yield from _smaller_sequence(value)
        case list():
            yield from (list(v) for v in _smaller_sequence(tuple(value)))
        case Mapping():
            yield from _smaller_mapping(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from _smaller_dataclass(value)


def _smaller_dataclass(value: Any) -> Iterator[Any]:
    for field in dataclasses.fields(value):
        now = getattr(value, field.name)
        default = _default(field)
        if default is not dataclasses.MISSING and now != default:
            yield dataclasses.replace(value, **{field.name: default})
    for field in dataclasses.fields(value):
        if isinstance(value, Question) and field.name == "snapshot":
            continue
        for candidate in smaller(getattr(value, field.name)):
            yield dataclasses.replace(value, **{field.name: candidate})


def _default(field: Any) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _smaller_sequence(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    size = len(values)
    while size > 1:
        size = (size + 1) // 2
        for at in range(0, len(values), size):
            yield values[:at] + values[at + size :]
    if len(values) == 1:
        yield ()
    for i, value in enumerate(values):
        for candidate in smaller(value):
            yield (*values[:i], candidate, *values[i + 1 :])


def _smaller_mapping(value: Mapping[Any, Any]) -> Iterator[Mapping[Any, Any]]:
    if "id" in value and "type" in value:  # a schema's field
        yield from _smaller_field(value)
        return
    if any(isinstance(key, str) for key in value) and "type" in value:
        yield from _smaller_type(value)
        return
    if "transform" in value:
        return
    for key in value:
        yield {k: v for k, v in value.items() if k != key}
    for key, inner in value.items():
        for candidate in smaller(inner):
            yield {**value, key: candidate}


def _smaller_field(field: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if field.get("required") and "initial-default" not in field:
        yield {**field, "required": False}
    if "initial-default" in field and not field["required"]:
        yield {k: v for k, v in field.items() if k not in ("initial-default", "write-default")}
    for type_ in _smaller_type(field["type"]):
        yield {**field, "type": type_}


def _smaller_type(type_: Any) -> Iterator[Any]:
    if not isinstance(type_, Mapping):
        return
    if type_["type"] == "struct":
        fields = type_["fields"]
        if len(fields) > 1:
            for i in range(len(fields)):
                yield {**type_, "fields": [*fields[:i], *fields[i + 1 :]]}
        for i, field in enumerate(fields):
            for candidate in _smaller_field(field):
                yield {**type_, "fields": [*fields[:i], candidate, *fields[i + 1 :]]}
        return
    for part in ("element", "value"):
        for candidate in _smaller_type(type_.get(part)):
            yield {**type_, part: candidate}
