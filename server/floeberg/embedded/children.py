"""Child processes that end with their parent, and are started again when they end before.

A child's standard input is a pipe whose other end the parent holds. When the parent is gone, even
killed, the pipe ends, and a service with `stop_with_stdin` stops.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from floeberg.process.config import ENVIRONMENT_PREFIX

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 10.0
_STEADY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before a child is started again.

    >>> Backoff().after(ran_seconds=1).after(ran_seconds=1).delay_seconds
    1.0
    >>> Backoff(delay_seconds=8.0).after(ran_seconds=3600).delay_seconds
    0.5
    """

    delay_seconds: float = 0.0

    def after(self, ran_seconds: float) -> Backoff:
        """The child ended after `ran_seconds`: twice the last wait, unless it had run steadily."""
        if ran_seconds >= _STEADY_SECONDS or not self.delay_seconds:
            return Backoff(_FIRST_DELAY_SECONDS)
        return Backoff(min(2 * self.delay_seconds, _LONGEST_DELAY_SECONDS))


class Child:
    """One service process: `python -m MODULE` with its configuration in a file in `directory`.

    `directory` is readable by this user alone: configurations hold secrets, which a command line
    or the environment would show to others. `values` may be changed before the next `launch`.
    """

    def __init__(
        self,
        name: str,
        module: str,
        values: Mapping[str, object],
        directory: Path,
        errors: IO[str] | None,
    ) -> None:
        self.name = name
        self.values = dict(values)
        self._module = module
        self._config_file = directory / f"{name}.json"
        self._ready_file = directory / f"{name}.ready"
        self._errors = errors
        self._process: subprocess.Popen[bytes] | None = None
        self._launched_at = 0.0
        self._backoff = Backoff()
        self._due: float | None = None
        self.addresses: dict[str, object] = {}
        """What the child last wrote of its addresses; empty until it answers requests."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def launch(self) -> None:
        self.addresses = {}
        self._due = None
        self._ready_file.unlink(missing_ok=True)
        own = {"stop_with_stdin": True, "ready_file": str(self._ready_file)}
        self._config_file.write_text(json.dumps({**self.values, **own}, default=str))
        self._launched_at = time.monotonic()
        self.close()  # of the process before
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module, "--config", str(self._config_file)],
            stdin=subprocess.PIPE,
            stdout=self._errors,
            stderr=self._errors,
            # the parent's own variables are in the values already
            env={k: v for k, v in os.environ.items() if not k.startswith(ENVIRONMENT_PREFIX)},
            # Ctrl-C on a terminal reaches the parent alone, which stops its children in order
            start_new_session=True,
        )

    def ended(self) -> int | None:
        """Return the exit status of a child that has ended."""
        return self._process.poll() if self._process else None

    def is_ready(self) -> bool:
        """Say whether the child answers requests, and take over its `addresses`."""
        if not self.addresses and self._ready_file.exists():
            self.addresses = json.loads(self._ready_file.read_text())
        return bool(self.addresses)

    def revive(self, now: float) -> float | None:
        """Start an ended child again when its time has come. Returns the wait when it begins."""
        if not self.has_ended():
            return None
        if self._due is None:
            self._backoff = self._backoff.after(now - self._launched_at)
            self._due = now + self._backoff.delay_seconds
            return self._backoff.delay_seconds
        if now >= self._due:
            self.launch()
        return None

    def has_ended(self) -> bool:
        """Say whether no process is there, because it ended or never began."""
        return self._process is None or self._process.poll() is not None

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def close(self) -> None:
        """Kill what still runs, and give back what belongs to the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
