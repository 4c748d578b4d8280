"""`floeberg up`: a coordinator and its workers as processes on this machine, kept running."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TextIO

from floeberg.embedded.children import Child
from floeberg.process.config import option, options_of
from floeberg.process.lifecycle import Stop, wait_until, write_ready_file
from floeberg.process.logs import configure_logging
from floeberg.process.service import ServiceConfig
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.sealing import Keyring
from floeberg.server.config import CoordinatorConfig

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_WATCH_SECONDS = 0.2
_KILL_SECONDS = 10.0  # beyond a child's own draining
_HTTP_SECONDS = 5.0

# by which key the port of an address is configured
_PORTS = {
    "coordinator": "port",
    "location": "port",
    "http": "http_port",
    "health": "health_port",
}

# past any proxy that the environment names
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, kw_only=True)
class UpConfig(CoordinatorConfig):
    """The configuration of `floeberg up`: the coordinator's, and what its workers are given.

    `host`, TLS, keys and logs are the workers' too; their ports are always free ones.
    """

    workers: int = option(2, "How many worker processes to run.", minimum=1)
    max_streams: int = option(32, "How many streams each worker serves at once.", minimum=1)
    memory_bytes: int = option(
        3 << 30, "How much memory each worker is to stay below.", minimum=256 << 20
    )
    block_cache_dir: str | None = option(
        None,
        "A directory in which workers keep parts of files that they have fetched from object"
        " stores; they share it.",
    )


class Cluster:
    """A coordinator and workers that run from `start` until `stop`; a context manager does both.

    What the children log goes to `errors`, or to this process's own standard error. `stop` ends
    the start as well, should it come then.
    """

    def __init__(
        self, config: UpConfig, errors: IO[str] | None = None, stop: Stop | None = None
    ) -> None:
        self._config = config
        self._stop = stop or Stop()
        self.coordinator = ""
        """The coordinator's Flight URI, from `start` on."""
        self._directory = Path(tempfile.mkdtemp(prefix="floeberg-"))  # for this user alone
        self._coordinator = Child(
            "coordinator",
            "floeberg.server",
            _values(config, CoordinatorConfig),
            self._directory,
            errors,
        )
        worker_values = _values(config, ServiceConfig) | {
            "port": 0,
            "http_port": 0,
            **({} if config.health_port is None else {"health_port": 0}),
            "max_streams": config.max_streams,
            "memory_bytes": config.memory_bytes,
            **(
                {}
                if config.block_cache_dir is None
                else {"block_cache_dir": config.block_cache_dir}
            ),
        }
        self._workers = [
            Child(f"worker-{n}", "floeberg.worker", worker_values, self._directory, errors)
            for n in range(config.workers)
        ]
        self._supervisor = threading.Thread(
            target=self._keep_running, name="floeberg-supervisor", daemon=True
        )

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything, and return when all workers have registered.

        Raises `BadConfig` where a child can't start; its own log says why. `stop` is needed then
        too.
        """
        key_file = self._key_file()
        for child in self._children():
            child.values["key_file"] = key_file
        self._coordinator.launch()
        if not self._await(self._coordinator.is_ready):
            return
        self.coordinator = str(self._coordinator.addresses["coordinator"])
        # a coordinator that is started again must be where workers and clients know it
        self._coordinator.values |= _ports_of(self._coordinator.addresses)
        for worker in self._workers:
            worker.values["coordinator"] = [self.coordinator]
            worker.launch()
        # a worker answers that it is ready once it has registered
        if self._await(lambda: all(w.is_ready() and _answers_ready(w) for w in self._workers)):
            self._supervisor.start()
            logger.info("everything is up", extra=self.addresses())

    def addresses(self) -> dict[str, object]:
        """Return where everything is: `coordinator` and `http`, and of each of the `workers` its
        `worker` id, `location`, `http` and `pid`; and with `health_port` the `health` of each.
        """
        return {
            "http": None,
            **self._coordinator.addresses,
            "coordinator": self.coordinator,
            "workers": [{**w.addresses, "pid": w.pid} for w in self._workers],
        }

    def stop(self) -> None:
        """Stop the workers, then the coordinator, each draining; kill what doesn't go in time."""
        if not self._stop.asked:  # asked twice, it would cut short the children's draining
            self._stop.ask("the cluster is closed")
        if self._supervisor.ident is not None:
            self._supervisor.join()
        for children in (self._workers, [self._coordinator]):
            for child in children:
                child.terminate()
            self._await_end(children)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _await_end(self, children: Sequence[Child]) -> None:
        """Wait for the children's draining, or less where a second signal hurries; then kill."""
        seconds = self._config.drain_seconds + _KILL_SECONDS
        if not wait_until(
            lambda: all(child.has_ended() for child in children),
            seconds=seconds,
            hurry=self._stop.at_once,
        ):
            for child in children:
                child.terminate()  # the second time: at once
            wait_until(
                lambda: all(child.has_ended() for child in children),
                seconds=_KILL_SECONDS,
                hurry=threading.Event(),
            )
        for child in children:
            if not child.has_ended():
                logger.warning("process killed", extra={"child": child.name})
            child.close()

    def _children(self) -> list[Child]:
        return [self._coordinator, *self._workers]

    def _key_file(self) -> str:
        if self._config.key_file is not None:
            return str(self._config.key_file)
        path = self._directory / "keys"
        keyring = Keyring.generate() if self._config.key is None else self._config.keyring()
        keyring.write(path)
        return str(path)

    def _await(self, condition: Callable[[], bool]) -> bool:
        """Wait for `condition`; return False if the cluster is to stop before."""
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            for child in self._children():
                status = child.ended()
                if status is not None:
                    raise BadConfig(
                        f"{child.name} ended with status {status} while it started; what it"
                        " wrote says why"
                    )
            if time.monotonic() > deadline:
                raise BadConfig(f"not everything had started within {_START_SECONDS:g} s")
            if self._stop.wait(_POLL_SECONDS):
                return False
        return True

    def _keep_running(self) -> None:
        """Start again what has ended, until the cluster stops."""
        while not self._stop.wait(_WATCH_SECONDS):
            for child in self._children():
                delay = child.revive(time.monotonic())
                if delay is not None:
                    self._keep_place(child)
                    logger.warning(
                        "process ended; it will be started again",
                        extra={
                            "child": child.name,
                            "status": child.ended(),
                            "delay_seconds": delay,
                        },
                    )
                child.is_ready()

    def _keep_place(self, child: Child) -> None:
        """Let a worker that has ended come back where the endpoints of running scans name it.

        One that could not even start there, because the port is another's by now, takes a free one.
        """
        if child in self._workers:
            free = {key: 0 for key in _PORTS.values() if key in child.values}
            child.values |= free | _ports_of(child.addresses)


