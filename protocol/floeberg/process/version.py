"""Which floeberg this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def floeberg_version() -> str:
    """Return the installed version; `unreleased` where the sources run without an installation."""
    try:
        return version("floeberg")
    except PackageNotFoundError:
        return "unreleased"
