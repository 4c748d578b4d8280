"""What REST clients ask when they let the server plan.

Spec: "PlanTableScanRequest" and "FetchScanTasksRequest" in the REST catalog's OpenAPI document. A
member that is not known is refused and never passed over: it may say which rows are meant.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from floeberg.protocol.bodies import parse_body
from floeberg.protocol.errors import ConflictingSnapshot, Unsupported
from floeberg.protocol.expressions.json_form import exact_number
from floeberg.protocol.types import Json

_Int64 = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]
_Flag = Annotated[bool, Field(strict=True)]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class _Request(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=_kebab, arbitrary_types_allowed=True
    )


class PlanTableScanRequest(_Request):
    """A scan to plan. Without `snapshot_id` it is of the table's current snapshot.

    `select` and `min_rows_requested` change nothing: which columns are read doesn't change which
    files are, and a plan holds all of them. `stats_fields` None asks for no column's statistics.
    """

    snapshot_id: _Int64 | None = None
    select: tuple[str, ...] | None = None
    filter: Json = True
    min_rows_requested: _Int64 | None = None
    case_sensitive: _Flag = True
    use_snapshot_schema: _Flag = False
    start_snapshot_id: _Int64 | None = None
    end_snapshot_id: _Int64 | None = None
    stats_fields: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, raw: bytes) -> PlanTableScanRequest:
        """Return the request in a body; an empty one asks for the whole table.

        Raises `BadCommand`, which names the member that is wrong, `ConflictingSnapshot`, and
        `Unsupported` for incremental scans.
        """
        request = parse_body(cls, raw or b"{}", "plan request", parse_float=exact_number)
        incremental = {
            "start-snapshot-id": request.start_snapshot_id,
            "end-snapshot-id": request.end_snapshot_id,
        }
        given = [name for name, value in incremental.items() if value is not None]
        if given and request.snapshot_id is not None:
            raise ConflictingSnapshot(["snapshot-id", *given])
        if given:
            raise Unsupported(f"incremental scans ({' and '.join(given)}) are not planned")
        return request


class FetchScanTasksRequest(_Request):
    """A plan task, as a plan or another plan task has named it."""

    plan_task: str

    @classmethod
    def parse(cls, raw: bytes) -> FetchScanTasksRequest:
        """Return the request in a body. Raises `BadCommand`."""
        return parse_body(cls, raw, "request for scan tasks")
