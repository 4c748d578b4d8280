"""Numbers as people read them."""

from __future__ import annotations


def count(number: int) -> str:
    """
    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,}"


def amount(size_bytes: float) -> str:
    """Return bytes with three digits at most.

    >>> [amount(n) for n in (0, 999, 1000, 2_340_000, 999_999_999, 5e12)]
    ['0 B', '999 B', '1 kB', '2.34 MB', '1 GB', '5 TB']
    """
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if float(f"{size:.3g}") < 1000 or unit == "TB":
            return f"{float(f'{size:.3g}'):,g} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes every size")


def rate(bytes_per_second: float) -> str:
    return f"{amount(bytes_per_second)}/s"


def duration(seconds: float) -> str:
    """Return a time as its two largest units.

    >>> [duration(s) for s in (0.0004, 0.0123, 1.26, 75, 3725, 200_000)]
    ['< 1 ms', '12 ms', '1.3 s', '1 min 15 s', '1 h 2 min', '2 d 7 h']
    """
    if seconds < 0.001:
        return "< 1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, smaller_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {smaller_unit}"
    raise AssertionError("less than a minute was told before")


def ago(milliseconds: int) -> str:
    """Return how long ago something was.

    >>> ago(400), ago(90_000)
    ('just now', '1 min 30 s ago')
    """
    return "just now" if milliseconds < 1000 else f"{duration(milliseconds / 1000)} ago"
