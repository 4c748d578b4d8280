"""docs/configuration.md's tables, from the configurations themselves.

`python -m tests.support.configuration_page` brings the page up to date.
"""

from __future__ import annotations

from pathlib import Path

from floeberg.embedded.up import UpConfig
from floeberg.process.config import options_of, options_table
from floeberg.server.config import CoordinatorConfig
from floeberg.worker.config import WorkerConfig

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def with_tables(page: str) -> str:
    """Return the page with what its tables must hold."""
    shared = {o.name for o in options_of(CoordinatorConfig)}
    for name, table in {
        "coordinator": options_table(CoordinatorConfig),
        "worker": options_table(WorkerConfig),
        "up": options_table(UpConfig, without=shared),
    }.items():
        before, begin, rest = page.partition(f"<!-- {name}: begin -->\n")
        _, end, after = rest.partition(f"<!-- {name}: end -->")
        page = before + begin + table + end + after
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
