from __future__ import annotations

from tests.support.configuration_page import PAGE, with_tables


def test_the_page_lists_every_key_as_it_is() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert with_tables(page) == page, "run: python -m tests.support.configuration_page"
    assert page.count("| `drain_seconds` |") == 2
