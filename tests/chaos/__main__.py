"""Kill workers and coordinators under a load of queries, on an object store that fails, and hold
every answer to the right one.

python -m tests.chaos --minutes 10
python -m tests.chaos --minutes 2 --seed 7
"""

from __future__ import annotations

import argparse
import random
import sys

from tests.chaos.run import Plan, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--seed", type=int, help="what is done when; random unless given")
    parser.add_argument("--clients", type=int, default=8, help="floeberg's clients (8)")
    parser.add_argument("--workers", type=int, default=4, help="worker processes (4)")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    plan = Plan(
        seconds=60 * arguments.minutes,
        seed=seed,
        clients=arguments.clients,
        workers=arguments.workers,
        least_resumed=int(20 * arguments.minutes),
    )
    report = run(plan, say=lambda line: print(line, flush=True))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
