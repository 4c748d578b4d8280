"""What docs/reading.md states of types and errors is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from floeberg.protocol.arrow import arrow_field
from floeberg.protocol.errors import FloebergError, error_from_code
from floeberg.protocol.types import NestedField, parse_type

PAGE = (Path(__file__).parents[1] / "docs" / "reading.md").read_text(encoding="utf-8")
TYPES = re.findall(r"^\| `([^`]+)` \| `([^`]+)`(.*) \|$", PAGE, re.MULTILINE)
CODES = sorted(set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+|UNSUPPORTED)`", PAGE)))


def test_the_page_has_its_tables():
    assert len(TYPES) == 20
    assert len(CODES) > 5


@pytest.mark.parametrize(("iceberg", "arrow", "note"), TYPES, ids=[row[0] for row in TYPES])
def test_a_type_is_as_documented(iceberg: str, arrow: str, note: str):
    field = arrow_field(NestedField(1, "a", parse_type(iceberg, "the page")))

    assert str(field.type) == arrow
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    assert re.findall(r"extension name `([^`]+)`", note) == ([name] if name else [])


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_one_of_an_error(code: str):
    assert type(error_from_code(code, "")) is not FloebergError
