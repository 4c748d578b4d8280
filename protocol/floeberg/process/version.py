"""Which floeberg this is."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # it searches the file system, and planning asks once a manifest
def floeberg_version() -> str:
    """Return the installed version; `unreleased` where the sources run without an installation."""
    try:
        return version("floeberg")
    except PackageNotFoundError:
        return "unreleased"
