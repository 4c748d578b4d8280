"""Ask a fleet any number of random queries over random lakes, and compare with DuckDB.

    python -m tests.sql.fuzz --examples 1000
    python -m tests.sql.fuzz --seed 7 --lake 12 --question 34

The second asks one question again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.sql.fuzz.asking import QUESTIONS, Tally, ask_a_lake


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sql.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=500, help="how many queries")
    parser.add_argument("--seed", type=int, help="what to begin from; random unless given")
    parser.add_argument("--lake", type=int, help="only this one of the seed's lakes")
    parser.add_argument("--question", type=int, help="only this one of a lake's questions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    numbers = range(QUESTIONS)
    if arguments.question is not None:
        numbers = range(arguments.question, arguments.question + 1)
    lakes: Sequence[int] = range(-(-arguments.examples // QUESTIONS))
    if arguments.lake is not None:
        lakes = [arguments.lake]
    print(f"seed {seed}, {len(lakes)} lakes, {arguments.jobs} processes", flush=True)
    return 1 if _run(seed, lakes, numbers, arguments.jobs).findings else 0


def _run(seed: int, lakes: Sequence[int], numbers: range, jobs: int) -> Tally:
    began = shown = time.monotonic()
    total = Tally()
    for done, (lake, tally) in enumerate(_tallies(seed, lakes, numbers, jobs), 1):
        total.add(tally)
        for finding in tally.findings:
            again = f"python -m tests.sql.fuzz --seed {seed} --lake {lake}"
            print(f"{finding}\n  {again} --question {finding.number}", flush=True)
        now = time.monotonic()
        if now - shown > 10 or done == len(lakes):
            shown = now
            asked = done * len(numbers)
            rate = asked / (now - began)
            print(f"{asked} queries, {rate:.1f} a second, {len(total.findings)} findings")
            print("  " + ", ".join(f"{what}: {n}" for what, n in sorted(total.seen.items())))
            sys.stdout.flush()
    for reason, times in total.refusals.most_common():
        print(f"  refused {times} times: {reason}")
    return total


def _tallies(
    seed: int, lakes: Sequence[int], numbers: range, jobs: int
) -> Iterator[tuple[int, Tally]]:
    if len(lakes) == 1 or jobs == 1:
        for lake in lakes:
            yield lake, ask_a_lake(seed, lake, numbers)
        return
    # not forked: pyarrow's threads do not survive it
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawning) as pool:
        waiting = {pool.submit(ask_a_lake, seed, lake, numbers): lake for lake in lakes}
        for done in as_completed(waiting):
            yield waiting.pop(done), done.result()


if __name__ == "__main__":
    sys.exit(main())
