"""Cut a plan into endpoints, and say which worker reads each and who may stand in.

The answer is a function of the tasks' sizes and the workers, so that two calls for the same
scan give the same endpoints. Each endpoint is a contiguous run of the plan: endpoint after
endpoint is plan order. Cutting works on bytes of data file; a worker's share follows its
capacity.

There are few endpoints, a small multiple of the workers, because some clients (the ADBC driver)
open every endpoint at once; and at most `MAX_LOCATIONS` workers are named in one answer,
because that driver closes its oldest connection, with a stream running on it, beyond that
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise

from floeberg.protocol.manifests.columns import Int64s
from floeberg.server.fleet.membership import Worker
from floeberg.server.planning.packing import Weights

MAX_LOCATIONS = 20

# A plan is cut finer only while the busiest worker has more than this many times the bytes of
# the idlest.
_EVEN_ENOUGH = 1.25


@dataclass(frozen=True, slots=True)
class Placement:
    """An endpoint: tasks `first` up to `stop` of the plan, and the workers that may read them,
    first choice first.
    """

    first: int
    stop: int
    workers: tuple[Worker, ...]


def place(
    sizes: Sequence[int] | Int64s,
    workers: Sequence[Worker],
    *,
    full: Sequence[Worker] = (),
    affinity: Sequence[str] = (),
    endpoints_per_worker: tuple[int, int] = (2, 4),
    fallbacks: int = 2,
    one_endpoint: bool = False,
) -> tuple[Placement, ...]:
    """Return the endpoints of a plan whose tasks have `sizes` bytes, in plan order.

    An empty plan has one endpoint without tasks, so that whoever reads the endpoints gets the
    schema. No other endpoint is empty: there are never more than tasks. `workers` holds at
    least one. `full` are workers that have no room now: they stand in where there are no
    others, and are no first choice. `affinity` names each task's data file: with all else equal
    a file goes to the same worker in every scan. `endpoints_per_worker` is the range for how
    finely the plan is cut: the smallest number that spreads the bytes evenly. `one_endpoint` is
    for a limit, which no union of endpoints could keep.

    >>> two = [Worker("a", "grpc://a:1"), Worker("b", "grpc://b:1")]
    >>> [(p.first, p.stop, p.workers[0].worker_id) for p in place([10, 10, 10, 10], two)]
    [(0, 1, 'b'), (1, 2, 'a'), (2, 3, 'a'), (3, 4, 'b')]
    """
    assert workers, "placement needs a worker"
    weights = Weights(sizes)
    keys = affinity or range(len(sizes))
    first_key = str(keys[0]) if len(keys) else ""
    named = rank(workers, first_key)[:MAX_LOCATIONS]
    last = rank(full, first_key)[: MAX_LOCATIONS - len(named)]
    if one_endpoint or not len(weights):
        return (Placement(0, len(weights), tuple([*named, *last][: 1 + fallbacks])),)

    fewest, most = endpoints_per_worker
    best, best_ratio = _spread(weights, len(named) * fewest, keys, named)
    for each in range(fewest + 1, most + 1):
        if best_ratio <= _EVEN_ENOUGH or len(best) == len(weights):  # or there is nothing to cut
            break
        finer, ratio = _spread(weights, len(named) * each, keys, named)
        if ratio < best_ratio:
            best, best_ratio = finer, ratio
    return tuple(
        Placement(
            first, stop, (chosen, *_stand_ins(chosen, named, last, str(keys[first]), fallbacks))
        )
        for first, stop, chosen in best
    )


def _spread(
    weights: Weights, most: int, keys: Sequence[str] | range, workers: Sequence[Worker]
) -> tuple[list[tuple[int, int, Worker]], float]:
    """Cut the tasks into at most `most` runs of neighbours, about equally heavy, and give each to a
    worker, the heaviest run first to the one with least for its capacity.

    Returns the runs in plan order with their workers, and how many times the least share the
    greatest is.
    """
    runs = list(pairwise([0, *accumulate(weights.packed(most))]))
    heft = [weights.between(first, stop) for first, stop in runs]
    share = dict.fromkeys((w.worker_id for w in workers), 0.0)
    chosen: dict[int, Worker] = {}
    for i in sorted(range(len(runs)), key=lambda i: (-heft[i], i)):
        key = str(keys[runs[i][0]])

        def burden(worker: Worker, size: int = heft[i], key: str = key) -> tuple[float, int, str]:
            load = share[worker.worker_id] + size / max(worker.capacity, 1)
            return load, -_score(worker.location, key), worker.worker_id

        worker = min(workers, key=burden)
        share[worker.worker_id] += heft[i] / max(worker.capacity, 1)
        chosen[i] = worker
    least, greatest = min(share.values()), max(share.values())
    ratio = greatest / least if least else float("inf")
    return [(a, b, chosen[i]) for i, (a, b) in enumerate(runs)], ratio


def _stand_ins(
    chosen: Worker, workers: Sequence[Worker], last: Sequence[Worker], key: str, count: int
) -> tuple[Worker, ...]:
    return tuple(w for w in [*rank(workers, key), *rank(last, key)] if w != chosen)[:count]


def rank(workers: Sequence[Worker], key: str) -> list[Worker]:
    """Return the workers in the order in which they are preferred for `key` (rendezvous
    hashing).
    """
    return sorted(workers, key=lambda w: (-_score(w.location, key), w.worker_id))


@lru_cache(maxsize=1 << 12)  # a plan asks for each several times
def _score(location: str, key: str) -> int:
    raw = blake2b(f"{location}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(raw.digest(), "big")
