"""Ask floeberg a case's questions, and the plain reader, and compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from floeberg.embedded.options import ScanOptions
from floeberg.embedded.scan import TableScan
from floeberg.embedded.table import Table, open_table
from floeberg.process.background import Background
from floeberg.process.storage import open_storage
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.expressions.text import format_filter
from floeberg.protocol.plans import ReadOptions, ReadPlan, ResumePlace
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.storage import StorageConfig
from floeberg.protocol.tickets import encode_plan, open_ticket, seal_encoded, with_resume
from floeberg.server.planning import plan_files
from floeberg.worker.files.windows import Ahead
from floeberg.worker.reading import to_batches_for_tasks
from tests.fuzz.building import LOCATION
from tests.fuzz.cases import Question
from tests.fuzz.names import columns_by_id, filter_json, select_names
from tests.support.plain import Json, Row, hashable, multiset, plain_rows
from tests.support.reads import CountingStorage
from tests.support.reference import PlainScan

AHEAD = Ahead(Background(4, "fuzz-fetch"))
KEYRING = Keyring.generate(lambda size: bytes(size))
_MOST_SHOWN = 3


class Mismatch(AssertionError):
    """floeberg and the plain reader disagree, or floeberg with itself. `what` names the check."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(f"{what}: {detail}")
        self.what = what


def snapshot_arguments(metadata: Json, snapshot: tuple[str, Any] | None) -> dict[str, Any]:
    """Return how the plain reader is told of a question's snapshot; numbers wrap around."""
    match snapshot:
        case ("ref", name) if name in metadata.get("refs", {}):
            return {"ref": name}
        case ("snapshot", number) if metadata.get("snapshots"):
            snapshots = metadata["snapshots"]
            return {"snapshot_id": snapshots[number % len(snapshots)]["snapshot-id"]}
        case ("as_of", number) if metadata.get("snapshot-log"):
            log = metadata["snapshot-log"]
            return {"as_of_ms": log[number % len(log)]["timestamp-ms"] + 1}
        case _:
            return {}


@dataclass
class Asked:
    """One question, in the words of both readers, and what the plain reader answers."""

    question: Question
    scan: TableScan
    unfiltered: TableScan
    options: ScanOptions
    plain: PlainScan
    everything: Sequence[Row]
    filter: Json
    select: list[str] | None

    @property
    def case_sensitive(self) -> bool:
        return self.question.letters == "exact"

    def expected(self, filter_: Json | None = None) -> list[Row]:
        return self.plain.answer(
            self.everything, filter_ or self.filter, self.select, self.case_sensitive
        )

    def read(self, scan: TableScan | None = None, **options: Any) -> pa.Table:
        return (scan or self.scan).to_table(replace(self.options, **options))


class Checker:
    """Asks questions of one table. Plain answers are kept a snapshot."""

    def __init__(self, directory: Path, metadata: Json, metadata_path: Path) -> None:
        self.rebase = {LOCATION: str(directory)}
        self.path = metadata_path
        self.metadata = metadata
        # read as an object store is, so that `overlap_io` makes a difference
        storage = CountingStorage(open_storage(StorageConfig(rebase=self.rebase)), is_far=True)
        self.table: Table = open_table(str(metadata_path), rebase=self.rebase, io=storage)
        self._plain: dict[Any, tuple[PlainScan, list[Row]]] = {}

    def plain(self, snapshot: tuple[str, Any] | None) -> tuple[PlainScan, list[Row]]:
        """Return the plain reader's scan of a snapshot, and all its rows."""
        if snapshot not in self._plain:
            arguments = snapshot_arguments(self.metadata, snapshot)
            scan = PlainScan.of(self.path, rebase=self.rebase, **arguments)
            self._plain[snapshot] = scan, list(scan.rows())
        return self._plain[snapshot]

    def ask(self, question: Question) -> Asked:
        plain, rows = self.plain(question.snapshot)
        columns = columns_by_id(plain.schema, question.letters)
        wanted = filter_json(question.filter, columns)
        select = select_names(question, columns)
        scan = self.table.scan()
        match snapshot_arguments(self.metadata, question.snapshot):
            case {"ref": name}:
                scan = scan.use_ref(name)
            case {"snapshot_id": snapshot_id}:
                scan = scan.use_snapshot(snapshot_id)
            case {"as_of_ms": time_ms}:
                scan = scan.as_of(time_ms)
        if select is not None:
            scan = scan.select(select)
        if question.letters != "exact":
            scan = scan.case_insensitive()
        options = ScanOptions(
            batch_size=question.batch_size,
            split_size=question.split_size,
            num_workers=question.num_workers,
            overlap_io=question.overlap_io,
            prune=question.prune,
        )
        asked = Asked(question, scan, scan, options, plain, rows, wanted, select)
        return replace(asked, scan=filtered(asked, wanted))

    def check(self, question: Question) -> None:
        """Raise `Mismatch` for an answer that isn't right."""
        asked = self.ask(question)
        check_rows(asked)
        for name in question.also:
            CHECKS[name](asked)


