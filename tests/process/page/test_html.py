from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from floeberg.process.page import Column, Html, element, table
from floeberg.process.page.layout import whole_page
from tests.support.html_page import parse_page

HOSTILE = "<script>alert('x')</script>\"&'</td>"
anything = st.text() | st.just(HOSTILE)


def page_with(content: Html) -> str:
    return whole_page("t", Html(""), content)


@given(text=anything, attribute=anything)
def test_text_and_attributes_come_out_as_they_went_in_and_make_no_element(
    text: str, attribute: str
) -> None:
    page = parse_page(page_with(element("i", text, title=attribute)))

    (shown,) = page.all("i")
    readable = [c for c in text if c.isprintable()]
    assert [c for c in shown.text if c.isprintable() and c != "\ufffd"] == [
        c for c in readable if c != "\ufffd"
    ]
    assert not list(shown.all("script"))
    assert shown.attributes.keys() == {"title"}


def test_control_and_direction_characters_are_made_visible() -> None:
    assert element("i", "a\x00b\u202ec\ud800") == "<i>a\ufffdb\ufffdc\ufffd</i>"


@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=3))
def test_tables_are_well_formed_whatever_is_in_them(rows: list[tuple[str, str]]) -> None:
    made = table(HOSTILE, [Column(HOSTILE), Column("n", is_number=True)], rows, empty="none")
    page = parse_page(page_with(made))

    shown = page.the("table")
    assert len(list(shown.the("tbody").all("tr"))) == len(rows)
    assert all(th.attributes["scope"] in ("col", "row") for th in shown.all("th"))


def test_a_column_without_anything_in_it_is_left_out() -> None:
    columns = [Column("a"), Column("b"), Column("c")]
    page = parse_page(page_with(table("t", columns, [("", "", "x"), ("", "", "")], empty="none")))

    assert [th.text for th in page.the("thead").all("th")] == ["a", "c"]


def test_a_table_without_rows_says_so() -> None:
    assert table("t", [Column("a")], [], empty="None.") == '<p class="empty">None.</p>'
