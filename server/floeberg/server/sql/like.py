r"""Patterns of SQL's LIKE, by which clients filter listings: `%`, `_`, and `\` before either."""

from __future__ import annotations

from collections.abc import Callable, Iterator

ESCAPE = "\\"

_ANY_ONE = None
_ANY_RUN = ...


def like(pattern: str | None) -> Callable[[str], bool]:
    r"""Return the test for a whole name: `%` is any number of characters, `_` is one, and what
    follows a `\` is itself. Case counts. None lets every name through.

    A name is tested in a time that grows with its length times the pattern's, and no faster.

    >>> like("or_er%")("orders"), like("or_er%")("Orders"), like(r"or\_er%")("orders")
    (True, False, False)
    """
    if pattern is None:
        return lambda name: True
    parts = list(_parts(pattern))
    return lambda name: _matches(parts, name)


def literal(pattern: str) -> str | None:
    r"""Return the one name that a pattern without wildcards matches, None for one with any.

    >>> literal(r"my\_table"), literal("my_table")
    ('my_table', None)
    """
    parts = list(_parts(pattern))
    letters = [part for part in parts if isinstance(part, str)]
    return "".join(letters) if len(letters) == len(parts) else None


def _parts(pattern: str) -> Iterator[object]:
    """Yield a letter, or what stands for any one letter, or for a run of them."""
    letters = iter(pattern)
    for letter in letters:
        if letter == "%":
            yield _ANY_RUN
        elif letter == "_":
            yield _ANY_ONE
        else:
            # one at the very end escapes nothing
            yield next(letters, ESCAPE) if letter == ESCAPE else letter


def _matches(parts: list[object], name: str) -> bool:
    # a regular expression would try every split of a name among many `%`
    at = part = 0
    retry_at, retry_part = 0, -1
    while at < len(name):
        if part < len(parts) and parts[part] is _ANY_RUN:
            retry_at, retry_part = at, part + 1
            part += 1
        elif part < len(parts) and parts[part] in (_ANY_ONE, name[at]):
            at, part = at + 1, part + 1
        elif retry_part >= 0:
            # the last run takes one letter more; an earlier one never needs to
            retry_at += 1
            at, part = retry_at, retry_part
        else:
            return False
    return all(rest is _ANY_RUN for rest in parts[part:])
