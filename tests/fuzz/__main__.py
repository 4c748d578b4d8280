"""Compare floeberg with the plain reader on any number of random tables.

    python -m tests.fuzz --examples 1000
    python -m tests.fuzz --seed 7 --example 123

The second makes one example again, shows its case made small, and what is wrong with it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from tests.fuzz.campaign import command, failures
from tests.fuzz.cases import Case
from tests.fuzz.running import Finding, finding, generated
from tests.fuzz.showing import source_of
from tests.fuzz.shrinking import shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=500, help="how many tables")
    parser.add_argument("--seed", type=int, help="what to begin from; random unless given")
    parser.add_argument("--example", type=int, help="only this one of the seed's examples")
    parser.add_argument("--first", type=int, default=0, help="number of the first example")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--shrink", type=float, default=120.0, help="seconds for making it small")
    parser.add_argument("--keep-going", action="store_true", help="list every failing example")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    if arguments.example is not None:
        return _show(seed, arguments.example, arguments.shrink)
    numbers = range(arguments.first, arguments.first + arguments.examples)
    print(f"seed {seed}, {len(numbers)} examples, {arguments.jobs} processes", flush=True)
    failed = _run(seed, numbers, arguments.jobs, arguments.keep_going)
    if failed and not arguments.keep_going:
        return _show(seed, failed[0], arguments.shrink)
    return 1 if failed else 0


def _run(seed: int, numbers: range, jobs: int, keep_going: bool) -> list[int]:
    """Return the numbers of the examples that fail."""
    started = shown = time.monotonic()
    failed: list[int] = []
    for done, (number, what) in enumerate(failures(seed, numbers, jobs), 1):
        if what is not None:
            failed.append(number)
            print(f"example {number}: {what}", flush=True)
        now = time.monotonic()
        is_last = done == len(numbers) or (failed and not keep_going)
        if now - shown > 10 or is_last:
            shown = now
            rate = done / (now - started)
            print(f"{done} examples, {rate:.1f} a second, {len(failed)} failed", flush=True)
        if is_last:
            break
    return failed


def _show(seed: int, number: int, seconds: float) -> int:
    case, found = generated(seed, number)
    if found is None:
        print(f"example {number} of seed {seed} is fine")
        return 0
    print(f"example {number}: {found.what}; making it small", flush=True)
    small = shrunk(case, lambda c: _fails_alike(c, found), seconds)
    print(source_of(small))
    again = finding(small) or found
    print(again.detail)
    print(command(seed, number))
    return 1


def _fails_alike(case: Case, found: Finding) -> bool:
    try:
        again = finding(case)
    except Exception:  # so much is left out that there is no table, or no plain answer
        return False
    return again is not None and again.what == found.what


if __name__ == "__main__":
    sys.exit(main())
