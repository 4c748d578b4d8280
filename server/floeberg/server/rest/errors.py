"""Errors as REST clients read them: a status, and a body that names Iceberg's exception.

Spec: "IcebergErrorResponse" in the REST catalog's OpenAPI document.
"""

from __future__ import annotations

from floeberg.protocol import errors
from floeberg.protocol.errors import BadRequest, FloebergError, Unavailable
from floeberg.protocol.types import Json


class NoSuchNamespace(BadRequest):
    code = "UNKNOWN_NAMESPACE"

    def __init__(self, parts: tuple[str, ...]) -> None:
        super().__init__(f"no namespace {'.'.join(parts)!r} holds a table")


class NoSuchPlan(BadRequest):
    code = "UNKNOWN_PLAN"

    def __init__(self) -> None:
        super().__init__(
            "this coordinator holds no such plan of that table: it has expired, or another"
            " coordinator has made it; plan the scan again"
        )


class NoSuchPlanTask(BadRequest):
    code = "UNKNOWN_PLAN_TASK"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; plan the scan again")


class TooManyPlans(Unavailable):
    code = "TOO_MANY_PLANS"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} requests are being planned or wait for it; try again")


# the first that an error is of
_STATUSES: tuple[tuple[type[FloebergError], int, str], ...] = (
    (errors.UnknownTable, 404, "NoSuchTableException"),
    (errors.NotATable, 404, "NoSuchTableException"),
    (errors.UnknownCatalog, 404, "NoSuchWarehouseException"),
    (NoSuchNamespace, 404, "NoSuchNamespaceException"),
    (NoSuchPlan, 404, "NoSuchPlanIdException"),
    (NoSuchPlanTask, 404, "NoSuchPlanTaskException"),
    (errors.BadRequest, 400, "BadRequestException"),
    (errors.Unauthenticated, 401, "NotAuthorizedException"),
    (errors.Denied, 403, "NotAuthorizedException"),
    (errors.Unsupported, 406, "UnsupportedOperationException"),
    (errors.Unavailable, 503, "ServiceUnavailableException"),
)


def rest_error(error: FloebergError) -> tuple[int, Json]:
    """Return the HTTP status of `error`, and its body. floeberg's own code stands in the message.

    >>> rest_error(NoSuchNamespace(("db",)))[1]["error"]["type"]
    'NoSuchNamespaceException'
    """
    status, name = next(
        ((status, name) for kind, status, name in _STATUSES if isinstance(error, kind)),
        (500, "InternalServerError"),
    )
    message = f"[{error.code}] {error}"
    return status, {"error": {"message": message, "type": name, "code": status}}
