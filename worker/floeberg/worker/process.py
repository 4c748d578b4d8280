"""The worker as a process: its parts put together, from the first bind to the last stream."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from functools import partial
from typing import TextIO

import pyarrow as pa

from floeberg.process.auth.config import configured_gate
from floeberg.process.background import Background
from floeberg.process.calling import ClientPool, call_options
from floeberg.process.certificates import TlsFiles, cannot_listen
from floeberg.process.failures import Failures
from floeberg.process.health import configured_health
from floeberg.process.http import HttpService, new_registry
from floeberg.process.lifecycle import Stop, end_process, wait_until, write_ready_file
from floeberg.process.logs import configure_logging
from floeberg.process.page import StatusRoutes
from floeberg.process.renewal_metrics import RenewalMetrics
from floeberg.process.service import advertised_location, is_loopback
from floeberg.process.storage import LoggedStorage, StorageCache, open_storage
from floeberg.process.storage.renewals import Renewals
from floeberg.process.tracing import configure_tracing
from floeberg.process.version import floeberg_version
from floeberg.protocol.errors import BadConfig, ServerUnavailable
from floeberg.protocol.flight_errors import switch_tracebacks_off
from floeberg.protocol.registration import RegisterWorker
from floeberg.protocol.status import WorkerStatus
from floeberg.worker.asked import Answers
from floeberg.worker.blocks import BlockCache, environment_store
from floeberg.worker.budget import Budget
from floeberg.worker.cache import DEFAULT_CACHE_BYTES, LoadingCache
from floeberg.worker.config import WorkerConfig
from floeberg.worker.credentials import WorkerCredentials
from floeberg.worker.files.windows import Ahead
from floeberg.worker.membership import FlightCoordinator, Membership
from floeberg.worker.memory import use_returnable_memory
from floeberg.worker.metrics import WorkerMetrics
from floeberg.worker.reading import to_batches_for_tasks
from floeberg.worker.reading.named import MANIFEST_CACHE_BYTES
from floeberg.worker.service import WorkerServer
from floeberg.worker.sql.engine import SqlEngine
from floeberg.worker.sql.inputs import Peers
from floeberg.worker.sql.shares import Shares, usable_cpus
from floeberg.worker.sql.spilling import SpillDirectory
from floeberg.worker.status import WorkerFacts
from floeberg.worker.status_page import worker_page
from floeberg.worker.stream_log import StreamLog
from floeberg.worker.streams import ReadTasks, Redeemer

logger = logging.getLogger(__name__)

SHUTDOWN_SECONDS = 5.0  # after the last stream, at most
_FETCHING_THREADS = 16
_SQL_THREADS = 8


class WorkerService:
    """A worker that serves from `start` until `stop`, each called once.

    `read` is how tasks become batches, if not as usual.
    """

    def __init__(self, config: WorkerConfig, read: ReadTasks | None = None) -> None:
        self._config = config
        self._keyring = config.keyring()
        self.worker_id = f"w-{secrets.token_hex(6)}"
        registry = new_registry()
        self._gate = configured_gate(config, registry)
        self._budget = Budget(config.max_streams, config.memory_bytes, self._tell_load)
        footers = LoadingCache(min(config.footer_cache_bytes, config.memory_bytes // 16))
        deletes = LoadingCache(min(DEFAULT_CACHE_BYTES, config.memory_bytes // 8))
        manifests = LoadingCache(MANIFEST_CACHE_BYTES)
        caches = {"footers": footers, "deletes": deletes, "manifests": manifests}
        blocks = _block_cache(config)
        metrics = WorkerMetrics(registry, self._budget, caches, blocks)
        metrics.registered.set_function(lambda: self.registered)
        storages = StorageCache(lambda config: LoggedStorage(open_storage(config)))
        ahead = (
            Ahead(
                Background(_FETCHING_THREADS, "floeberg-fetch"),
                config.fetch_ahead_bytes,
                self._budget.has_spare,
            )
            if config.fetch_ahead_bytes
            else None
        )
        streams = StreamLog()
        tls = config.client_tls()
        self._clients = ClientPool(tls)
        self._spill = _spill_directory(config)
        self._failures = Failures(registry)
        self._tls_files = TlsFiles.of(config, registry)
        self._credentials = WorkerCredentials(
            self.worker_id,
            self._coordinators,
            partial(FlightCoordinator, keyring=self._keyring, tls=tls),
            Renewals(int(config.credential_seconds * 1000)),
        )
        registry.register(
            RenewalMetrics(
                "floeberg_worker_credential_renewals", lambda: [self._credentials.renewals]
            )
        )
        self._sql = self._sql_engine()
        self._redeemer = Redeemer(
            self._keyring,
            self._budget,
            metrics,
            read
            or partial(
                to_batches_for_tasks,
                deletes=deletes,
                manifests=manifests,
                footers=footers,
                blocks=blocks,
                ahead=ahead,
            ),
            storages,
            streams,
            sql=self._sql,
            tell=self._tell_load,
            credentials=self._credentials.source,
        )
        self._facts = WorkerFacts(
            self.worker_id,
            config,
            self._budget,
            streams,
            self._failures,
            self._tls_files,
            caches if blocks is None else {**caches, "blocks on disk": blocks},
            seats=self._seats,
            is_draining=lambda: self._stopping,
        )
        self._answers = Answers(
            self._keyring, self._introduction, self._facts.load, self._redeemer.stop_queries
        )
        page = StatusRoutes(
            render=lambda: worker_page(self._status()),
            json=lambda: self._status().model_dump_json(),
            visibility=config.status_page,
            is_loopback=is_loopback(config.http_host),
        )
        self._http = HttpService(
            registry,
            self._readiness,
            host=config.http_host,
            port=config.http_port,
            routes=page.routes,
        )
        self._health = configured_health(config, self._readiness)
        self._server: WorkerServer | None = None
        self._membership: Membership | None = None
        self._stopping = False
        self.location = ""

    def _sql_engine(self) -> SqlEngine:
        config = self._config
        memory_bytes = min(config.sql_memory_bytes, config.memory_bytes // 2)
        return SqlEngine(
            self._keyring,
            Peers(
                self._clients,
                # workers may ask who calls, and whoever sent the statement has said so here
                lambda caller: call_options(self._gate.relay_token(caller)),
                own_location=lambda: self.location,
            ),
            Shares(memory_bytes, config.sql_spill_bytes),
            self._spill,
            threads=min(usable_cpus(), _SQL_THREADS),
            is_short=self._budget.is_exceeded,
        )

    def start(self) -> None:
        """Bind, answer, and begin to register. Raises `BadConfig` for addresses that can't be
        used.
        """
        config = self._config
        try:
            self._server = WorkerServer(
                config.bind_location,
                self._redeemer,
                self._answers,
                self._status,
                self._gate,
                self._failures,
                config.tls_pair(),
                config.client_roots(),
                config.stall_seconds,
            )
        except (pa.ArrowException, OSError) as exc:
            raise cannot_listen(config) from exc
        location = advertised_location(
            config.advertise, config.host, self._server.port, tls=config.serves_tls
        )
        self._http.start()
        if self._health is not None:
            self._health.start()
        self.location = location
        tls = config.client_tls()
        self._membership = Membership(
            self._introduction(),
            [
                (uri, partial(FlightCoordinator, uri, self._keyring, tls))
                for uri in config.coordinator
            ],
            self._facts.load,
            on_over=self._redeemer.stop_queries,
        )
        self._membership.start()
        self._tls_files.start()
        logger.info(
            "worker serves",
            extra={"worker": self.worker_id, "location": self.location, "http": self._http.uri},
        )
        if not config.coordinator:
            logger.info("no coordinator is configured; one that looks for workers may find this")

    def _tell_load(self) -> None:
        if self._membership is not None:
            self._membership.tell()

    @property
    def registered(self) -> int:
        """How many coordinators have this worker, by its registration or by their own search."""
        return sum(self._seats().values())

    def addresses(self) -> dict[str, object]:
        health = {} if self._health is None else {"health": self._health.address}
        return {
            "worker": self.worker_id,
            "location": self.location,
            "http": self._http.uri,
            **health,
        }

    def status(self) -> dict[str, object]:
        """Return what the worker tells of itself, as JSON has it."""
        return self._status().model_dump(mode="json")

    def _introduction(self) -> RegisterWorker:
        if not self.location:  # the port answers a moment before all addresses are known
            raise ServerUnavailable("the worker is starting; ask again")
        config = self._config
        return RegisterWorker(
            worker_id=self.worker_id,
            location=self.location,
            max_streams=config.max_streams,
            max_bytes=self._budget.max_bytes,
            version=floeberg_version(),
            zone=config.zone,
            http_address=self._http.uri,
        )

    def _seats(self) -> dict[str, bool]:
        """Return for each coordinator, by its URI or its id, whether it has this worker now."""
        told = self._membership.seats if self._membership else {}
        return told | dict.fromkeys(self._answers.askers, True)

    def _coordinators(self) -> tuple[str, ...]:
        """Return where coordinators are, those first that have this worker."""
        told = self._membership.seats if self._membership else {}
        members = [uri for uri, is_member in told.items() if is_member]
        return tuple(dict.fromkeys([*members, *self._answers.locations, *told]))

    def _status(self) -> WorkerStatus:
        return self._facts.status(self.location, self._http.uri)

    def stop(self, at_once: threading.Event) -> bool:
        """Tell the coordinators, take no new streams, let the running ones end, all within
        `drain_seconds`, then go.

        Streams that are left then are cut with a retryable error. Returns whether everything has
        ended; False leaves a thread that waits for a client which doesn't read.
        """
        self._stopping = True
        self._answers.drain()
        if self._membership is not None:
            self._membership.drain()
        deadline = time.monotonic() + self._config.drain_seconds
        # until then their new endpoints name this worker, so it still takes those streams
        if not wait_until(
            lambda: self._answers.all_know_of_draining,
            seconds=self._config.drain_seconds,
            hurry=at_once,
        ):
            logger.warning("not every coordinator has asked since this worker drains")
        self._redeemer.drain()
        if not wait_until(
            lambda: self._budget.streams == 0,
            seconds=max(0.0, deadline - time.monotonic()),
            hurry=at_once,
        ):
            logger.warning("cutting streams", extra={"streams": self._budget.streams})
            self._redeemer.cut()
        if self._membership is not None:
            self._membership.leave()
        self._tls_files.stop()
        ended = True
        if self._server is not None:
            # it waits for running streams without a deadline of its own
            closing = threading.Thread(target=self._server.shutdown, daemon=True)
            closing.start()
            closing.join(SHUTDOWN_SECONDS)
            ended = not closing.is_alive()
        self._credentials.close()
        if self._health is not None:
            self._health.stop()
        self._http.stop()
        self._clients.close()
        self._sql.close()
        if self._spill is not None:
            self._spill.close()
        logger.info("worker stopped", extra={"worker": self.worker_id})
        return ended

    def _readiness(self) -> dict[str, str | None]:
        return {
            "membership": None if self.registered else "no coordinator has this worker",
            "draining": "the worker is stopping" if self._stopping else None,
        }


def _block_cache(config: WorkerConfig) -> BlockCache | None:
    if config.block_cache_dir is None:
        return None
    return BlockCache(
        config.block_cache_dir,
        config.block_cache_bytes,
        environment=environment_store(os.environ),
    )


def _spill_directory(config: WorkerConfig) -> SpillDirectory | None:
    if not config.sql_spill_bytes:
        return None
    try:
        return SpillDirectory(config.sql_spill_dir)
    except OSError as exc:
        if config.sql_spill_dir is not None:
            raise BadConfig(f"'sql_spill_dir' cannot be used: {exc}") from exc
        # a container without a disk to write to runs statements that fit into memory
        logger.warning("SQL statements can't spill", extra={"why": str(exc)})
        return None


def run_worker(config: WorkerConfig, log_stream: TextIO = sys.stderr) -> None:
    """Run a worker in this process, or workers on Ray if `config` says so, until a signal ends it.
    Call it from the main thread.

    Raises `BadConfig` where it cannot start. Configures logging, signals, tracebacks, and how Arrow
    allocates memory, for the whole process.
    """
    if config.on == "ray":
        _run_on_ray(config, log_stream)
        return
    configure_logging(config.log_level, config.log_format, log_stream)
    switch_tracebacks_off()
    use_returnable_memory()
    configure_tracing("floeberg-worker", os.environ)
    stop = Stop()
    stop.on_signals()
    if config.stop_with_stdin:
        stop.on_end_of(sys.stdin.fileno())
    worker = WorkerService(config)
    worker.start()
    write_ready_file(config.ready_file, worker.addresses())
    stop.wait()
    end_process(clean=worker.stop(stop.at_once))


def _run_on_ray(config: WorkerConfig, log_stream: TextIO) -> None:
    try:
        from floeberg.worker.on_ray import run_workers
    except ImportError as exc:
        raise BadConfig(
            f"'on' = ray needs a package that is missing, {exc.name}: pip install 'floeberg[ray]'"
        ) from exc
    run_workers(config, log_stream)
