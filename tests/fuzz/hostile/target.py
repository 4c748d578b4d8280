"""The fleet that is attacked, with what is genuine for it."""

from __future__ import annotations

import base64
import logging
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.flight as fl

from floeberg.process.auth.sessions import seal_session, wall_clock_ms
from floeberg.protocol.lending import LentTable, seal_table
from floeberg.protocol.registration import (
    AskCredentials,
    AskWorker,
    RenewWorker,
    seal_registration,
)
from tests.support.callers import bearing, password_file, secret_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.identity_provider import AUDIENCE, ISSUER, IdentityProvider
from tests.support.lake import TableWriter, required, schema
from tests.support.people import write_people
from tests.support.sql import input_of, sealed_sql

TOKEN = "the-token-of-ann-for-tests"
PASSWORD = "correct horse"
PEOPLE = fl.FlightDescriptor.for_path("db", "people")
RULES = """
[[rule]]
principals = ["ann"]
tables = ["warehouse.db.*"]
rows = "region = 'eu'"
hide = ["email"]
"""


@dataclass(frozen=True)
class Target:
    """A fleet where everybody must say who it is, and `ann` may see some of `db.people`."""

    fleet: LocalFleet
    coordinator: fl.FlightClient
    worker: fl.FlightClient
    tickets: tuple[bytes, ...]
    """Bound to ann; the last one is a statement's."""
    tokens: tuple[str, ...]
    """A listed one, a session's, and a JSON Web Token; each ann's, for long."""
    registration: bytes
    question: bytes
    """Of a coordinator to the worker."""
    lending: bytes
    """Of a worker to the coordinator, for credentials."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be told: it is in nothing that is sent."""
        keys = [line.partition(":")[2] for line in self.fleet.keys.to_text().split()]
        return (*self.tokens, PASSWORD, *keys, "payroll", "@example")


@contextmanager
def running_target() -> Iterator[Target]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="floeberg-fuzz-")))
        stack.enter_context(_quiet())
        flags = _flags(folder)
        write_people(folder / "lake" / "db" / "people")
        pay = TableWriter.create(
            folder / "lake" / "hr" / "payroll", schema({"id": required("long")})
        )
        pay.append([{"id": 1}])
        fleet = stack.enter_context(local_fleet(folder / "lake", workers=0, **flags))
        worker = fleet.add_worker(**{k: v for k, v in flags.items() if k.startswith("auth_")})
        coordinator = stack.enter_context(fl.connect(fleet.location))
        info = coordinator.get_flight_info(PEOPLE, bearing(TOKEN))
        in_a_day = wall_clock_ms() + 86_400_000
        session = seal_session("ann", fleet.keys, expires_at_ms=in_a_day, stamp=None)
        jwt = (folder / "jwt").read_text()
        registration = RenewWorker(worker_id=worker.worker_id)
        question = AskWorker(coordinator_id="c-1", question="q" * 24, lease_seconds=10.0)
        people = LentTable(
            catalog="warehouse",
            identifier=("db", "people"),
            table_uuid=None,
            until_ms=in_a_day,
        )
        lending = AskCredentials(
            worker_id=worker.worker_id,
            question="q" * 24,
            table=b64encode(seal_table(people, fleet.keys)).decode(),
        )
        statement = sealed_sql(
            fleet.keys,
            "SELECT * FROM i0 WHERE id > 3",
            info.schema,
            input_of(info),
            principal="ann",
            is_bound=True,
            expires_at_ms=in_a_day,
        )
        yield Target(
            fleet,
            coordinator,
            stack.enter_context(fl.connect(worker.location)),
            (*(e.ticket.ticket for e in info.endpoints), statement),
            (TOKEN, session, jwt),
            seal_registration(registration, fleet.keys, now_ms=wall_clock_ms()),
            seal_registration(question, fleet.keys, now_ms=wall_clock_ms()),
            seal_registration(lending, fleet.keys, now_ms=wall_clock_ms()),
        )


def _flags(folder: Path) -> dict[str, Any]:
    provider = IdentityProvider()
    (folder / "jwks.json").write_text(provider.published())
    (folder / "jwt").write_text(provider.token(exp=2**40))
    (folder / "policies").write_text(RULES)
    return {
        "auth_tokens": secret_file(folder / "tokens", f"ann:{TOKEN}\n"),
        "auth_passwords": password_file(folder, ann=PASSWORD),
        "auth_jwks": str(folder / "jwks.json"),
        "auth_issuer": ISSUER,
        "auth_audience": AUDIENCE,
        "policies": str(folder / "policies"),
        "bind_tickets": True,
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Run as a server does, without tracebacks, and without a log line a refusal."""
    logger, before = logging.getLogger("floeberg"), sys.__dict__.get("tracebacklimit")
    level = logger.level
    sys.tracebacklimit = 0
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before


def unpadded(text: str) -> bytes:
    return base64.b64encode(text.encode()).rstrip(b"=")
