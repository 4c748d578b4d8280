"""The actions of a coordinator: their names, and what they take and give as JSON.

An action's body is one JSON object, and so is each of its results; long answers come as several
results, a page each. Requests are read strictly. A reply may gain keys in a later version, which an
older client passes over. What the status action tells is in `floeberg.protocol.status`, and the
sealed actions by which workers join are in `floeberg.protocol.registration`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, Field, ValidationError

from floeberg.protocol.bodies import Reply, Request, parse_body
from floeberg.protocol.commands import ScanCommand, Table
from floeberg.protocol.errors import FloebergError
from floeberg.protocol.registration import (
    LEAVE_WORKER,
    LEND_CREDENTIALS,
    REGISTER_WORKER,
    RENEW_WORKER,
)
from floeberg.protocol.status import Status, StatusRequest
from floeberg.protocol.types import Json

PAGE_LENGTH = 1000
"""How many tables or tasks one result holds at most."""


# --- tables --------------------------------------------------------------------------------------


class TablesRequest(Request):
    """All tables, or those of one catalog and of the namespaces at and below `namespace`."""

    catalog: str | None = None
    namespace: tuple[str, ...] = ()


class TableEntry(Reply):
    """A table that is served. `identifier` is its name in its catalog, as parts."""

    catalog: str
    identifier: tuple[str, ...]
    is_default_catalog: bool = False


class TablesPage(Reply):
    """Tables, and in the first page which catalogs could not be listed, with the reasons."""

    tables: tuple[TableEntry, ...]
    unlisted: Mapping[str, str] = {}


class TableRequest(Request):
    """One table, by its name."""

    table: Table


class RefEntry(Reply):
    name: str
    type: Literal["branch", "tag"]
    snapshot_id: int
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


class TableDescription(Reply):
    """What a table is like now; schema, specs and sort orders are in Appendix C's JSON."""

    catalog: str
    identifier: tuple[str, ...]
    location: str | None
    metadata_location: str | None
    format_version: int
    table_uuid: str | None
    last_updated_ms: int
    table_schema: Json
    partition_specs: tuple[Json, ...]
    default_spec_id: int
    sort_orders: tuple[Json, ...]
    default_sort_order_id: int
    properties: dict[str, str]
    current_snapshot_id: int | None
    snapshot_count: int
    refs: tuple[RefEntry, ...]


class SnapshotEntry(Reply):
    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    summary: dict[str, str]
    schema_id: int | None
    manifest_list: str | None


class SnapshotList(Reply):
    """A table's snapshots, oldest first, and the names that point at them."""

    snapshots: tuple[SnapshotEntry, ...]
    current_snapshot_id: int | None
    refs: tuple[RefEntry, ...]


# --- workers -------------------------------------------------------------------------------------


class WorkersRequest(Request):
    """Nothing: which workers there are is the same for everybody."""


class WorkersReply(Reply):
    """Where tickets may be redeemed now; any worker reads any ticket. None, where that is at the
    coordinator itself."""

    locations: tuple[str, ...]


# --- scans ---------------------------------------------------------------------------------------


class CountReply(Reply):
    """How many rows a scan has; `count` is None where only reading its files can tell."""

    count: int | None
    snapshot_id: int | None


class PlanPage(Reply):
    """Some tasks of a scan, in plan order.

    Each of `tasks` has the form of the Iceberg REST protocol's FileScanTask; its
    `delete-file-references` count within this page's `delete_files`. The first page has `counters`:
    what planning looked at, and what it pruned.
    """

    snapshot_id: int | None
    tasks: tuple[Json, ...]
    delete_files: tuple[Json, ...] = ()
    counters: dict[str, int] = Field(default_factory=dict)


class Level(Reply):
    """One level of a plan: how much of it there was, and how much of that was ruled out by what.

    The files are those of the manifests that were read.
    """

    name: Literal["data manifests", "delete manifests", "data files", "delete files"]
    total: int
    pruned: dict[str, int]
    kept: int


DeleteKind: TypeAlias = Literal["deletion vectors", "position deletes", "equality deletes"]


class AttachedDeletes(Reply):
    """The deletes of one kind in a plan: distinct `files` (or vectors), how many `data_files` of
    the plan they apply to, how often they are `references` of one, and the `records` in them.
    """

    kind: DeleteKind
    files: int
    data_files: int
    references: int
    records: int


class ResidualEntry(Reply):
    """What is left of the filter for so many data files, in the JSON form of filters."""

    residual: Json
    files: int


class ExplainedEndpoint(Reply):
    """One endpoint that the scan would have. `bytes` are those of its data files."""

    tasks: int
    bytes: int
    ticket_bytes: int
    locations: tuple[str, ...]


