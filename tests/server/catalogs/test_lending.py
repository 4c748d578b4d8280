"""What a REST catalog lends is renewed as its specification says, and as little as need be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from floeberg.process.storage.credentials import fingerprint, properties_for
from floeberg.process.storage.renewals import Renewals
from floeberg.protocol.errors import (
    CatalogUnavailable,
    CredentialsUnavailable,
    ExpiredCredentials,
    UnknownTable,
)
from floeberg.protocol.storage import StorageConfig
from floeberg.server.catalogs import LoadedTable
from floeberg.server.catalogs.catalog import LendsCredentials
from floeberg.server.catalogs.pyiceberg_catalog import PyIcebergCatalog
from tests.support.documents import empty_metadata
from tests.support.lending import LendingCatalog, lending_catalog

LOCATION = "s3://lake/db/t"
UUID = "11111111-2222-3333-4444-555555555555"
METADATA = empty_metadata(LOCATION, table_uuid=UUID)
NOW = 1_800_000_000_000
HOUR, MINUTE = 3_600_000, 60_000
T = ("db", "t")


class Clock:
    now_ms = NOW


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lender() -> Iterator[LendingCatalog]:
    with lending_catalog(METADATA, f"{LOCATION}/metadata/v1.metadata.json") as lender:
        yield lender


@pytest.fixture
def catalog(lender: LendingCatalog, clock: Clock) -> Iterator[PyIcebergCatalog]:
    renewals = Renewals(10 * MINUTE, now_ms=lambda: clock.now_ms, jitter=lambda: 1.0)
    catalog = PyIcebergCatalog(
        "lake",
        {"type": "rest", "uri": lender.uri, "s3.endpoint": "http://store"},
        deadline_seconds=10,
        renewals=renewals,
    )
    yield catalog
    catalog.close()


def key(name: str, ends_ms: int | None = None) -> dict[str, str]:
    ends = {} if ends_ms is None else {"s3.session-token-expires-at-ms": str(ends_ms)}
    return {"s3.access-key-id": name, "s3.secret-access-key": "hunter2", **ends}


def current(table: LoadedTable) -> StorageConfig:
    assert table.credentials is not None
    return table.credentials.current(table.storage)


def key_of(config: StorageConfig, location: str = f"{LOCATION}/x") -> str | None:
    return properties_for(location, config).get("s3.access-key-id")


def test_what_lasts_is_not_renewed_and_is_asked_for_by_the_header(lender, catalog):
    lender.lends = [(LOCATION, key("first", NOW + HOUR))]

    table = catalog.load(T)

    assert current(table) is table.storage
    assert (lender.loads, lender.renewals) == (1, 0)
    assert lender.delegations == {"vended-credentials"}
    assert isinstance(catalog, LendsCredentials)


def test_no_other_server_is_asked_nor_sent_the_catalog_s_headers(lender, clock):
    properties = {"type": "rest", "uri": lender.uri, "header.X-Api-Key": "hunter2"}
    renewals = Renewals(10 * MINUTE, now_ms=lambda: clock.now_ms)
    catalog = PyIcebergCatalog("lake", properties, deadline_seconds=10, renewals=renewals)
    with lending_catalog(METADATA, "s3://elsewhere/v1.metadata.json") as elsewhere:
        elsewhere.lends = [(LOCATION, key("elsewhere", NOW + HOUR))]
        lender.moved_to = elsewhere.uri.replace("127.0.0.1", "localhost")
        lender.lends = [(LOCATION, key("first", NOW + MINUTE))]
        lender.renewing_status = 307
        table = catalog.load(T)
        lender.lends = [(LOCATION, key("second", NOW + HOUR))]

        assert key_of(current(table)) == "second"
        lender.status = 307
        with pytest.raises(CatalogUnavailable, match="another server"):
            catalog.load(T)
        assert not elsewhere.headers
    assert {headers["X-Api-Key"] for headers in lender.headers} == {"hunter2"}
    catalog.close()


def test_what_ends_soon_is_renewed_by_credentials_alone(lender, catalog):
    lender.lends = [(LOCATION, key("first", NOW + MINUTE)), ("s3://meta", key("m", NOW + HOUR))]
    lender.config = {"s3.region": "eu"}
    table = catalog.load(T)
    lender.lends = [(LOCATION, key("second", NOW + HOUR))]

    fresh = current(table)

    assert properties_for(f"{LOCATION}/x", fresh) == {
        "s3.endpoint": "http://store",
        "s3.region": "eu",
        **key("second", NOW + HOUR),
    }
    assert key_of(fresh, "s3://meta/x") is None
    assert (lender.loads, lender.renewals) == (1, 1)
    assert current(catalog.load(T)) != table.storage
    assert lender.renewals == 1


@pytest.mark.parametrize(
    "said", ["v1/own/credentials", "/v1/own/credentials", "{uri}/v1/own/credentials"]
)
def test_the_catalog_says_where_to_renew(lender, catalog, said: str):
    lender.lends = [(LOCATION, key("first", NOW))]
    lender.config = {"client.refresh-credentials-endpoint": said.format(uri=lender.uri)}
    table = catalog.load(T)
    lender.lends = [(LOCATION, key("second", NOW + HOUR))]

    assert key_of(current(table)) == "second"
    assert lender.paths[-1] == "/v1/own/credentials"


def test_another_server_is_never_asked_for_them(lender, catalog):
    lender.lends = [(LOCATION, key("first", NOW))]
    lender.config = {"client.refresh-credentials-endpoint": "http://127.0.0.1:1/credentials"}
    table = catalog.load(T)
    lender.lends = [(LOCATION, key("second", NOW + HOUR))]

    assert key_of(current(table)) == "second"
    assert (lender.loads, lender.renewals) == (2, 0)


def test_a_catalog_without_the_endpoint_is_asked_for_the_table(lender, catalog):
    lender.renews = False
    lender.lends = [(LOCATION, key("first", NOW))]
    table = catalog.load(T)
    lender.lends = [(LOCATION, key("second", NOW + HOUR))]

    assert key_of(current(table)) == "second"
    assert (lender.loads, lender.renewals) == (2, 0)


def test_a_catalog_that_forbids_renewing_is_not_asked(lender, catalog):
    lender.lends = [(LOCATION, key("first", NOW))]
    lender.config = {"client.refresh-credentials-enabled": "false"}

    assert catalog.load(T).credentials is None


def test_a_catalog_that_lends_nothing_has_nothing_to_renew(lender, catalog):
    lender.config = {"s3.region": "eu"}

    assert catalog.load(T).credentials is None
    with pytest.raises(UnknownTable):
        catalog.lend(T, UUID)


def test_credentials_for_all_files_are_renewed_with_the_table(lender, catalog):
    lender.config = key("first", NOW)
    table = catalog.load(T)
    lender.config = key("second", NOW + HOUR)

    assert key_of(current(table)) == "second"
    assert (lender.loads, lender.renewals) == (2, 0)


def test_credentials_that_are_lent_both_ways_are_renewed_both_ways(lender, catalog):
    # for clients that know no prefixes
    lender.config = key("first", NOW)
    lender.lends = [(LOCATION, key("first", NOW)), ("s3://meta", key("m", NOW + HOUR))]
    table = catalog.load(T)
    lender.lends = [(LOCATION, key("second", NOW + HOUR)), ("s3://meta", key("n", NOW + HOUR))]

    for _ in range(3):
        fresh = current(table)
        assert key_of(fresh) == "second"
        assert key_of(fresh, "s3://elsewhere/x") == "second"
        assert key_of(fresh, "s3://meta/x") == "n"
    assert (lender.loads, lender.renewals) == (1, 1)


def test_what_lives_goes_on_while_the_catalog_fails_and_then_it_is_an_error(lender, catalog, clock):
    lender.lends = [(LOCATION, key("first", NOW + MINUTE))]
    table = catalog.load(T)
    lender.status = 500

    assert [key_of(current(table)) for _ in range(3)] == ["first"] * 3
    assert lender.renewals == 1
    clock.now_ms += 2 * MINUTE
    with pytest.raises(CredentialsUnavailable, match=r"lake\.db\.t"):
        current(table)
    with pytest.raises(CredentialsUnavailable):
        current(table)
    assert lender.renewals == 2

    lender.status = 200
    lender.lends = [(LOCATION, key("second", clock.now_ms + HOUR))]
    clock.now_ms += 10_000
    assert key_of(current(table)) == "second"


def test_a_table_that_is_gone_or_made_again_lends_nothing_to_the_old_one(lender, catalog, clock):
    lender.renews = False
    lender.lends = [(LOCATION, key("first", NOW))]
    table = catalog.load(T)

    lender.metadata = {**METADATA, "table-uuid": "99999999-2222-3333-4444-555555555555"}
    lender.lends = [(LOCATION, key("anothers", NOW + HOUR))]
    with pytest.raises(ExpiredCredentials, match=r"lake\.db\.t"):
        current(table)
    lender.status = 404
    clock.now_ms += 2000
    with pytest.raises(ExpiredCredentials):
        current(table)
    with pytest.raises(UnknownTable):
        catalog.lend(T, "99999999-2222-3333-4444-555555555555")


def test_nor_does_one_whose_credentials_are_asked_for_alone(lender, catalog):
    lender.lends = [(f"{LOCATION}/old/", key("first", NOW + MINUTE))]
    old = catalog.load(T)

    lender.metadata = {**METADATA, "table-uuid": "99999999-2222-3333-4444-555555555555"}
    lender.lends = [(f"{LOCATION}/new/", key("anothers", NOW + HOUR))]

    assert key_of(catalog.lend(T, UUID), f"{LOCATION}/old/x") == "first"  # while that lives
    assert key_of(catalog.lend(T, UUID), f"{LOCATION}/new/x") is None
    assert lender.renewals == 1
    new = catalog.load(T)
    assert key_of(current(new), f"{LOCATION}/new/x") == "anothers"
    assert key_of(current(old), f"{LOCATION}/new/x") is None
    with pytest.raises(UnknownTable):
        catalog.lend(T, UUID)


def test_a_table_that_is_made_again_is_not_lent_what_its_name_had(lender, catalog, clock):
    lender.lends = [(LOCATION, key("first", NOW + 2 * HOUR))]
    current(catalog.load(T))
    again = "99999999-2222-3333-4444-555555555555"

    lender.metadata = {**METADATA, "table-uuid": again}
    lender.lends = [(LOCATION, key("anothers", NOW + HOUR))]
    current(catalog.load(T))

    assert key_of(catalog.lend(T, again)) == "anothers"


def test_credentials_are_lent_on_for_a_table_that_was_not_loaded_here(lender, catalog):
    lender.lends = [(LOCATION, key("first", NOW + HOUR))]

    assert key_of(catalog.lend(T, UUID)) == "first"
    assert key_of(catalog.lend(T, UUID)) == "first"
    assert (lender.loads, lender.renewals) == (1, 0)
    with pytest.raises(UnknownTable):
        catalog.lend(T, "99999999-2222-3333-4444-555555555555")
    with pytest.raises(UnknownTable):
        catalog.lend(("db", "other"), UUID)


def test_what_a_store_refused_is_renewed_once_for_all_who_say_so(lender, catalog):
    lender.lends = [(LOCATION, key("first", NOW + HOUR))]
    refused = fingerprint(catalog.lend(T, UUID))
    lender.lends = [(LOCATION, key("second", NOW + HOUR))]

    assert key_of(catalog.lend(T, UUID, refused)) == "second"
    assert key_of(catalog.lend(T, UUID, refused)) == "second"
    assert key_of(catalog.lend(T, UUID, "of another coordinator")) == "second"
    assert lender.renewals == 1


def test_no_secret_is_told(lender, catalog, caplog):
    caplog.set_level("DEBUG")
    lender.lends = [(LOCATION, key("first", NOW))]
    table = catalog.load(T)
    lender.status = 500

    with pytest.raises(CredentialsUnavailable) as raised:
        current(table)

    assert "hunter2" not in f"{table!r} {table.credentials!r} {raised.value!r} {caplog.text}"
    assert "credentials not renewed" in caplog.text
