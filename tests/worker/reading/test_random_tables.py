"""Tables with a random life read as the plain reader reads them, however the read is cut."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from floeberg.protocol.plans import ReadOptions
from tests.support.plain import multiset, plain_rows
from tests.support.random_tables import RandomTable
from tests.support.reads import cut_at, plan_of, read
from tests.support.reference import PlainScan


@pytest.mark.parametrize("seed", range(60))
def test_reads_what_the_plain_reader_reads(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    maker = RandomTable(rng, tmp_path / "t")
    table = maker.live(rng.randint(1, 8))
    plainly = PlainScan.of(table.directory)
    everything = list(plainly.rows())

    for _ in range(4):
        filter_, select = maker.scan()
        options = ReadOptions(batch_size=rng.choice([None, 3]), prune=rng.random() < 0.8)
        cut = cut_at(*rng.sample(range(1, 6000), 3)) if rng.random() < 0.5 else None
        selected = None if select is None else tuple(select)

        found = read(plan_of(table, filter_, options, cut, select=selected))

        expected = plainly.answer(everything, filter_, select)
        assert multiset(plain_rows(found)) == multiset(expected), (filter_, select)
