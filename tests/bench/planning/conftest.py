"""What needs the peers' environment is no module for the doctests of this one."""

from __future__ import annotations

collect_ignore = ["sides/java_side.py"]
