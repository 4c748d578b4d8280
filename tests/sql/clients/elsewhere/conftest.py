"""The scripts here run in an environment of their own: doctests would import what isn't in this."""

from __future__ import annotations

collect_ignore_glob = ["*.py"]
