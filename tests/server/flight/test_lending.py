"""A coordinator lends credentials to workers of its fleet, for tables of tickets, and no more."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pyarrow.flight as fl
import pytest

from floeberg.protocol.errors import (
    BadCommand,
    BadTicket,
    ExpiredTicket,
    FloebergError,
    Unauthenticated,
    UnknownCatalog,
    UnknownTable,
)
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.lending import LentTable, seal_table
from floeberg.protocol.registration import (
    LEND_CREDENTIALS,
    AskCredentials,
    LentCredentials,
    RegisterWorker,
    ReplayGuard,
    open_registration,
    seal_registration,
)
from floeberg.protocol.sealing import TICKET, Keyring, seal_message
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from floeberg.server.flight.lending import Lender
from tests.support.documents import TABLE_UUID, empty_metadata
from tests.support.fleet import LocalFleet
from tests.support.lending import LendingCatalog, lending_catalog

KEYS = Keyring.generate()
NOW = 1_800_000_000_000
LOCATION = "s3://lake/db/t"
SECRET = {"s3.access-key-id": "lent", "s3.secret-access-key": "hunter2"}


@pytest.fixture
def lent() -> Iterator[LendingCatalog]:
    with lending_catalog(empty_metadata(LOCATION), f"{LOCATION}/metadata/v1.json") as lent:
        lent.lends = [(f"{LOCATION}/data", SECRET), (f"{LOCATION}/deletes", SECRET)]
        yield lent


@pytest.fixture
def catalogs(lent: LendingCatalog, tmp_path: Path) -> Iterator[Catalogs]:
    lake = PyIcebergCatalog(
        "lake", {"type": "rest", "uri": lent.uri, "s3.region": "eu"}, deadline_seconds=10
    )
    yield Catalogs([lake, WarehouseCatalog("files", str(tmp_path))])
    lake.close()


@pytest.fixture
def lender(catalogs: Catalogs) -> Lender:
    return Lender(catalogs, KEYS, now_ms=lambda: NOW)


def token(
    *identifier: str, catalog: str = "lake", uuid: str = TABLE_UUID, until_ms: int = NOW + 1
) -> bytes:
    table = LentTable(
        catalog=catalog, identifier=identifier or ("db", "t"), table_uuid=uuid, until_ms=until_ms
    )
    return seal_table(table, KEYS)


def asking(raw: bytes, keys: Keyring = KEYS, refused: str | None = None) -> bytes:
    message = AskCredentials(
        worker_id="w1", question="q" * 24, table=base64.b64encode(raw).decode(), refused=refused
    )
    return seal_registration(message, keys, now_ms=NOW)


def sealed_answer() -> bytes:
    answer = LentCredentials(question="q" * 24, properties={})
    return seal_registration(answer, KEYS, now_ms=NOW)


def opened(raw: bytes) -> LentCredentials:
    return open_registration(LentCredentials, raw, KEYS, ReplayGuard(), now_ms=NOW)


def test_a_worker_gets_what_reaches_the_files_of_its_table(lender: Lender):
    raw = lender.lend(asking(token()))

    answer = opened(raw)
    assert answer.question == "q" * 24
    assert answer.properties == {"s3.region": "eu"}
    [shared] = answer.credentials
    assert shared.prefixes == (f"{LOCATION}/data", f"{LOCATION}/deletes")
    assert shared.properties == SECRET
    assert b"hunter2" not in raw
    assert "hunter2" not in repr(answer)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (b"", Unauthenticated),
        (b"{}", Unauthenticated),
        (asking(token(), Keyring.generate()), Unauthenticated),
        # of a worker, and for something else
        (
            seal_registration(
                RegisterWorker(
                    worker_id="w1", location="grpc://w:1", max_streams=1, max_bytes=1, version="1"
                ),
                KEYS,
                now_ms=NOW,
            ),
            Unauthenticated,
        ),
        (
            seal_registration(LentCredentials(question="q" * 24, properties={}), KEYS, now_ms=NOW),
            Unauthenticated,
        ),
        # tables by other means than a ticket's
        (asking(b"lake.db.t"), BadTicket),
        (asking(seal_message(KEYS, TICKET, token())), BadTicket),
        (asking(token()[:-1]), BadTicket),
        (asking(token(until_ms=NOW)), ExpiredTicket),
        # tables that are not lent, or not any more
        (asking(token("db", "other")), UnknownTable),
        (asking(token(uuid="11111111-03fe-4693-9a96-a0705ddf69c1")), UnknownTable),
        (asking(token(catalog="files")), UnknownTable),
        (asking(token(catalog="gone")), UnknownCatalog),
    ],
)
def test_nobody_else_gets_any_and_nobody_anything_else(
    lender: Lender, request_: bytes, error: type[FloebergError]
):
    with pytest.raises(error) as raised:
        lender.lend(request_)
    assert "hunter2" not in repr(raised.value)


def test_a_request_is_answered_once(lender: Lender):
    request = asking(token())
    lender.lend(request)

    with pytest.raises(Unauthenticated, match="sent before"):
        lender.lend(request)


def test_what_is_no_base64_is_refused(lender: Lender):
    message = AskCredentials(worker_id="w1", question="q" * 24, table="?")

    with pytest.raises(BadTicket, match="base64"):
        lender.lend(seal_registration(message, KEYS, now_ms=NOW))


def test_it_is_an_action_that_needs_no_principal_and_the_seal(catalogs: Catalogs, tmp_path: Path):
    tokens = tmp_path / "tokens"
    tokens.write_text("ann:0123456789abcdef\n")
    tokens.chmod(0o600)
    fleet = LocalFleet(catalogs, auth_tokens=str(tokens))
    try:
        with fl.connect(fleet.location) as client, pytest.raises(fl.FlightError) as raised:
            list(client.do_action(fl.Action(LEND_CREDENTIALS, asking(token()))))
    finally:
        fleet.close()
    error = from_flight(raised.value)
    assert isinstance(error, Unauthenticated)
    assert "not sealed with a key" in str(error)
    assert not isinstance(error, BadCommand)
