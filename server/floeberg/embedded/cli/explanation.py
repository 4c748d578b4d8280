"""Show a person at a terminal how a scan is planned."""

from __future__ import annotations

from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable

from floeberg.embedded.cli.terminal import plain
from floeberg.protocol.actions import ExplainedEndpoint, Explanation
from floeberg.protocol.expressions.json_form import expression_from_json
from floeberg.protocol.expressions.model import FALSE, TRUE
from floeberg.protocol.expressions.text import format_filter
from floeberg.protocol.types import Json

_RESIDUALS_PRINTED = 10


def show_explanation(found: Explanation, console: Console) -> None:
    """Print what was looked at and pruned level by level, then what is read, then the times.

    What is nothing at all is left out.
    """
    console.print(_head(found))
    console.print(_levels(found))
    if found.deletes:
        console.print(_deletes(found))
    if found.residuals:
        console.print(_residuals(found))
    if found.endpoints:
        console.print(_endpoints(found.endpoints))
    elif found.endpoints is not None:
        console.print("no endpoints: no worker is ready")
    console.print(_steps(found))


def _head(found: Explanation) -> RichTable:
    facts = RichTable.grid(padding=(0, 2))
    if found.rows is None:
        rows = f"at most {found.rows_at_most:,}; only reading can tell"
    else:
        rows = f"{found.rows:,} by metadata"
    for label, value in (
        ("table", found.table),
        ("snapshot", found.snapshot_id if found.snapshot_id is not None else "none"),
        ("filter", _filter(found.filter, "none")),
        ("read", f"{_counted(found.tasks, 'task')} of {_counted(found.files, 'file')}"),
        ("bytes", f"{found.bytes:,} of data files"),
        ("rows", rows),
        ("manifests", _manifests(found)),
    ):
        if value is not None:
            facts.add_row(plain(label, "bold"), plain(value))
    return facts


def _manifests(found: Explanation) -> str:
    if found.snapshot_id is None:
        return "none"
    if expression_from_json(found.filter) == FALSE:
        return "none was looked at: no row can pass the filter"
    of_list = "cached" if found.manifest_list_cached else "read"
    from_disk = f" {found.manifests_from_disk:,} from disk," if found.manifests_from_disk else ""
    return (
        f"{found.manifests_cached:,} cached,{from_disk} {found.manifests_fetched:,} fetched,"
        f" their list {of_list}; {found.fetched_bytes:,} bytes fetched"
    )


def _levels(found: Explanation) -> RichTable:
    table = RichTable("level", _number("in all"), "ruled out by", _number("kept"))
    for level in found.levels:
        causes = [f"{cause} {n:,}" for cause, n in level.pruned.items() if n]
        table.add_row(level.name, f"{level.total:,}", ", ".join(causes), f"{level.kept:,}")
    return table


def _deletes(found: Explanation) -> RichTable:
    table = RichTable("deletes", _number("files"), _number("of data files"), _number("records"))
    for kind in found.deletes:
        table.add_row(kind.kind, f"{kind.files:,}", f"{kind.data_files:,}", f"{kind.records:,}")
    return table


def _residuals(found: Explanation) -> RichTable:
    table = RichTable("left of the filter", _number("files"))
    printed = found.residuals[:_RESIDUALS_PRINTED]
    for entry in printed:
        table.add_row(plain(_filter(entry.residual, "nothing")), f"{entry.files:,}")
    others = found.distinct_residuals - len(printed)
    if others:
        files = found.files - sum(entry.files for entry in printed)
        table.add_row(f"and {others:,} more", f"{files:,}")
    return table


def _endpoints(endpoints: tuple[ExplainedEndpoint, ...]) -> RichTable:
    table = RichTable(
        _number("endpoint"), _number("tasks"), _number("bytes"), _number("ticket bytes"), "read at"
    )
    for place, endpoint in enumerate(endpoints):
        table.add_row(
            f"{place}",
            f"{endpoint.tasks:,}",
            f"{endpoint.bytes:,}",
            f"{endpoint.ticket_bytes:,}",
            plain(", ".join(endpoint.locations) or "the coordinator"),
        )
    return table


def _steps(found: Explanation) -> RichTable:
    table = RichTable("step", _number("ms"))
    for step in found.steps:
        table.add_row(step.name, f"{step.seconds * 1000:,.1f}")
    table.add_section()
    table.add_row("in all", f"{sum(step.seconds for step in found.steps) * 1000:,.1f}")
    return table


def _filter(form: Json, of_true: str) -> str:
    expression = expression_from_json(form)
    return of_true if expression == TRUE else format_filter(expression)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(header: str) -> Column:
    return Column(header, justify="right")