def filtered(asked: Asked, wanted: Json) -> TableScan:
    filter_: Any = format_filter(as_expression(wanted)) if asked.question.as_text else wanted
    return asked.unfiltered if wanted == ["true"] else asked.unfiltered.filter(filter_)


def same_rows(what: str, found: pa.Table, expected: Sequence[Row]) -> None:
    ours, theirs = multiset(plain_rows(found)), multiset(expected)
    if ours != theirs:
        extra, missing = list((ours - theirs).elements()), list((theirs - ours).elements())
        raise Mismatch(
            what,
            f"{found.num_rows} rows instead of {len(expected)};"
            f" {len(extra)} should not be there, such as {extra[:_MOST_SHOWN]};"
            f" {len(missing)} are missing, such as {missing[:_MOST_SHOWN]}",
        )


def same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Mismatch(what, f"{found} instead of {expected}")


# --- what is looked at ----------------------------------------------------------------------------


def check_rows(asked: Asked) -> None:
    """The rows are the plain reader's, and all batches have the schema announced."""
    schema = asked.scan.schema()
    batches = asked.scan.to_batches(asked.options)
    for batch in batches:
        if not batch.schema.equals(schema, check_metadata=True):
            raise Mismatch("schema of a batch", f"{batch.schema} instead of {schema}")
        batch.validate(full=True)
        if asked.options.batch_size is not None and batch.num_rows > asked.options.batch_size:
            raise Mismatch("batch size", f"{batch.num_rows} rows in a batch")
    same_rows("rows", pa.Table.from_batches(batches, schema), asked.expected())


def check_order(asked: Asked) -> None:
    """Rows come in one order, however many threads read and however large batches are."""
    one = asked.read(num_workers=1, batch_size=None, overlap_io=False)
    for workers, size in ((1, 1), (3, None)):
        several = asked.read(num_workers=workers, batch_size=size, overlap_io=True)
        if in_order(several) != in_order(one):
            raise Mismatch("order", f"differs with {workers} workers and batches of {size}")


def in_order(table: pa.Table) -> list[Hashable]:
    # by value, so that NaN equals NaN
    return [hashable(row) for row in plain_rows(table)]


def check_negation(asked: Asked) -> None:
    """What a filter is true, false and unknown of is the whole table."""
    everything = asked.read(asked.unfiltered)
    negated = filtered(asked, ["not", asked.filter])
    unknown = [
        row
        for row in asked.everything
        if asked.plain.truth(asked.filter, row, asked.case_sensitive) is None
    ]
    parts = [*plain_rows(asked.read()), *plain_rows(asked.read(negated))]
    parts += asked.plain.answer(unknown, None, asked.select, asked.case_sensitive)
    same_rows("true, false and unknown", everything, parts)


def check_splits(asked: Asked) -> None:
    """Splits of any size tile the files: each row is in one split."""
    expected = asked.expected()
    for size in (1, 250):
        same_rows(f"split_size {size}", asked.read(split_size=size), expected)


def check_count(asked: Asked) -> None:
    """The count is the number of rows, and the plan's total is that or unknown."""
    expected = len(asked.expected())
    same("count", asked.scan.count(asked.options), expected)
    total = plan_files(asked.scan.resolved(), asked.scan.storage).total_records
    if total is not None:
        same("total_records", total, expected)


def check_rest_plan(asked: Asked) -> None:
    """The plan for other engines is JSON that names every file with a row of the answer."""
    tasks = json.loads(asked.scan.plan_files_json())
    planned = {task["data-file"]["file-path"] for task in tasks["file-scan-tasks"]}
    needed = {
        row["_file"]
        for row in asked.everything
        if asked.plain.truth(asked.filter, row, asked.case_sensitive)
    }
    same("files that the REST plan lacks", needed - planned, set())


