"""A real store behind a proxy that fails: what may pass is tried again, nothing short is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from floeberg.process.storage.remote import RemoteStorage
from floeberg.process.storage.s3 import s3_options
from floeberg.process.storage.s3_storage import S3Storage
from floeberg.protocol.errors import AccessDenied, FloebergError, MissingFile, StorageUnavailable
from floeberg.protocol.storage import Storage
from tests.chaos.faults import CALM, Fault, FaultProxy, Odds, fault_proxy
from tests.support.services import STRANGER, Seaweed

AT = "s3://failing-store/dir/x"
BODY = bytes(range(256)) * 4_000
RANGES = [(0, 1_000), (700_000, 300_000)]

IN_BODY = (Fault.RESET_IN_BODY, Fault.STALL_IN_BODY, Fault.TRUNCATE)
BEFORE = (Fault.INTERNAL_ERROR, Fault.SLOW_DOWN, Fault.RESET, Fault.STALL)


@pytest.fixture(scope="module")
def proxy(seaweed: Seaweed) -> Iterator[FaultProxy]:
    seaweed.make_bucket("failing-store")
    seaweed.put("failing-store", {"dir/x": BODY})
    port = urlsplit(seaweed.s3_endpoint).port
    assert port is not None
    with fault_proxy(port, seed=1) as proxy:
        yield proxy


@pytest.fixture(params=["obstore", "s3fs"])
def open_store(
    seaweed: Seaweed, proxy: FaultProxy, request: pytest.FixtureRequest
) -> Iterator[Callable[[dict[str, str]], Storage]]:
    def no_rest() -> Storage:
        raise AssertionError("this is not for s3fs")

    def open_store(credentials: dict[str, str]) -> Storage:
        properties = {
            **credentials,
            "s3.endpoint": f"http://127.0.0.1:{proxy.port}",
            "s3.request-timeout": "0.3",
        }
        if request.param == "obstore":
            return S3Storage(properties, no_rest)
        return RemoteStorage("s3", properties)

    yield open_store
    proxy.set(CALM)


@pytest.fixture
def store(seaweed: Seaweed, open_store: Callable[[dict[str, str]], Storage]) -> Storage:
    return open_store(seaweed.s3_properties())


def requests(proxy: FaultProxy, odds: Odds) -> int:
    """Set the odds, and return how many requests there were so far."""
    return sum(proxy.set(odds).values())


@pytest.mark.parametrize("fault", [*BEFORE, *IN_BODY])
def test_what_fails_twice_is_had_all_the_same(
    proxy: FaultProxy, store: Storage, fault: Fault
) -> None:
    twice = Odds({fault: 1.0}, at_most=2)
    before = proxy.set(twice)

    assert store.read(AT) == BODY
    proxy.set(twice)
    assert store.read_ranges(AT, RANGES) == [BODY[a : a + n] for a, n in RANGES]

    assert proxy.set(twice)[fault] == before.get(fault, 0) + 4
    if fault in BEFORE:
        assert store.size(AT) == len(BODY)


def test_a_body_that_always_ends_early_is_told_after_some_attempts(
    proxy: FaultProxy, store: Storage
) -> None:
    before = requests(proxy, Odds({Fault.TRUNCATE: 1.0}))

    with pytest.raises(StorageUnavailable, match=AT):
        store.read(AT)

    assert 3 <= requests(proxy, CALM) - before <= 4


def test_a_refusal_and_an_absence_are_told_at_once(
    seaweed: Seaweed, proxy: FaultProxy, open_store: Callable[[dict[str, str]], Storage]
) -> None:
    cases: list[tuple[Storage, str, type[FloebergError], str]] = [
        (open_store(seaweed.s3_properties(STRANGER)), AT, AccessDenied, "their policy"),
        (open_store(seaweed.s3_properties()), f"{AT}-gone", MissingFile, "restore it"),
    ]
    for storage, location, error, remedy in cases:
        before = requests(proxy, CALM)

        with pytest.raises(error, match=location) as raised:
            storage.read_ranges(location, [(0, 10)])

        assert remedy in str(raised.value)
        assert requests(proxy, CALM) == before + 1


def test_a_connection_may_say_nothing_for_ten_seconds() -> None:
    assert s3_options({})["config_kwargs"]["read_timeout"] == 10
