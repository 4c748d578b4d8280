"""Read an HTML page strictly: every element closed, in order; and its tables as rows by heading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "link", "meta"})


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, name: str) -> Iterator[Element]:
        """Yield the elements of a name within this one, in the order of the page."""
        for child in self.children:
            if isinstance(child, Element):
                if child.name == name:
                    yield child
                yield from child.all(name)

    def the(self, name: str) -> Element:
        (found,) = self.all(name)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> is given twice"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse_page(text: str) -> Element:
    """Return the `html` element of a page; fail where something is left open or closed wrongly."""
    assert text.startswith("<!doctype html>")
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root]
    ids = [e.attributes["id"] for e in _everything(reader.root) if "id" in e.attributes]
    assert len(set(ids)) == len(ids), ids
    return reader.root.the("html")


def _everything(element: Element) -> Iterator[Element]:
    for child in element.children:
        if isinstance(child, Element):
            yield child
            yield from _everything(child)


def tables(page: Element) -> dict[str, list[dict[str, str]]]:
    """Return the tables of a page by caption: of each row the texts by their columns' headings."""
    found = {}
    for table in page.all("table"):
        headings = [th.text for th in table.the("thead").all("th")]
        rows = [
            [c.text for c in row.children if isinstance(c, Element)]
            for row in table.the("tbody").all("tr")
        ]
        found[table.the("caption").text] = [dict(zip(headings, row, strict=True)) for row in rows]
    return found


def facts(page: Element) -> dict[str, str]:
    """Return the tiles of a page: texts by label, without their notes."""
    return {
        dt.text: "".join(c for c in dd.children if isinstance(c, str))
        for dt, dd in zip(page.all("dt"), page.all("dd"), strict=True)
    }
