"""`python -m floeberg.server`: one coordinator process."""

from __future__ import annotations

import os
import sys

from floeberg.process.config import config_from_command_line
from floeberg.protocol.errors import BadConfig
from floeberg.server.config import CoordinatorConfig
from floeberg.server.process import run_coordinator


def main() -> int:
    try:
        config = config_from_command_line(
            CoordinatorConfig,
            sys.argv[1:],
            os.environ,
            program="floeberg coordinator",
            summary="Plan scans of Iceberg tables, and send clients to the workers.",
        )
        run_coordinator(config)
    except BadConfig as error:
        sys.stderr.write(f"floeberg coordinator: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
