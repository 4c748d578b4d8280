"""How a process starts and stops: its ready file, the signals that end it, and its parent's
death.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from floeberg.protocol.errors import BadConfig

logger = logging.getLogger(__name__)


class Stop:
    """Whether this process has been told to end. Set by a signal, by the parent's death, or by
    hand.

    `wait` is where a service's main thread spends its life. A second signal means "at once":
    `at_once` is then set too, and draining ends.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.at_once = threading.Event()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self, reason: str, *, at_once: bool = False) -> None:
        """Tell the process to end. Safe to call from any thread, and more than once."""
        if at_once or self._asked.is_set():
            self.at_once.set()
        if not self._asked.is_set():
            logger.info("stopping", extra={"reason": reason})
        self._asked.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Return True as soon as the process is to end, False when `seconds` have passed before."""
        return self._asked.wait(seconds)

    def on_signals(self) -> None:
        """Take SIGTERM and SIGINT from now on. Call it from the main thread.

        Needed before a Flight server starts: pyarrow leaves SIGTERM to kill the process, streams
        and all.
        """

        def handle(number: int, _: FrameType | None) -> None:
            self.ask(signal.Signals(number).name)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)

    def on_end_of(self, descriptor: int) -> None:
        """End when the pipe `descriptor` has no writer left: when the parent that holds it is gone.

        Works for a parent that was killed, since the kernel closes its pipes. Nothing is drained
        then: nobody is left to wait for it.
        """

        def watch() -> None:
            while os.read(descriptor, 4096):
                pass
            self.ask("the parent process is gone", at_once=True)

        threading.Thread(target=watch, name="floeberg-parent-watch", daemon=True).start()


def wait_until(
    condition: Callable[[], bool], *, seconds: float, hurry: threading.Event, every: float = 0.05
) -> bool:
    """Return whether `condition` came true within `seconds`, and before `hurry` was set."""
    waited = 0.0
    while not condition():
        if waited >= seconds or hurry.wait(every):
            return condition()
        waited += every
    return True


def end_process(*, clean: bool) -> None:
    """Return when everything has ended by itself; leave the process with status 0 when not.

    A thread that still sends to a client which doesn't read would keep the process alive.
    """
    logging.shutdown()
    if not clean:
        os._exit(0)


def write_ready_file(path: Path | None, addresses: Mapping[str, object]) -> None:
    """Write `addresses` as JSON for whoever waits for this process; nothing without a path.

    The file appears whole: a reader that sees it can parse it. Raises `BadConfig` where it can't
    be written.
    """
    if path is None:
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(addresses) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as exc:
        raise BadConfig(f"'ready_file': {path} cannot be written: {exc.strerror}") from exc