class ExplainedStep(Reply):
    name: str
    seconds: float


class Explanation(Reply):
    """What planning a scan did: what it looked at, ruled out, and gives to whom to read.

    `filter` is the scan's, bound to the schema that is read. `residuals` are the most common first,
    and at most `RESIDUALS_SHOWN` of the `distinct_residuals`. `rows_at_most` are those of the data
    files; `rows` is the exact answer where metadata tells it. `endpoints` is None in process, where
    there are none. `manifests_cached`, `manifests_from_disk` and `manifests_fetched` add up to the
    manifests read, and `fetched_bytes` are the list's and theirs.
    """

    table: str | None
    snapshot_id: int | None
    filter: Json
    levels: tuple[Level, ...]
    deletes: tuple[AttachedDeletes, ...]
    residuals: tuple[ResidualEntry, ...]
    distinct_residuals: int
    files: int
    tasks: int
    bytes: int
    rows_at_most: int
    rows: int | None
    endpoints: tuple[ExplainedEndpoint, ...] | None
    manifest_list_cached: bool
    manifests_cached: int
    manifests_from_disk: int = 0
    manifests_fetched: int
    fetched_bytes: int
    steps: tuple[ExplainedStep, ...]


RESIDUALS_SHOWN = 100


# --- the actions ---------------------------------------------------------------------------------

RequestT = TypeVar("RequestT", bound=BaseModel)
ReplyT = TypeVar("ReplyT", bound=Reply)


@dataclass(frozen=True)
class Action(Generic[RequestT, ReplyT]):
    """An action's name, and the forms of its body and of each result.

    >>> COUNT.parse_reply(COUNT.encode_reply(CountReply(count=3, snapshot_id=None)))
    CountReply(count=3, snapshot_id=None)
    """

    name: str
    description: str
    request: type[RequestT]
    reply: type[ReplyT]

    def parse_request(self, body: bytes) -> RequestT:
        """Return the request in an action's body; an empty one is `{}`. Raises `BadCommand`."""
        return parse_body(self.request, body or b"{}", self.name)

    def encode_reply(self, reply: ReplyT) -> bytes:
        return reply.model_dump_json().encode()

    def parse_reply(self, raw: bytes) -> ReplyT:
        """Return a reply as a client reads it; one that it can't read raises `FloebergError`."""
        try:
            return self.reply.model_validate_json(raw)
        except ValidationError as exc:
            raise FloebergError(
                f"the server's answer to {self.name} can't be read; it may be of another version"
            ) from exc


TABLES = Action("floeberg.tables", "the tables that are served", TablesRequest, TablesPage)
DESCRIBE = Action("floeberg.describe", "what a table is like", TableRequest, TableDescription)
SNAPSHOTS = Action("floeberg.snapshots", "a table's snapshots", TableRequest, SnapshotList)
FILES = Action("floeberg.files", "the files that a scan reads", ScanCommand, PlanPage)
COUNT = Action("floeberg.count", "a scan's rows, where metadata tells", ScanCommand, CountReply)
PLAN = Action("floeberg.plan", "a scan's tasks", ScanCommand, PlanPage)
EXPLAIN = Action("floeberg.explain", "what planning a scan does", ScanCommand, Explanation)
WORKERS = Action("floeberg.workers", "where to redeem tickets", WorkersRequest, WorkersReply)
STATUS = Action("floeberg.status", "the coordinator and its workers", StatusRequest, Status)

DESCRIPTIONS: tuple[tuple[str, str], ...] = (
    *(
        (action.name, action.description)
        for action in (TABLES, DESCRIBE, SNAPSHOTS, FILES, COUNT, PLAN, EXPLAIN, WORKERS, STATUS)
    ),
    (REGISTER_WORKER, "a worker joins (sealed)"),
    (RENEW_WORKER, "a worker stays (sealed)"),
    (LEAVE_WORKER, "a worker leaves (sealed)"),
    (LEND_CREDENTIALS, "a worker asks for credentials of a table that it reads (sealed)"),
)
"""Every action with its description, for ListActions."""

Item = TypeVar("Item")


def pages(items: Iterable[Item], length: int = PAGE_LENGTH) -> Iterator[tuple[Item, ...]]:
    """Yield `items` in tuples of at most `length`; an empty one where there are none.

    >>> list(pages([1, 2, 3], 2)), list(pages([]))
    ([(1, 2), (3,)], [()])
    """
    remaining = iter(items)
    page = tuple(islice(remaining, length))
    yield page
    while page := tuple(islice(remaining, length)):
        yield page
