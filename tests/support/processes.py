"""floeberg's services as real processes, which can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.flight as fl

from floeberg.protocol.sealing import Keyring
from tests.support.waiting import wait_until

EXIT_SECONDS = 30


def environment() -> dict[str, str]:
    """Return the environment for a process of floeberg: nothing of ours that the caller had set."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("FLOEBERG_")}
    # the test run has its paths from its configuration; a process takes them from here
    return environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def run_module(module: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE` to its end."""
    return subprocess.run(
        [sys.executable, "-m", module, *flags],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=EXIT_SECONDS,
    )


class ServiceProcess:
    """A command that runs a service, with its addresses and its log. `close` kills what still runs.

    `environ` is added to the environment.
    """

    def __init__(
        self, command: Sequence[str], directory: Path, name: str, environ: Mapping[str, str]
    ) -> None:
        self._ready_file = directory / f"{name}.ready"
        self.log_file = directory / f"{name}.log"
        own = {
            "FLOEBERG_READY_FILE": str(self._ready_file),
            "FLOEBERG_STOP_WITH_STDIN": "true",
            "FLOEBERG_LOG_FORMAT": "json",
        }
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**environment(), **own, **environ},
            )
        self.addresses: dict[str, Any] = {}

    def is_ready(self) -> bool:
        """Say whether the process answers requests, and take over its `addresses`."""
        if not self.addresses and self._ready_file.exists():
            self.addresses = json.loads(self._ready_file.read_text())
        return bool(self.addresses)

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def await_ready(self) -> None:
        def ready() -> bool:
            assert not self.has_ended(), self.log_text()
            return self.is_ready()

        wait_until(ready, f"{self._ready_file.name}", seconds=60)

    def log_text(self) -> str:
        return self.log_file.read_text()

    def records(self) -> list[dict[str, Any]]:
        """Return what the process has logged so far."""
        return [json.loads(line) for line in self.log_text().splitlines() if line.startswith("{")]

    def status(self) -> dict[str, Any]:
        """Return what a worker says of itself."""
        with fl.connect(self.addresses["location"]) as client:
            (result,) = client.do_action(fl.Action("floeberg.worker-status", b""))
            status: dict[str, Any] = json.loads(result.body.to_pybytes())
            return status

    def peak_bytes(self) -> int:
        """Return the most memory that the process has had resident (Linux)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def exit_status(self) -> int:
        """Return the status that the process ends with, soon."""
        return self.process.wait(EXIT_SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


class Processes:
    """Starts services, and ends them when the test does."""

    def __init__(self, directory: Path) -> None:
        self.keys = Keyring.generate()
        self._directory = directory
        self._started: list[ServiceProcess] = []

    def start(self, module: str, *flags: str) -> ServiceProcess:
        """Start a service, and return it once it answers."""
        name = f"{module.rpartition('.')[2]}-{len(self._started)}"
        key_file = self._directory / "keys"
        if not key_file.exists():
            self.keys.write(key_file)
        command = [sys.executable, "-m", module, "--key-file", str(key_file), *flags]
        process = ServiceProcess(command, self._directory, name, {})
        self._started.append(process)
        process.await_ready()
        return process

    def coordinator(self, warehouse: Path, *flags: str) -> ServiceProcess:
        return self.start("floeberg.server", "--warehouse", str(warehouse), "--port", "0", *flags)

    def worker(self, coordinator: ServiceProcess | None, *flags: str) -> ServiceProcess:
        if coordinator is not None:
            flags = ("--coordinator", coordinator.addresses["coordinator"], *flags)
        return self.start("floeberg.worker", *flags)


@contextmanager
def processes(directory: Path) -> Iterator[Processes]:
    started = Processes(directory)
    try:
        yield started
    finally:
        for process in started._started:
            process.close()
