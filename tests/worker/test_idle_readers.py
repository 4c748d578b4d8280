"""Clients that open many streams and read none of them, at a worker with little memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow.flight as fl

from floeberg.protocol.tickets import seal_ticket
from tests.support.gate import now_ms
from tests.support.idle import SMALL_WINDOW, plan_of_doubles, write_doubles
from tests.support.processes import processes
from tests.support.waiting import wait_until

BUDGET = 768 << 20
STREAMS = 60
"""More than the budget takes, at the least that a stream counts for."""
ROWS = 150_000


def test_idle_readers_leave_a_worker_below_its_budget_and_who_finds_no_room_learns_it_at_once(
    tmp_path: Path,
) -> None:
    file = tmp_path / "data.parquet"
    write_doubles(file, ROWS)
    plan = plan_of_doubles(tmp_path, [str(file)], ROWS, file.stat().st_size)
    readers: list[fl.FlightStreamReader] = []
    refusals: list[str] = []
    with processes(tmp_path) as started:
        worker = started.worker(None, "--memory-bytes", str(BUDGET), "--max-streams", "200")
        lasts = now_ms() + 600_000
        ticket = fl.Ticket(seal_ticket(plan, started.keys, principal=None, expires_at_ms=lasts))
        with fl.connect(worker.addresses["location"], generic_options=SMALL_WINDOW) as client:
            for _ in range(STREAMS):
                try:
                    readers.append(client.do_get(ticket))
                except fl.FlightUnavailableError as error:
                    refusals.append(str(error))

            assert len(readers) >= 2
            assert refusals
            assert all("[WORKER_BUSY]" in refusal for refusal in refusals)
            wait_until(
                lambda: all(s["waits_seconds"] > 0 for s in worker.status()["running"]),
                "every stream to wait for its client",
            )
            assert worker.peak_bytes() < BUDGET

            readers.pop().cancel()
            assert sum(chunk.data.num_rows for chunk in readers.pop()) == ROWS
            assert worker.peak_bytes() < BUDGET
            for reader in readers:
                reader.cancel()
