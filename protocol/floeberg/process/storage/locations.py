"""Where a location leads: rebasing, and telling the scheme from the path.

A location is opaque. It is never decoded, encoded or normalised but for its scheme, since keys hold
`%2F`, `+`, spaces and `#` that mean themselves (`file:/x` and `file:///x` are the same file, `s3a:`
and `s3n:` are `s3:`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(?=/)")
SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "wasbs"}
"""Other names of schemes, and their usual ones."""


def rebase_location(location: str, rebase: Mapping[str, str]) -> str:
    """Return `location` with the longest prefix that `rebase` knows replaced.

    A prefix ends at a path's separator: `/a/b` does not match `/a/bc`.

    >>> rebase_location("s3://old/t/x.parquet", {"s3://old": "/data"})
    '/data/t/x.parquet'
    """
    # some writers put `./t` into the table's location and `t/…` into the paths below it
    bare = location.removeprefix("./")
    best, replacement = "", None
    for written, actual in rebase.items():
        prefix = written.removeprefix("./")
        boundary = prefix.endswith("/") or bare[len(prefix) : len(prefix) + 1] in ("", "/")
        if prefix and bare.startswith(prefix) and boundary and len(prefix) > len(best):
            best, replacement = prefix, actual
    return location if replacement is None else replacement + bare[len(best) :]


def split_location(location: str) -> tuple[str, str]:
    """Return (scheme, rest): `file` and a plain path for local files, else the scheme's usual name
    and all after it.

    >>> split_location("file:/tmp/x"), split_location("s3a://bucket/a b")
    (('file', '/tmp/x'), ('s3', 'bucket/a b'))
    """
    match = _SCHEME.match(location)
    if match is None:
        return "file", location
    scheme = match[1].lower()
    rest = location[match.end() :]
    if scheme == "file":
        # file:/x, file:///x, and file://host/x, whose host is this machine or nothing we can reach
        return "file", re.sub(r"^//[^/]*(?=/)", "", rest) if rest.startswith("//") else rest
    return SCHEME_ALIASES.get(scheme, scheme), rest.removeprefix("//")
