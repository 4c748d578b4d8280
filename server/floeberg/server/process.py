"""The coordinator as a process: its parts put together, from the first bind to the last call."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TextIO

import pyarrow as pa

from floeberg.process.auth.config import configured_gate
from floeberg.process.auth.watched import WatchedFile
from floeberg.process.certificates import TlsFiles, cannot_listen
from floeberg.process.failures import Failures
from floeberg.process.health import configured_health
from floeberg.process.http import HttpService, new_registry
from floeberg.process.lifecycle import Stop, end_process, wait_until, write_ready_file
from floeberg.process.logs import configure_logging
from floeberg.process.page import StatusRoutes
from floeberg.process.renewal_metrics import RenewalMetrics
from floeberg.process.service import advertised_location, is_loopback, is_wildcard
from floeberg.process.storage import LoggedStorage, StorageCache, open_storage
from floeberg.process.tracing import configure_tracing
from floeberg.protocol.flight_errors import switch_tracebacks_off
from floeberg.protocol.storage import StorageFactory
from floeberg.server.access import Callers, Limits, Policies
from floeberg.server.catalogs import Catalogs, configure_catalogs
from floeberg.server.config import CoordinatorConfig
from floeberg.server.flight.actions import Actions
from floeberg.server.flight.at_once import QueriesAtOnce
from floeberg.server.flight.cache_metrics import CacheMetrics
from floeberg.server.flight.endpoints import ScanPolicy
from floeberg.server.flight.lending import Lender
from floeberg.server.flight.looking import FlightAsker, Resolver, WorkerSearch, system_addresses
from floeberg.server.flight.members import Members
from floeberg.server.flight.plan_runs import PlanRuns
from floeberg.server.flight.proxy import Proxy
from floeberg.server.flight.reads import Reads
from floeberg.server.flight.scans import Scans
from floeberg.server.flight.service import CoordinatorServer
from floeberg.server.flight.status import CoordinatorFacts
from floeberg.server.flight.status_page import coordinator_page
from floeberg.server.planning import ManifestCache, SegmentFiles
from floeberg.server.rest import RestPlanner, RestService
from floeberg.server.sql.answering import SqlStatements
from floeberg.server.sql.service import SqlService, Statements

logger = logging.getLogger(__name__)


class CoordinatorService:
    """A coordinator that serves from `start` until `stop`, each called once.

    Manifests are read through `storages`, names of workers looked up by `resolve`. Queries in SQL
    are answered by what `make_statements` makes.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        catalogs: Catalogs,
        storages: StorageFactory,
        resolve: Resolver = system_addresses,
        make_statements: Callable[[Scans], Statements] = SqlStatements,
    ) -> None:
        self._config = config
        self._catalogs = catalogs
        keyring = config.keyring()
        registry = new_registry()
        # a worker that is silent for a lease is no member any more
        reads = Reads(silent_seconds=config.lease_seconds)
        self.members = Members(
            keyring,
            config.lease_seconds,
            registry,
            tls_only=config.serves_tls,
            on_reports=reads.hear,
        )
        tls = config.client_tls()
        self._search = WorkerSearch(
            config.worker,
            config.worker_dns,
            self.members,
            keyring,
            config.lease_seconds,
            registry,
            resolve=resolve,
            connect=partial(FlightAsker, tls=tls),
            own_location=lambda: self._dialled,
        )
        policy = ScanPolicy(
            ticket_seconds=config.ticket_seconds,
            redeem_at=config.redeem_at,
            fallbacks=config.fallbacks,
            max_endpoints_per_worker=config.max_endpoints_per_worker,
            max_info_bytes=config.max_info_bytes,
            max_tasks=config.max_tasks,
            batch_bytes=config.batch_bytes,
            bind_tickets=config.bind_tickets,
            refuse_when_full=config.refuse_when_full,
        )
        runs = PlanRuns(
            registry,
            plan_seconds=config.plan_seconds or None,
            max_large_plans=config.max_large_plans,
        )
        manifests = _manifest_cache(config)
        registry.register(CacheMetrics(manifests, catalogs))
        registry.register(RenewalMetrics("floeberg_credential_renewals", lambda: catalogs.renewals))
        at_once = QueriesAtOnce(
            reads, patience_seconds=config.lease_seconds, ask_workers=self._search.ask_now
        )
        self._scans = Scans(
            catalogs,
            self.members,
            keyring,
            policy,
            storages,
            registry,
            runs,
            manifests=manifests,
            at_once=at_once,
        )
        self._failures = Failures(registry)
        self._tls_files = TlsFiles.of(config, registry)
        self._facts = CoordinatorFacts(
            catalogs,
            self.members,
            runs,
            reads,
            self._scans.outcomes,
            manifests,
            self._failures,
            self._tls_files,
            is_draining=lambda: self._stopping,
        )
        policies = config.policies
        self._callers = Callers(
            catalogs,
            WatchedFile("policies", policies, Policies.parse) if policies is not None else None,
            Limits(
                config.max_query_rows,
                config.max_query_bytes,
                config.max_query_tasks,
                config.max_query_seconds,
                config.max_queries_at_once,
            ),
        )
        lender = Lender(catalogs, keyring)
        self._actions = Actions(catalogs, self.members, self._scans, self._facts, lender)
        self._sql = SqlService(keyring, make_statements(self._scans))
        self._gate = configured_gate(config, registry)
        self._proxy = Proxy(self.members, keyring, registry, self._gate, tls)
        self._rest: RestService | None = None
        if config.rest_planning:
            planner = RestPlanner(self._scans, runs, keyring, page_files=config.rest_page_files)
            self._rest = RestService(
                self._callers,
                planner,
                registry,
                self._gate,
                wait_seconds=config.rest_wait_seconds,
            )
        page = StatusRoutes(
            render=lambda: coordinator_page(self._facts.status()),
            json=lambda: self._facts.status().model_dump_json(),
            visibility=config.status_page,
            is_loopback=is_loopback(config.http_host),
        )
        self._http = HttpService(
            registry,
            self._readiness,
            host=config.http_host,
            port=config.http_port,
            routes=[*page.routes, *(self._rest.routes if self._rest else ())],
        )
        self._health = configured_health(config, self._readiness)
        self._server: CoordinatorServer | None = None
        self._stopping = False
        self.location = ""
        self._dialled: str | None = None
        """Where other machines reach this process, if that is known."""

    def start(self) -> None:
        """Bind, and answer. Raises `BadConfig` for addresses that can't be used."""
        config = self._config
        try:
            self._server = CoordinatorServer(
                config.bind_location,
                self._callers,
                self._scans,
                self._actions,
                self._sql,
                self._proxy,
                self._gate,
                self._failures,
                config.tls_pair(),
                config.client_roots(),
                config.stall_seconds,
            )
        except (pa.ArrowException, OSError) as exc:
            raise cannot_listen(config) from exc
        self.location = advertised_location(
            config.advertise,
            # what clients on this machine can dial, where nothing better is known
            "127.0.0.1" if is_wildcard(config.host) else config.host,
            self._server.port,
            tls=config.serves_tls,
        )
        if config.advertise is not None or not is_wildcard(config.host):
            self._dialled = self.location
        self._http.start()
        if self._health is not None:
            self._health.start()
        self._search.start()
        self._tls_files.start()
        if not (self._gate.demands or is_loopback(config.host)):
            logger.warning("whoever reaches this coordinator reads every table: no 'auth_…' key")
        logger.info(
            "coordinator serves",
            extra={
                "location": self.location,
                "http": self._http.uri,
                "catalogs": list(self._catalogs.names),
            },
        )

    def addresses(self) -> dict[str, object]:
        health = {} if self._health is None else {"health": self._health.address}
        return {"coordinator": self.location, "http": self._http.uri, **health}

    def stop(self, at_once: threading.Event) -> bool:
        """Refuse new calls, let the running ones end within `drain_seconds`, then go.

        Returns whether everything has ended; False leaves a thread that waits for a client.
        """
        self._stopping = True
        self.members.stop()
        ended = True
        if self._server is not None:
            self._server.drain()
            # it waits for running calls without a deadline of its own
            closing = threading.Thread(target=self._server.shutdown, daemon=True)
            closing.start()
            ended = wait_until(
                lambda: not closing.is_alive(),
                seconds=self._config.drain_seconds,
                hurry=at_once,
            )
        self._tls_files.stop()
        self._search.close()
        self._proxy.close()
        if self._rest is not None:
            self._rest.close()
        if self._health is not None:
            self._health.stop()
        self._http.stop()
        logger.info("coordinator stopped")
        return ended

    def _readiness(self) -> dict[str, str | None]:
        # Not whether there are workers: they may reach this coordinator by an address that leads
        # only to ready ones. But one that was just started knows none of those that it looks for.
        looks = not self._search.has_looked
        return {
            "draining": "the coordinator is stopping" if self._stopping else None,
            "workers": "the coordinator has not yet asked its workers" if looks else None,
        }