def check_limit(asked: Asked) -> None:
    """A limit gives the first so many rows."""
    whole = asked.read()
    for limit in {0, whole.num_rows // 2, whole.num_rows}:
        found = asked.read(limit=limit)
        if in_order(found) != in_order(whole)[:limit]:
            raise Mismatch("limit", f"{limit} gives {found.num_rows} rows or others")


def check_empty(asked: Asked) -> None:
    """An answer without rows has the schema of every other."""
    nothing = asked.read(asked.scan.filter(["false"]))
    same("rows of which false is true", nothing.num_rows, 0)
    if not nothing.schema.equals(asked.scan.schema(), check_metadata=True):
        raise Mismatch("schema of an empty answer", str(nothing.schema))


def check_paths(asked: Asked) -> None:
    """Reading by paths, by splits and by tasks gives what reading at once gives, in parts."""
    options = asked.options
    split = asked.scan.with_split_size(100)
    options = replace(options, split_size=None)
    tasks = split.plan_files()
    expected = asked.expected()
    schema = split.schema()
    by_path, by_task, by_split = [], [], []
    for path in dict.fromkeys(t.data_file.location for t in tasks):
        by_path += split.to_batches_for_paths([path, "s3://fuzz/other"], options)
    for task in reversed(tasks):
        by_task += split.to_batches_for_tasks([task], options)
        by_split += split.to_batches_for_splits([task.data_file.location], [task.start], options)
    for what, batches in (("paths", by_path), ("tasks", by_task), ("splits", by_split)):
        same_rows(f"by {what}", pa.Table.from_batches(batches, schema), expected)


def check_tickets(asked: Asked) -> None:
    """Tickets may be redeemed in any order, and broken off and resumed anywhere."""
    rng = Random(len(asked.everything))
    scan = asked.scan.with_split_size(rng.choice((0, 100)))
    resolved = scan.resolved()
    tasks = plan_files(resolved, scan.storage).tasks
    cuts = sorted({0, len(tasks), *(rng.randint(0, len(tasks)) for _ in range(len(tasks) // 2))})
    runs = list(pairwise(cuts))
    rng.shuffle(runs)
    found: list[pa.RecordBatch] = []
    for first, stop in runs:
        plan = ReadPlan(
            metadata=resolved.metadata.for_reading(resolved.snapshot),
            schema_id=resolved.schema.schema_id,
            projection=resolved.projection,
            tasks=tasks[first:stop],
            storage=scan.config,
            options=ReadOptions(batch_size=rng.choice((1, 2, None)), prune=asked.options.prune),
        )
        by_manifests = rng.random() < 0.5
        encoded = encode_plan(plan, by_manifests=by_manifests)
        ticket: bytes | None = seal_encoded(encoded, KEYRING, principal=None, expires_at_ms=2**50)
        while ticket is not None:
            ticket = _redeem(ticket, scan, found, most=rng.choice((1, 2, 99)))
    same_rows("by tickets", pa.Table.from_batches(found, scan.schema()), asked.expected())


def _redeem(ticket: bytes, scan: TableScan, found: list[pa.RecordBatch], most: int) -> bytes | None:
    """Take up to `most` batches of a ticket; return the ticket for the rest, None at its end."""
    opened = open_ticket(ticket, KEYRING, now_ms=0)
    place: ResumePlace | None = None
    placed = to_batches_for_tasks(opened.plan, scan.storage, resume=opened.resume, ahead=AHEAD)
    for count, piece in enumerate(placed, 1):
        found.append(piece.batch)
        place = piece.place
        if count == most:
            return with_resume(ticket, place)
    return None


def check_lineage(asked: Asked) -> None:
    """A row has one id and one place, whatever else is asked for."""
    columns = ["_file", "_pos", "_row_id", "_last_updated_sequence_number"]
    names = {f["name"] for f in asked.plain.schema["fields"]}
    if names & set(columns):
        return  # a column of the table hides one of them
    every = {tuple(r.values()) for r in plain_rows(asked.read(asked.unfiltered.select(columns)))}
    some = [tuple(r.values()) for r in plain_rows(asked.read(asked.scan.select(columns)))]
    if not every.issuperset(some):
        raise Mismatch("lineage", f"{set(some) - every} only with the filter")
    if len({row[:2] for row in some}) != len(some):
        raise Mismatch("places", "two rows have one place")


CHECKS: Mapping[str, Callable[[Asked], None]] = {
    "order": check_order,
    "negation": check_negation,
    "splits": check_splits,
    "count": check_count,
    "limit": check_limit,
    "empty": check_empty,
    "paths": check_paths,
    "rest_plan": check_rest_plan,
    "tickets": check_tickets,
    "lineage": check_lineage,
}
