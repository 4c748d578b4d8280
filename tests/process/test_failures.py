from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from floeberg.process.failures import Failures
from floeberg.protocol.errors import BadFilter, UnknownTable
from floeberg.protocol.flight_errors import to_flight


def test_failures_are_counted_by_code_and_raised_on() -> None:
    registry = CollectorRegistry()
    failures = Failures(registry)

    for error in (BadFilter("no"), UnknownTable("x"), to_flight(UnknownTable("y"))):
        with pytest.raises(type(error)), failures.counted():
            raise error
    with failures.counted():
        pass

    assert list(failures.by_code().items()) == [("UNKNOWN_TABLE", 2), ("BAD_FILTER", 1)]
    labels = {"code": "UNKNOWN_TABLE"}
    assert registry.get_sample_value("floeberg_errors_total", labels) == 2


def test_codes_that_no_call_failed_with_yet_are_there_with_zero() -> None:
    registry = CollectorRegistry()

    failures = Failures(registry)

    for code in ("INTERNAL", "CORRUPT_DELETES", "WORKER_BUSY"):
        assert registry.get_sample_value("floeberg_errors_total", {"code": code}) == 0
    assert failures.by_code() == {}
