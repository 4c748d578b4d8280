from __future__ import annotations

import pytest

from floeberg.process.calling import ClientPool
from floeberg.protocol.errors import BadRequest

ONE, OTHER = "grpc://127.0.0.1:1", "grpc://127.0.0.1:2"


def test_a_client_is_lent_to_one_at_a_time_and_kept_for_the_next() -> None:
    pool = ClientPool()
    with pool.lend(ONE) as first, pool.lend(ONE) as second:
        assert first is not second
    with pool.lend(ONE) as again, pool.lend(OTHER) as elsewhere:
        assert again in (first, second)
        assert elsewhere not in (first, second)


def test_few_are_kept_of_places_that_come_and_go() -> None:
    pool = ClientPool(most_idle=2)
    met = []
    for port in range(1, 6):
        with pool.lend(f"grpc://127.0.0.1:{port}") as client:
            met.append(client)

    with pool.lend("grpc://127.0.0.1:5") as last, pool.lend("grpc://127.0.0.1:1") as first:
        assert last is met[4]
        assert first is not met[0]


def test_one_that_failed_is_not_lent_again() -> None:
    pool = ClientPool()
    with pytest.raises(ZeroDivisionError), pool.lend(ONE) as broken:
        raise ZeroDivisionError

    with pool.lend(ONE) as fresh:
        assert fresh is not broken


def test_a_pool_that_is_closed_lends_none() -> None:
    pool = ClientPool()
    with pool.lend(ONE):
        pool.close()

    with pytest.raises(BadRequest, match="closed"), pool.lend(ONE):
        pass