def _manifest_cache(config: CoordinatorConfig) -> ManifestCache:
    files = None
    if config.manifest_cache_dir is not None:
        files = SegmentFiles(config.manifest_cache_dir, config.manifest_disk_bytes)
    return ManifestCache(config.manifest_cache_bytes, files)


def run_coordinator(config: CoordinatorConfig, log_stream: TextIO = sys.stderr) -> None:
    """Run a coordinator in this process until a signal ends it. Call it from the main thread.

    Raises `BadConfig` where it cannot start. Configures logging, signals, and tracebacks for the
    whole process.
    """
    configure_logging(config.log_level, config.log_format, log_stream)
    switch_tracebacks_off()
    configure_tracing("floeberg-coordinator", os.environ)
    stop = Stop()
    stop.on_signals()
    if config.stop_with_stdin:
        stop.on_end_of(sys.stdin.fileno())
    storages = StorageCache(lambda config: LoggedStorage(open_storage(config)))
    catalogs = configure_catalogs(
        warehouse=config.warehouse,
        flags=config.catalog,
        table=config.catalogs,
        rebase=config.rebase,
        default=config.default_catalog,
        storage_factory=storages,
        credential_seconds=config.credential_seconds,
    )
    coordinator = CoordinatorService(config, catalogs, storages)
    coordinator.start()
    write_ready_file(config.ready_file, coordinator.addresses())
    stop.wait()
    end_process(clean=coordinator.stop(stop.at_once))
