"""`floeberg up` as a child process, from its start until it has stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.05
_LOG_LINES = 15


class ServiceFailed(Exception):
    """floeberg did not start, or did not stop; the message holds the end of its log."""


@dataclass(frozen=True)
class Addresses:
    coordinator: str
    http: str
    workers: tuple[str, ...]

    def name_of(self, location: str) -> str:
        """Return a short name for a worker's location."""
        try:
            return f"worker {self.workers.index(location) + 1}"
        except ValueError:
            return location


class Service:
    """A coordinator and workers that serve a warehouse, within a `with` block.

    The child's log goes into `directory`. It stops when this process ends, however that happens:
    its standard input is a pipe that ends with us.
    """

    def __init__(self, warehouse: Path, workers: int, directory: Path, port: int) -> None:
        self._ready_file = directory / "floeberg.ready.json"
        self._log = directory / "floeberg.log"
        self._command = [
            *(sys.executable, "-m", "floeberg.embedded", "up"),
            *("--warehouse", str(warehouse)),
            *("--workers", str(workers)),
            *("--port", str(port)),
            *("--ready-file", str(self._ready_file)),
            "--stop-with-stdin",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Service:
        self._ready_file.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the demo, which then stops the service in order
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def addresses(self) -> Addresses:
        """Wait until the coordinator and all workers are up; return where they are."""
        assert self._process is not None, "use it in a with block"
        deadline = time.monotonic() + START_SECONDS
        while not self._ready_file.exists():
            status = self._process.poll()
            if status is not None:
                raise ServiceFailed(self._with_log(f"floeberg up ended with status {status}"))
            if time.monotonic() > deadline:
                raise ServiceFailed(self._with_log(f"not up after {START_SECONDS:g} s"))
            time.sleep(_POLL_SECONDS)
        ready = json.loads(self._ready_file.read_text())
        workers = tuple(str(worker["location"]) for worker in ready["workers"])
        return Addresses(str(ready["coordinator"]), str(ready["http"]), workers)

    def wait(self) -> None:
        """Return when the service has ended by itself."""
        assert self._process is not None, "use it in a with block"
        self._process.wait()

    def stop(self) -> None:
        """Ask the service to stop, and wait until it has."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:  # closes its pipe and waits
            if process.poll() is not None:
                return
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise ServiceFailed(
                    self._with_log(f"it had not stopped after {STOP_SECONDS:g} s")
                ) from None

    def log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-_LOG_LINES:])

    def _with_log(self, message: str) -> str:
        return f"{message}; its log, {self._log}, ends with:\n{self.log_tail()}"
