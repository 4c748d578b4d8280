"""What a query may take: refused by its plan where that tells, and by workers where it can't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from floeberg.protocol.errors import FloebergError, LimitExceeded
from floeberg.protocol.flight_errors import from_flight
from floeberg.protocol.tickets import StreamLimits, open_ticket
from tests.support.callers import ANN, BOB, bearing, token_file
from tests.support.fleet import local_fleet, read_all, read_endpoint
from tests.support.gate import Gate, now_ms
from tests.support.held import Holdup
from tests.support.lake import TableWriter
from tests.support.waiting import wait_until

UNDECIDED = "amount >= 100"
"""A filter for 600 of the 800 rows, which metadata doesn't count."""


def command(**keys: object) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(json.dumps({"table": "db.orders", **keys}))


@contextmanager
def refused() -> Iterator[list[FloebergError]]:
    """Hold the error of a Flight call within the block."""
    found: list[FloebergError] = []
    with pytest.raises((fl.FlightError, pa.ArrowException)) as raised:
        yield found
    found.append(from_flight(raised.value))
    assert type(found[0]) is LimitExceeded


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"max_query_rows": 799}, "has 800 rows, and a query of yours may have 799 rows"),
        ({"max_query_tasks": 7}, "has 8 tasks, and a query of yours may have 7 tasks"),
        ({"max_query_bytes": 2000}, "of data files, and a query of yours may have 2,000 bytes"),
    ],
)
def test_a_plan_that_shows_too_much_is_refused_with_the_limit_the_value_and_a_remedy(
    warehouse: Path, orders: TableWriter, flags: dict[str, object], told: str
) -> None:
    with (
        local_fleet(warehouse, workers=1, **flags) as fleet,
        fl.connect(fleet.location) as client,
    ):
        with refused() as errors:
            client.get_flight_info(command())

        assert told in str(errors[0])
        assert "narrow the filter" in str(errors[0])
        assert read_all(client.get_flight_info(command(filter="id < 10"))).num_rows == 10


def test_a_plan_of_a_rest_client_is_refused_too(warehouse: Path, orders: TableWriter) -> None:
    with local_fleet(warehouse, workers=0, rest_planning=True, max_query_rows=700) as fleet:
        http = fleet.coordinator.addresses()["http"]
        url = f"{http}/v1/warehouse/namespaces/db/tables/orders/plan"

        answer = httpx.post(url, json={}).json()

    assert "LIMIT_EXCEEDED" in json.dumps(answer)


def test_only_what_a_plan_cannot_tell_is_left_to_workers(
    warehouse: Path, orders: TableWriter
) -> None:
    flags = {"max_query_rows": 300, "max_query_seconds": 60.0}
    with (
        local_fleet(warehouse, workers=1, **flags) as fleet,
        fl.connect(fleet.location) as client,
    ):

        def limits(**asked: object) -> StreamLimits:
            began = now_ms()
            info = client.get_flight_info(command(**asked))
            found = open_ticket(info.endpoints[0].ticket.ticket, fleet.keys, now_ms=now_ms()).limits
            assert found.seconds == 60.0
            assert 0 <= (found.until_ms or 0) - began - 60_000 < 20_000
            return found

        assert limits(filter=UNDECIDED).rows == 300
        assert limits(limit=300).rows is None
        assert limits(filter="amount >= 100 AND id < 200").rows is None  # two files, 200 rows


def test_workers_count_the_rows_of_a_query_over_all_its_streams(
    warehouse: Path, orders: TableWriter
) -> None:
    with (
        local_fleet(warehouse, workers=1, max_query_rows=500) as fleet,
        fl.connect(fleet.location) as client,
    ):
        info = client.get_flight_info(command(filter=UNDECIDED))
        assert len(info.endpoints) > 1

        with refused() as errors:
            read_all(info)

        assert "a query of yours may have 500 rows" in str(errors[0])
        # the count is the query's: another one has its own
        narrower = client.get_flight_info(command(filter="amount >= 200"))
        assert read_all(narrower).num_rows == 400


def test_what_several_workers_have_given_counts_together(
    warehouse: Path, orders: TableWriter
) -> None:
    gate = Gate(rows=1000)
    with (
        local_fleet(warehouse, workers=1, max_query_rows=400, lease_seconds=0.3) as fleet,
        fl.connect(fleet.location) as client,
    ):
        other = fleet.add_worker(gate)
        (endpoint, *_) = client.get_flight_info(command(filter=UNDECIDED)).endpoints
        locations = [at.uri.decode() for at in endpoint.locations]
        given = read_endpoint(endpoint, locations.index(fleet.workers[0].location)).num_rows
        assert 0 < given < 400
        with fl.connect(other.location) as reader:
            stream = reader.do_get(endpoint.ticket)
            rows = 400 - given
            gate.let_through(rows)
            for _ in range(rows):
                stream.read_chunk()

            def is_refused() -> bool:
                nonlocal rows
                rows += 1
                gate.let_through(1)
                try:
                    stream.read_chunk()
                except (fl.FlightError, pa.ArrowException) as error:
                    return type(from_flight(error)) is LimitExceeded
                return False

            wait_until(is_refused, "the second worker to be told what the first one gave")

    assert rows < 400, "by its own count it would have gone on"


def test_a_query_that_has_had_its_time_ends_in_the_middle_of_its_stream(
    warehouse: Path, orders: TableWriter
) -> None:
    gate = Gate(rows=1_000_000)
    with (
        local_fleet(warehouse, workers=0, max_query_seconds=1.0) as fleet,
        fl.connect(fleet.location) as client,
    ):
        fleet.add_worker(gate)
        info = client.get_flight_info(command())
        with fl.connect(fleet.workers[0].location) as reader, refused() as errors:
            stream = reader.do_get(info.endpoints[0].ticket)
            while True:
                gate.let_through(1)
                stream.read_chunk()

        assert "a query of yours may have 1.0 seconds" in str(errors[0])


def test_planning_is_a_part_of_a_query_s_time(warehouse: Path, orders: TableWriter) -> None:
    holdup = Holdup("-m0.avro")
    try:
        with (
            local_fleet(
                warehouse, workers=1, open_storage=holdup.storage, max_query_seconds=0.3
            ) as fleet,
            fl.connect(fleet.location) as client,
        ):
            with refused() as errors:
                client.get_flight_info(command())

            assert "planning alone has taken longer" in str(errors[0])
    finally:
        holdup.release()


def test_limits_are_each_principal_s_own(
    warehouse: Path, orders: TableWriter, tmp_path: Path
) -> None:
    rules = tmp_path / "policies.toml"
    rules.write_text(
        """
        [[rule]]
        principals = ["bob"]
        tables = ["*"]
        rows = "region = 'eu'"

        [[rule]]
        principals = ["*"]
        tables = ["*"]

        [[limit]]
        principals = ["bob"]
        bytes = 10
        """
    )
    flags = {"auth_tokens": token_file(tmp_path), "policies": str(rules)}
    with (
        local_fleet(warehouse, workers=1, **flags) as fleet,
        fl.connect(fleet.location) as client,
    ):
        assert client.get_flight_info(command(), bearing(ANN)).total_records == 800

        with refused() as errors:
            client.get_flight_info(command(), bearing(BOB))

        # what the files hold is not told to who may not read all of them
        assert "the scan reads more than that of data files" in str(errors[0])
