from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Counter

from floeberg.process.http import HttpService, new_registry
from floeberg.protocol.errors import BadConfig


@pytest.fixture
def problems() -> dict[str, str | None]:
    return {"coordinator": None}


@pytest.fixture
def service(problems: dict[str, str | None]) -> Iterator[HttpService]:
    registry = new_registry()
    Counter("floeberg_rows", "Rows", registry=registry).inc(7)
    service = HttpService(registry, lambda: problems)
    service.start()
    yield service
    service.stop()


def test_port_zero_is_a_port_of_its_own_that_is_reported(service: HttpService) -> None:
    assert service.port > 0
    assert httpx.get(f"{service.uri}/healthz").json() == {"status": "ok"}


def test_readiness_says_what_is_missing(
    service: HttpService, problems: dict[str, str | None]
) -> None:
    ready = httpx.get(f"{service.uri}/readyz")
    problems["coordinator"] = "not registered yet"
    unready = httpx.get(f"{service.uri}/readyz")

    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    assert unready.status_code == 503
    assert unready.json()["checks"] == {"coordinator": "not registered yet"}


def test_metrics_are_this_service_s_own(service: HttpService) -> None:
    text = httpx.get(f"{service.uri}/metrics").text

    assert "floeberg_rows_total 7.0" in text
    assert "process_resident_memory_bytes" in text


def test_stopping_ends_the_thread_and_frees_the_port() -> None:
    others = set(threading.enumerate())
    service = HttpService(new_registry(), dict)
    service.start()
    service.stop()

    assert "floeberg-http" not in {t.name for t in set(threading.enumerate()) - others}
    again = HttpService(new_registry(), dict, port=service.port)
    again.start()
    again.stop()


def test_a_taken_port_is_named(service: HttpService) -> None:
    with pytest.raises(BadConfig, match=f"'http_port': 127.0.0.1:{service.port} cannot be bound"):
        HttpService(new_registry(), dict, port=service.port).start()


def test_stopping_what_never_started_is_harmless() -> None:
    HttpService(new_registry(), dict).stop()
