from __future__ import annotations

import threading

from tests.bench.taxi.clients import asked


def test_so_many_clients_ask_at_once_until_all_answers_are_there() -> None:
    together = threading.Barrier(4)

    found = asked(together.wait, 4, 8)

    assert len(found.seconds) == 8
    assert found.slowest == max(found.seconds)
    assert found.rate == 8 / found.in_all
