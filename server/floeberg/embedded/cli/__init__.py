"""The `floeberg` command: serve tables, and ask for them."""

from floeberg.embedded.cli.main import main

__all__ = ["main"]
