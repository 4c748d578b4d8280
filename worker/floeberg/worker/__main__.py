"""`python -m floeberg.worker`: one worker process."""

from __future__ import annotations

import os
import sys

from floeberg.process.config import config_from_command_line
from floeberg.protocol.errors import BadConfig
from floeberg.worker.config import WorkerConfig
from floeberg.worker.process import run_worker


def main() -> int:
    try:
        config = config_from_command_line(
            WorkerConfig,
            sys.argv[1:],
            os.environ,
            program="floeberg worker",
            summary="Serve the tickets of a coordinator: read Iceberg tasks over Arrow Flight.",
        )
        run_worker(config)
    except BadConfig as error:
        sys.stderr.write(f"floeberg worker: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
