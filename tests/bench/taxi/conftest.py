"""What needs a peer's environment is no module for the doctests of this one."""

from __future__ import annotations

collect_ignore = ["sides/daft_side.py"]
