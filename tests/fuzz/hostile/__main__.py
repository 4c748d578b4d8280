"""Attack a fleet with tickets, tokens, commands and messages that were tampered with.

python -m tests.fuzz.hostile --examples 100000
python -m tests.fuzz.hostile --seed 7 --first 123 --examples 1
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.fuzz.hostile.attacks import attack
from tests.fuzz.hostile.target import running_target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.hostile", description=__doc__)
    parser.add_argument("--examples", type=int, default=100_000, help="how many attacks")
    parser.add_argument("--seed", type=int, help="what to begin from; random unless given")
    parser.add_argument("--first", type=int, default=0, help="number of the first attack")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    numbers = range(arguments.first, arguments.first + arguments.examples)
    print(f"seed {seed}, {len(numbers)} attacks", flush=True)
    began = shown = time.monotonic()
    failed = 0
    with running_target() as target:
        for done, number in enumerate(numbers, 1):
            made = attack(target, random.Random(f"{seed} {number}"))
            if made.wrong is not None:
                failed += 1
                print(f"attack {number}: {made.wrong}\n  {made.sent}", flush=True)
            now = time.monotonic()
            if now - shown > 10 or done == len(numbers):
                shown = now
                print(f"{done} attacks, {done / (now - began):.0f} a second, {failed} succeeded")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
