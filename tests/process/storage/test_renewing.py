"""A read goes on when its credentials end, on a real S3 store that refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from floeberg.process.storage import StorageCache, open_storage
from floeberg.process.storage.credentials import earliest_expiry_ms
from floeberg.process.storage.remote import RemoteStorage
from floeberg.process.storage.renewals import Ends
from floeberg.process.storage.renewing import RenewingStorage
from floeberg.protocol.errors import (
    AccessDenied,
    CredentialsUnavailable,
    ExpiredCredentials,
    FloebergError,
    MissingFile,
)
from floeberg.protocol.storage import Storage, StorageConfig, StorageCredential
from tests.support.lending import ExpiringStore, expiring_store, lent_bucket, s3_identity
from tests.support.services import LENT, LENT_BUCKET, STRANGER, Seaweed

ROOT = f"s3://{LENT_BUCKET}/data/renewing"
X = f"{ROOT}/x"


@dataclass
class Source:
    """Has one set of credentials after the other."""

    left: list[StorageConfig | FloebergError] = field(default_factory=list)
    ended: bool = False
    refused: int = 0

    def current(self, held: StorageConfig, ends: Ends = earliest_expiry_ms) -> StorageConfig:
        if not self.ended:
            return held
        self.ended = False
        return self._next(held)

    def after_refusal(self, refused: StorageConfig) -> StorageConfig:
        self.refused += 1
        return self._next(refused)

    def _next(self, held: StorageConfig) -> StorageConfig:
        found = self.left.pop(0) if self.left else held
        if isinstance(found, FloebergError):
            raise found
        return found


@pytest.fixture(scope="module")
def store(seaweed: Seaweed) -> Iterator[ExpiringStore]:
    lent_bucket(seaweed)
    seaweed.put(LENT_BUCKET, {"data/renewing/x": b"0123456789", "data/renewing/y": b"abc"})
    with expiring_store(seaweed) as store:
        yield store


@pytest.fixture
def config(store: ExpiringStore) -> StorageConfig:
    store.expired.clear()
    return lent(store, "data")


def lent(store: ExpiringStore, *names: str) -> StorageConfig:
    credentials = tuple(
        StorageCredential(f"{ROOT}{'/' * i}", s3_identity(LENT[name]))
        for i, name in enumerate(names)
    )
    return StorageConfig(store.properties, credentials=credentials)


def test_every_request_that_is_refused_is_made_again_with_others(
    store: ExpiringStore, config: StorageConfig
):
    for ask, expected in (
        (lambda s: s.read(X), b"0123456789"),
        (lambda s: s.read_ranges(X, [(2, 3), (8, 9)]), [b"234", b"89"]),
        (lambda s: s.read_many([(X, [(0, 2)])]), [[b"01"]]),
        (lambda s: s.size(X), 10),
        (lambda s: s.open(X).read(), b"0123456789"),
    ):
        store.expired.clear()
        source = Source([lent(store, "data-again")])
        storage = RenewingStorage(config, StorageCache(), source)
        assert ask(storage) == expected
        store.expired.add(LENT["data"].access_key)
        assert ask(storage) == expected
        assert source.refused == 1
        assert ask(storage) == expected
        assert source.refused == 1


@pytest.mark.parametrize("library", ["obstore", "s3fs"])
def test_a_token_whose_time_is_over_is_told_as_such_whatever_is_asked(
    store: ExpiringStore, library: str
):
    store.expired.clear()
    properties = {**store.properties, **s3_identity(LENT["data"])}
    storage: Storage = RemoteStorage("s3", properties)
    if library == "obstore":
        storage = open_storage(StorageConfig(properties))
    assert storage.size(X) == 10
    store.expired.add(LENT["data"].access_key)

    ranges: Callable[[str], object] = lambda at: storage.read_ranges(at, [(0, 1)])  # noqa: E731
    for ask in (storage.read, storage.size, storage.open, ranges):
        with pytest.raises(ExpiredCredentials, match=r"x \(ExpiredToken\)"):
            ask(X)


def test_an_open_file_reads_on(store: ExpiringStore, config: StorageConfig):
    storage = RenewingStorage(config, StorageCache(), Source([lent(store, "data-again")]))

    with storage.open(X) as file:
        assert file.read(4) == b"0123"
        store.expired.add(LENT["data"].access_key)
        assert file.read() == b"456789"


def test_of_requests_together_those_alone_are_made_again_that_were_refused(
    store: ExpiringStore, config: StorageConfig
):
    narrow = s3_identity(LENT["data-again"])
    other = StorageCredential(f"{ROOT}/y", narrow)
    both = StorageConfig(config.properties, credentials=(*config.credentials, other))
    fresh = lent(store, "data-again")
    storage = RenewingStorage(both, StorageCache(), Source([fresh]))
    store.expired.add(LENT["data"].access_key)
    before = store.requests

    found = storage.read_many([(f"{ROOT}/y", [(0, 1)]), (X, [(0, 1)]), (f"{ROOT}/z", [(0, 1)])])

    assert found[:2] == [[b"a"], [b"0"]]
    assert isinstance(found[2], MissingFile)
    assert store.requests - before == 5


def test_credentials_that_end_soon_are_replaced_before_they_are_used(
    store: ExpiringStore, config: StorageConfig
):
    source = Source([lent(store, "data-again")], ended=True)
    store.expired.add(LENT["data"].access_key)

    assert RenewingStorage(config, StorageCache(), source).read(X) == b"0123456789"
    assert source.refused == 0


def test_where_there_are_no_others_the_stores_own_refusal_is_told(
    store: ExpiringStore, config: StorageConfig
):
    for left in ([], [ExpiredCredentials("none")], [lent(store, "data"), lent(store, "data")]):
        storage = RenewingStorage(config, StorageCache(), Source(list(left)))
        store.expired.add(LENT["data"].access_key)
        for ask in (lambda s: s.read(X), lambda s: s.size(X)):
            with pytest.raises(ExpiredCredentials, match=r"x \(ExpiredToken\)") as raised:
                ask(storage)
            assert "data-secret" not in str(raised.value)
        [error, other] = storage.read_many([(X, [(0, 1)]), (f"{ROOT}/y", [(0, 1)])])
        assert isinstance(error, ExpiredCredentials)
        assert "renewing/y" in str(other)


def test_where_nobody_can_be_asked_that_is_told_of_what_has_expired(
    store: ExpiringStore, config: StorageConfig
):
    away = CredentialsUnavailable("nobody is there")
    store.expired.add(LENT["data"].access_key)

    with pytest.raises(CredentialsUnavailable, match="nobody is there"):
        RenewingStorage(config, StorageCache(), Source([away])).read(X)
    [error] = RenewingStorage(config, StorageCache(), Source([away])).read_many([(X, [(0, 1)])])
    assert isinstance(error, CredentialsUnavailable)


def test_what_a_policy_refuses_is_refused_whether_somebody_can_be_asked_or_not(
    seaweed: Seaweed, store: ExpiringStore
):
    stranger = StorageConfig(seaweed.s3_properties(STRANGER))
    source = Source([CredentialsUnavailable("nobody is there")])

    with pytest.raises(AccessDenied, match="policy"):
        RenewingStorage(stranger, StorageCache(), source).read(X)


def test_where_a_copy_is_stays_the_readers_own(store: ExpiringStore, config: StorageConfig):
    rebased = StorageConfig(config.properties, {"s3://written": ROOT})
    with_key = StorageConfig({**store.properties, **s3_identity(LENT["data-again"])})
    storage = RenewingStorage(rebased, StorageCache(), Source([with_key], ended=True))

    assert storage.read("s3://written/x") == b"0123456789"


def test_local_files_need_no_credentials(tmp_path, config: StorageConfig):
    (tmp_path / "x").write_bytes(b"here")
    source = Source([ExpiredCredentials("none")], ended=True)
    storage = RenewingStorage(config, StorageCache(), source)

    assert storage.read(f"file://{tmp_path}/x") == b"here"
    assert storage.read_many([(f"{tmp_path}/x", [(0, 2)])]) == [[b"he"]]
    assert storage.open(f"{tmp_path}/x").read() == b"here"
    assert storage.list(str(tmp_path)) == ["x"]
    assert storage.is_directory(str(tmp_path))
