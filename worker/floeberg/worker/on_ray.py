"""Workers as Ray actors: a driver that keeps them, while Ray places, restarts and moves them.

Each actor is the ordinary worker in a process of its own, which registers with the coordinators;
nothing that is read passes through Ray. An actor that can't be placed waits, and is what Ray's
autoscaler adds nodes for. When the driver dies, Ray ends its actors, and undrained.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from dataclasses import replace
from typing import Any, TextIO

import ray  # pyright: ignore[reportMissingImports]

from floeberg.process.lifecycle import Stop, write_ready_file
from floeberg.process.logs import configure_logging
from floeberg.process.service import is_wildcard
from floeberg.process.tracing import configure_tracing
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.flight_errors import switch_tracebacks_off
from floeberg.worker.config import WorkerConfig
from floeberg.worker.memory import use_returnable_memory
from floeberg.worker.process import SHUTDOWN_SECONDS, WorkerService

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
# how long an actor that is up may take to hear that it is to drain
_ANSWER_SECONDS = 5.0
# between an actor that could not serve and the one in its place
_REPLACE_SECONDS = 5.0


class FloebergWorker:
    """What runs in an actor's process: one worker, from `run` to `drain`.

    `run` is the call that Ray makes again after each restart.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._stop = Stop()
        self._settled = threading.Event()
        self._addresses: dict[str, object] | None = None

    def run(self) -> None:
        """Serve until `drain`. Raises `BadConfig` for what this node can't do."""
        config = self._config
        configure_logging(config.log_level, config.log_format, sys.stderr)
        switch_tracebacks_off()
        use_returnable_memory()
        configure_tracing("floeberg-worker", os.environ)
        try:
            worker = WorkerService(_on_node(config, ray.util.get_node_ip_address()))
            worker.start()
            self._addresses = worker.addresses()
        finally:
            self._settled.set()
        self._stop.wait()
        worker.stop(self._stop.at_once)

    def addresses(self) -> dict[str, object] | None:
        """Return the worker's addresses once it serves; None if it can't."""
        self._settled.wait()
        return self._addresses

    def drain(self, at_once: bool = False) -> None:
        """Let `run` return when the running streams have ended."""
        self._stop.ask("the driver stops", at_once=at_once)


def run_workers(config: WorkerConfig, log_stream: TextIO = sys.stderr) -> None:
    """Keep workers in a Ray cluster until a signal ends this process, and drain them then. Call it
    from the main thread.

    Raises `BadConfig` where there is no cluster, and where a worker can't start before all have
    once. Later, an actor that can't serve is replaced. Configures logging and signals for the
    whole process.
    """
    _check(config)
    configure_logging(config.log_level, config.log_format, log_stream)
    stop = Stop()
    try:
        ray.init(address=config.ray_address, namespace="floeberg", configure_logging=False)
    except (ConnectionError, ValueError) as exc:
        raise BadConfig(
            f"'ray_address': no Ray cluster is reached at {config.ray_address}; `ray start --head`"
            " starts one on this machine"
        ) from exc
    stop.on_signals()  # after ray.init, which takes SIGTERM itself
    if config.stop_with_stdin:
        stop.on_end_of(sys.stdin.fileno())
    driver = _Driver(config, stop)
    try:
        driver.keep()
    finally:
        driver.drain()
        ray.shutdown()


class _Driver:
    """The actors, each by the call of its `run`, which ends when the actor has."""

    def __init__(self, config: WorkerConfig, stop: Stop) -> None:
        self._config = config
        self._stop = stop
        self._actor_type = ray.remote(FloebergWorker).options(
            num_cpus=config.ray_cpus,
            memory=config.memory_bytes,
            resources={name: float(amount) for name, amount in config.ray_resources.items()},
            scheduling_strategy="SPREAD",
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=3,  # each of its calls, while `run` lasts
        )
        self._actors: dict[Any, Any] = {}
        for _ in range(config.ray_workers):
            self._add()

    def _add(self) -> None:
        actor = self._actor_type.remote(replace(self._config, ready_file=None))
        self._actors[actor.run.remote()] = actor

    def keep(self) -> None:
        """Return when the process is told to stop. Raises what `run_workers` does."""
        starting = [actor.addresses.remote() for actor in self._actors.values()]
        logger.info("workers asked of Ray", extra={"workers": len(starting)})
        while not self._stop.wait(_LOOK_SECONDS):
            self._replace_ended(all_have_started=not starting)
            if starting and _all_ended(starting):
                try:
                    addresses = ray.get(starting)
                except ray.exceptions.RayError:
                    continue  # the end of the actor's run, a moment later, says why
                if None in addresses:
                    continue  # likewise
                starting = []
                write_ready_file(self._config.ready_file, {"workers": addresses})
                logger.info("all workers serve", extra={"workers": len(addresses)})

    def _replace_ended(self, *, all_have_started: bool) -> None:
        ended, _ = ray.wait(list(self._actors), timeout=0)
        for run in ended:
            try:
                ray.get(run)
            except (BadConfig, ray.exceptions.RayError) as exc:
                reason = getattr(exc, "cause", exc)  # without Ray's account of the actor
                if not all_have_started:
                    raise BadConfig(f"a worker can't start on Ray: {reason}") from None
                logger.error("a worker's actor has ended", extra={"reason": str(reason)})
            ray.kill(self._actors.pop(run))
            if not self._stop.wait(_REPLACE_SECONDS):
                self._add()

    def drain(self) -> None:
        """Drain all actors at once within `drain_seconds`, and leave none."""
        told = {actor.drain.remote(): run for run, actor in self._actors.items()}
        answered, _ = ray.wait(list(told), num_returns=len(told), timeout=_ANSWER_SECONDS)
        runs = [told[call] for call in answered]  # the others wait for a node
        deadline = time.monotonic() + self._config.drain_seconds + 2 * SHUTDOWN_SECONDS
        while not _all_ended(runs) and time.monotonic() < deadline:
            if self._stop.at_once.wait(_LOOK_SECONDS):
                ray.wait([self._actors[run].drain.remote(at_once=True) for run in runs], timeout=1)
                _all_ended(runs, SHUTDOWN_SECONDS)
                break
        for actor in self._actors.values():
            ray.kill(actor)
        logger.info("workers stopped", extra={"workers": len(runs)})


def _all_ended(calls: list[Any], seconds: float = 0) -> bool:
    if not calls:
        return True
    _, pending = ray.wait(calls, num_returns=len(calls), timeout=seconds)
    return not pending


def _check(config: WorkerConfig) -> None:
    if not config.coordinator:
        raise BadConfig(
            "'coordinator' must say whom workers on Ray register with: nobody knows their ports"
        )
    if config.advertise is not None:
        raise BadConfig(
            "'advertise' and 'on' = ray exclude each other: each worker on 0.0.0.0 advertises its"
            " node's address"
        )


def _on_node(config: WorkerConfig, address: str) -> WorkerConfig:
    return replace(config, advertise=address) if is_wildcard(config.host) else config
