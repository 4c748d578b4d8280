"""A page of documentation, in which the benchmark writes between marks and people around them.

<!-- trips: begin -->
… what the part `trips` says …
<!-- trips: end -->
"""

from __future__ import annotations

from collections.abc import Mapping


def filled(page: str, texts: Mapping[str, str]) -> str:
    """Return the page with each text between the marks of its name; what has no marks on the page,
    and what stands between marks of other names, is left out and left alone.

    Raises `ValueError` where a beginning has no end after it.

    >>> filled("<!-- a: begin -->\\nold\\n<!-- a: end -->\\n", {"a": "new", "b": "more"})
    '<!-- a: begin -->\\nnew\\n<!-- a: end -->\\n'
    """
    for name, text in texts.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        if begin not in page:
            continue
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page has {begin.strip()!r} without its end")
        page = f"{before}{begin}{text.strip()}\n{end}{after}"
    return page
