"""Tables whose files are under prefixes with credentials of their own, through a whole fleet."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.flight as fl
import pytest

from floeberg.client import connect
from floeberg.server.catalogs import Catalogs
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.fleet import LocalFleet, read_all
from tests.support.gate import now_ms
from tests.support.lake import TableWriter
from tests.support.lending import (
    SPREAD_IDS,
    ExpiringStore,
    LendingCatalog,
    expiring_store,
    lending_catalog,
    lent_by_prefix,
    write_spread_table,
)
from tests.support.services import LENT, Seaweed

HOUR = 3_600_000
SECRETS = [credentials.secret_key for credentials in LENT.values()]


@dataclass
class Lent:
    """A fleet, the store that it reads through a proxy, and the catalog that lends it the keys."""

    store: ExpiringStore
    catalog: LendingCatalog
    fleet: LocalFleet

    def read(self) -> list[int]:
        with connect(self.fleet.location) as lake:
            found = lake.table("db.t").scan(select=["id"]).to_arrow()
        return [int(i) for i in np.sort(found["id"].to_numpy())]

    def asked_with(self) -> Counter[str]:
        return Counter(self.store.asked_with)


@pytest.fixture(scope="module")
def table(seaweed: Seaweed, tmp_path_factory: pytest.TempPathFactory) -> TableWriter:
    return write_spread_table(tmp_path_factory.mktemp("spread") / "t", seaweed)


@pytest.fixture
def lent(seaweed: Seaweed, table: TableWriter) -> Iterator[Lent]:
    where = f"{table.location}/metadata/{table.metadata_path.name}"
    with (
        expiring_store(seaweed) as store,
        lending_catalog(json.loads(table.metadata_path.read_bytes()), where) as catalog,
    ):
        catalog.config = store.properties
        catalog.lends = lent_by_prefix(now_ms() + HOUR)
        served = PyIcebergCatalog("lake", {"type": "rest", "uri": catalog.uri})
        fleet = LocalFleet(Catalogs([served]), manifest_cache_bytes=0)
        try:
            yield Lent(store, catalog, fleet)
        finally:
            fleet.close()
            served.close()


def test_each_file_is_read_with_the_credentials_of_its_prefix(lent: Lent):
    lent.fleet.add_worker()

    assert lent.read() == SPREAD_IDS

    asked = lent.asked_with()
    assert asked.keys() == {"data-key", "deletes-key", "metadata-key"}
    assert lent.catalog.renewals == 0


def test_a_plan_goes_on_when_its_credentials_end_before_their_time(lent: Lent):
    lent.fleet.add_worker()
    lent.store.expired.add(LENT["metadata"].access_key)
    lent.catalog.lends = lent_by_prefix(now_ms() + HOUR)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["metadata"])

    assert lent.read() == SPREAD_IDS
    assert (lent.catalog.loads, lent.catalog.renewals) == (1, 1)
    assert lent.read() == SPREAD_IDS
    assert (lent.catalog.loads, lent.catalog.renewals) == (2, 1)


def test_what_ends_soon_is_renewed_before_it_is_handed_out(lent: Lent):
    lent.fleet.add_worker()
    lent.catalog.lends = lent_by_prefix(now_ms() + 30_000)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data", "metadata"])

    assert lent.read() == SPREAD_IDS
    assert lent.read() == SPREAD_IDS

    assert lent.asked_with().keys() == {"data-again-key", "deletes-key", "metadata-again-key"}
    assert lent.catalog.renewals == 1


def test_what_lives_is_handed_out_while_the_catalog_fails_to_renew_it(lent: Lent):
    lent.fleet.add_worker()
    lent.catalog.lends = lent_by_prefix(now_ms() + 5 * 60_000)
    lent.catalog.renewing_status = 500

    assert lent.read() == SPREAD_IDS
    assert lent.catalog.renewals == 1


def test_no_secret_is_logged_or_told(lent: Lent, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    worker = lent.fleet.add_worker()
    lent.catalog.lends = lent_by_prefix(now_ms() + 30_000)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR, again=["data"])

    with fl.connect(lent.fleet.location) as client:
        info = client.get_flight_info(fl.FlightDescriptor.for_path("db", "t"))
        assert read_all(info).num_rows == len(SPREAD_IDS)
        status = b"".join(
            r.body.to_pybytes() for r in client.do_action(fl.Action("floeberg.status", b""))
        )

    told = caplog.text + repr(worker.status()) + status.decode() + repr(info.serialize())
    assert "credentials renewed" in caplog.text
    assert not [secret for secret in SECRETS if secret in told]


def test_renewals_are_counted(lent: Lent):
    lent.catalog.lends = lent_by_prefix(now_ms() + 30_000)
    lent.catalog.renews_with = lent_by_prefix(now_ms() + HOUR)
    lent.fleet.add_worker()
    lent.read()

    http = str(lent.fleet.coordinator.addresses()["http"])
    with urllib.request.urlopen(f"{http}/metrics") as answer:
        metrics = answer.read().decode()

    assert 'floeberg_credential_renewals_total{outcome="renewed"} 1.0' in metrics
    assert 'floeberg_credential_renewals_total{outcome="failed"} 0.0' in metrics
