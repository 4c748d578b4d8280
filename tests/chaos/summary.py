"""What a run came to, as Markdown that can be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.chaos.tally import Kind, Outcome, Tally

_ERRORS_SHOWN = 12


def summary(
    title: str, tally: Tally, done_to_fleet: Mapping[str, int], requests: Mapping[str, int]
) -> list[str]:
    """Return the lines: a table of the clients' queries, one of what was done to them, and the
    commonest errors of stock clients."""
    kinds = [kind for kind in Kind if tally.asked(kind)]
    lines = [title, "", *_table(["clients", *kinds], _by_client(tally, kinds)), ""]
    lines += [*_table(["over all", "count"], _over_all(tally, done_to_fleet, requests)), ""]
    if tally.errors:
        lines += ["Errors, the commonest first:", ""]
        lines += [
            f"- {count} x `{told}`" for told, count in tally.errors.most_common(_ERRORS_SHOWN)
        ]
        lines.append("")
    if tally.violations:
        lines += ["What must not be:", "", *(f"- {what}" for what in tally.violations), ""]
    lines.append(f"{len(tally.violations)} violations" if tally.violations else "No violation.")
    return lines


def _by_client(tally: Tally, kinds: Sequence[Kind]) -> Iterable[Sequence[object]]:
    yield "queries", *(tally.asked(kind) for kind in kinds)
    yield "right", *(f"{100 * tally.right(kind) / tally.asked(kind):.1f}%" for kind in kinds)
    for outcome in Outcome:
        yield f"{outcome}, queries", *(tally.outcomes[kind, outcome] for kind in kinds)
    for share, said in ((0.5, "half"), (0.99, "99%"), (1.0, "all")):
        yield f"{said} within", *(f"{tally.seconds(kind, share):.1f} s" for kind in kinds)
    late = tally.late
    yield f"longer than {tally.longest_seconds:.0f} s", *(late[kind] for kind in kinds)


def _over_all(
    tally: Tally, done_to_fleet: Mapping[str, int], requests: Mapping[str, int]
) -> Iterable[Sequence[object]]:
    yield "streams cut after delivered batches, and resumed", tally.resumed
    yield "rows compared", f"{tally.rows:,}"
    for done, count in done_to_fleet.items():
        yield done, count
    yield "storage requests", f"{sum(requests.values()):,}"
    for fate, count in requests.items():
        if fate != "passed":
            yield f"of these: {fate}", count
    yield "times that the machine stood still", len(tally.stood_still)
    still = sum(until - since for since, until in tally.stood_still)
    yield "time forgiven for that", f"{still:.0f} s"


def _table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