def run_up(
    config: UpConfig,
    on_ready: Callable[[Mapping[str, object]], None] = lambda addresses: None,
    log_stream: TextIO = sys.stderr,
) -> None:
    """Run a coordinator and workers until a signal ends them. Call it from the main thread.

    `on_ready` is told the addresses once every worker has registered; `ready_file` then holds the
    same. Raises `BadConfig` where something cannot start.
    """
    configure_logging(config.log_level, config.log_format, log_stream)
    stop = Stop()
    stop.on_signals()
    if config.stop_with_stdin:
        stop.on_end_of(sys.stdin.fileno())
    with Cluster(config, stop=stop) as cluster:
        if not stop.asked:
            write_ready_file(config.ready_file, cluster.addresses())
            on_ready(cluster.addresses())
        stop.wait()


def _values(config: UpConfig, of: type[ServiceConfig]) -> dict[str, object]:
    """Return the values that a child of configuration `of` shares with its parent."""
    own = ("key", "key_file", "ready_file", "stop_with_stdin")
    return {
        o.name: getattr(config, o.name)
        for o in options_of(of)
        if o.name not in own and getattr(config, o.name) is not None
    }


def _ports_of(addresses: Mapping[str, object]) -> dict[str, int]:
    """Return the ports of a child at `addresses` by their keys, so that it can have them again."""
    return {
        key: int(str(addresses[name]).rpartition(":")[2])
        for name, key in _PORTS.items()
        if name in addresses
    }


def _answers_ready(child: Child) -> bool:
    try:
        with _HTTP.open(f"{child.addresses['http']}/readyz", timeout=_HTTP_SECONDS):
            return True
    except (urllib.error.URLError, OSError):
        return False
