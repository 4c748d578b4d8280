"""What a coordinator can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from floeberg.process.config import option
from floeberg.process.service import ServiceConfig, is_loopback
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.registration import is_location
from floeberg.server.catalogs.catalog import CREDENTIAL_SECONDS
from floeberg.server.planning.manifest_cache import DEFAULT_CACHE_BYTES
from floeberg.server.planning.segment_files import DEFAULT_DISK_BYTES

RedeemAt = Literal["workers", "coordinator", "both"]


@dataclass(frozen=True, kw_only=True)
class CoordinatorConfig(ServiceConfig):
    """The configuration of one coordinator process."""

    port: int = option(
        8815, "The port to listen on for Flight; 0 takes a free one.", minimum=0, maximum=65535
    )
    warehouse: str | None = option(
        None,
        "A directory of tables to serve, here or in an object store, as the catalog `warehouse`:"
        " `DIR/db/orders` is `db.orders`.",
    )
    catalog: tuple[str, ...] = option(
        (),
        "A catalog to serve, as `NAME=KIND:URI[?key=value&…]`. Repeat the flag for several.",
    )
    catalogs: Mapping[str, object] = option(
        {}, "Catalogs to serve, a table each: `[catalogs.NAME]` with `kind`, `uri` and properties."
    )
    default_catalog: str | None = option(
        None,
        "The catalog of table names that name none; else the warehouse, the first flag, or the"
        " first of the file.",
    )
    rebase: Mapping[str, str] = option(
        {},
        "Location prefixes to replace before a file is opened, as `OLD=NEW`, for tables that were"
        " copied from where their metadata says they are.",
    )
    worker: tuple[str, ...] = option(
        (),
        "Workers to ask who they are, as Flight URIs (`grpc+tcp://host:8816`), besides those that"
        " register. Repeat the flag for several.",
    )
    worker_dns: tuple[str, ...] = option(
        (),
        "Names of many workers, as Flight URIs (`grpc+tcp://workers:8815`): all addresses that DNS"
        " gives for the host, as for a headless service of Kubernetes, are asked, and looked up"
        " again. With TLS, the certificate of each must be good for that name.",
    )
    lease_seconds: float = option(
        10.0,
        "How long a worker that says nothing stays in new endpoints. Workers renew three times as"
        " often, and are asked and looked up as often.",
        minimum=0.1,
        maximum=86400,
    )
    ticket_seconds: float = option(
        3600.0,
        "How long a ticket can be redeemed after it was handed out; a year at most.",
        minimum=1,
        maximum=366 * 86400,
    )
    credential_seconds: float = option(
        CREDENTIAL_SECONDS,
        "How much longer credentials that a catalog lends must be good when they are handed out;"
        " others are asked for before that.",
        minimum=0,
        maximum=86400,
    )
    policies: Path | None = option(
        None,
        "A file of rules (TOML) that say which tables, rows and columns each principal may read;"
        " without it, everybody who may call reads everything.",
    )
    bind_tickets: bool = option(
        False,
        "Let a ticket be redeemed by nobody but who asked for it. Clients then send their"
        " credentials to workers too, and workers need the `auth_…` keys.",
    )
    redeem_at: RedeemAt = option(
        "workers",
        "Where endpoints send clients: to the `workers`; to the `coordinator`, which relays a"
        " worker's stream, for clients that can't reach workers; or to `both`, the coordinator"
        " last (needs clients that know `arrow-flight-reuse-connection`).",
    )
    refuse_when_full: bool = option(
        True,
        "Refuse a scan with `FLEET_BUSY` while no worker has room for another stream, by what they"
        " said last; else clients find that out from the workers.",
    )
    fallbacks: int = option(
        2, "How many other workers an endpoint names after its first choice.", minimum=0
    )
    max_endpoints_per_worker: int = option(
        4,
        "How finely a scan may be cut. Some clients open every endpoint at once.",
        minimum=1,
    )
    max_info_bytes: int = option(
        3 << 20,
        "About how large the tickets of an answer may be together while they list files; beyond"
        " that they name manifests, which workers read again. Some clients refuse answers above"
        " 4 MiB.",
        minimum=0,
        maximum=256 << 20,
    )
    max_tasks: int = option(
        20_000_000,
        "How many tasks a scan may have; one with more is refused.",
        minimum=1,
    )
    max_query_rows: int | None = option(
        None,
        "How many rows a query may have, where the `policies` don't say another number for who"
        " asks; workers count where a plan can't.",
        minimum=0,
    )
    max_query_bytes: int | None = option(
        None,
        "How many bytes of data files a query may read, whatever its columns, where the `policies`"
        " don't say otherwise.",
        minimum=0,
    )
    max_query_tasks: int | None = option(
        None,
        "How many tasks a query may have, where the `policies` don't say otherwise.",
        minimum=0,
    )
    max_query_seconds: float | None = option(
        None,
        "How long a query may take from its plan to its last batch, where the `policies` don't say"
        " otherwise.",
        minimum=0.1,
    )
    max_queries_at_once: int | None = option(
        None,
        "How many queries of one principal may go on at once, where the `policies` don't say"
        " otherwise; callers who are not asked who they are count as one.",
        minimum=1,
    )
    batch_bytes: int = option(
        2 << 20,
        "About how large a batch is on the wire. Some clients refuse messages above 4 MiB.",
        minimum=1024,
    )
    plan_seconds: float = option(
        300.0,
        "How long planning one scan may take; it ends with `PLAN_TIMEOUT` then, and what was"
        " decoded is remembered. 0 is for ever.",
        minimum=0,
        maximum=86400,
    )
    max_large_plans: int = option(
        2,
        "How many plans of 32 MiB of manifests or more, not yet decoded, are made at once; each"
        " takes up to a gigabyte of memory. Others wait half a minute for their turn and end with"
        " `SERVER_BUSY` then; smaller plans never wait.",
        minimum=1,
    )
    manifest_cache_bytes: int = option(
        DEFAULT_CACHE_BYTES,
        "About how much memory decoded manifests may take: some 600 bytes a data file.",
        minimum=0,
    )
    manifest_cache_dir: str | None = option(
        None,
        "A directory of this machine to keep decoded manifests in as well, so that a coordinator"
        " that is started again need not fetch them. Several processes of one user may share it.",
    )
    manifest_disk_bytes: int = option(
        DEFAULT_DISK_BYTES, "About how large `manifest_cache_dir` may become.", minimum=0
    )
    rest_planning: bool = option(
        False,
        "Plan scans on the HTTP side port for clients of Iceberg's REST catalog. They see what"
        " tables are like and where files are, and need a bearer token where callers are known; the"
        " port has no TLS.",
    )
    rest_wait_seconds: float = option(
        60.0,
        "How long a REST client waits for its plan. After that it is told to ask again, which not"
        " every client does.",
        minimum=0,
        maximum=3600,
    )
    rest_page_files: int = option(
        1000,
        "How many data files one answer to a REST client names at most; the rest comes in pages.",
        minimum=1,
        maximum=100_000,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.knows_callers or self.insecure or is_loopback(self.host)):
            raise BadConfig(
                f"'host' {self.host} is open to other machines, and nothing says who may call: give"
                " 'auth_tokens', 'auth_passwords', 'auth_jwks' or 'auth_client_roots', or say"
                " --insecure (insecure = true) where the network itself is trusted"
            )
        for name in ("policies", "bind_tickets"):
            if getattr(self, name) and not self.knows_callers:
                raise BadConfig(f"{name!r} needs to know who calls: give one of the 'auth_…' keys")
        for name in ("worker", "worker_dns"):
            for uri in getattr(self, name):
                if not is_location(uri):
                    raise BadConfig(f"{name!r} {uri} is no Flight URI, such as grpc://host:8815")
                if self.serves_tls and not uri.startswith("grpc+tls:"):
                    raise BadConfig(
                        f"{name!r} {uri} is clear text, and this coordinator serves TLS: its"
                        " workers must too (grpc+tls://…)"
                    )
        if self.rest_planning and not (self.insecure or is_loopback(self.http_host)):
            raise BadConfig(
                f"'rest_planning': the HTTP side port has no TLS, and 'http_host' {self.http_host}"
                " is open to other machines: say --insecure (insecure = true) where the network"
                " itself is trusted, or put a proxy on this machine before it"
            )
