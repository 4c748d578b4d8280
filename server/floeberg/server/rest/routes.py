"""The REST endpoints: a thin adapter from HTTP to what answers.

Handlers decode, call, encode, and turn errors into statuses; nothing else. What may wait runs in
the threads of `Jobs`, never in the event loop, which has the health checks to answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote_to_bytes

from prometheus_client import CollectorRegistry, Counter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from floeberg.process.auth import Gate
from floeberg.protocol.bodies import dump_json
from floeberg.protocol.errors import BadCommand, Cancelled, FloebergError, InternalError
from floeberg.protocol.types import Json
from floeberg.server.access import Caller, Callers
from floeberg.server.rest.errors import rest_error
from floeberg.server.rest.jobs import Job, Jobs
from floeberg.server.rest.plan_tasks import PlanTask
from floeberg.server.rest.planning import Client, RestPlanner
from floeberg.server.rest.tables import (
    configuration,
    describe_namespace,
    list_namespaces,
    list_tables,
    load_table,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PLAN_BYTES = 1 << 20
MAX_TASK_BYTES = 8 << 20  # a plan task holds the filter of its plan, in a longer form
_RETRY_SECONDS = 1
_CHECK_SECONDS = 0.25  # how soon a plan ends whose client has left

_SEPARATOR = "\x1f"
_NAMESPACES = "/v1/{prefix}/namespaces"
_TABLES = _NAMESPACES + "/{namespace}/tables"
_TABLE = _TABLES + "/{table}"


class RestService:
    """Answers REST clients; its `routes` are for an HTTP service. `close` it.

    A plan that takes longer than `wait_seconds` is answered with an id to ask for it again.
    """

    def __init__(
        self,
        callers: Callers,
        planner: RestPlanner,
        registry: CollectorRegistry,
        gate: Gate,
        *,
        wait_seconds: float,
    ) -> None:
        self._callers = callers
        self._gate = gate
        self._planner = planner
        self._wait_seconds = wait_seconds
        self._jobs: Jobs[PlanTask] = Jobs()
        self._answered = Counter(
            "floeberg_rest_requests",
            "Requests of REST clients, by what was asked and the status of the answer.",
            ["endpoint", "status"],
            registry=registry,
        )

    @property
    def routes(self) -> Sequence[BaseRoute]:
        return [
            self._route("/v1/config", "GET", "config", self._config),
            self._route(_NAMESPACES, "GET", "list-namespaces", self._list_namespaces),
            self._route(_NAMESPACES + "/{namespace}", "GET", "namespace", self._namespace),
            self._route(_TABLES, "GET", "list-tables", self._list_tables),
            self._route(_TABLE, "GET", "load-table", self._load_table),
            self._route(_TABLE + "/plan", "POST", "plan", self._plan),
            self._route(_TABLE + "/plan/{plan_id}", "GET", "fetch-plan", self._fetch_plan),
            self._route(_TABLE + "/plan/{plan_id}", "DELETE", "cancel-plan", self._cancel_plan),
            self._route(_TABLE + "/tasks", "POST", "fetch-tasks", self._fetch_tasks),
        ]

    def close(self) -> None:
        """Cancel what is being planned."""
        self._jobs.close()

    # --- catalog ---------------------------------------------------------------------------------

    async def _config(self, request: Request, caller: Caller) -> Response:
        return _json(configuration(caller.catalogs, request.query_params.get("warehouse")))

    async def _list_namespaces(self, request: Request, caller: Caller) -> Response:
        catalog = caller.catalogs.get(_part(request, "prefix"))
        parent = request.query_params.get("parent", "")
        parts = tuple(parent.split(_SEPARATOR)) if parent else ()
        return await self._in_thread(lambda: _json(list_namespaces(catalog, parts)))

    async def _namespace(self, request: Request, caller: Caller) -> Response:
        catalog, parts = caller.catalogs.get(_part(request, "prefix")), _namespace(request)
        answer = await self._in_thread(lambda: _json(describe_namespace(catalog, parts)))
        return Response(status_code=204) if request.method == "HEAD" else answer

    async def _list_tables(self, request: Request, caller: Caller) -> Response:
        catalog, parts = caller.catalogs.get(_part(request, "prefix")), _namespace(request)
        return await self._in_thread(lambda: _json(list_tables(catalog, parts)))

    async def _load_table(self, request: Request, caller: Caller) -> Response:
        name = _whole_table(request, caller)
        catalog = caller.catalogs.get(name.catalog)
        answer = await self._in_thread(lambda: _json(load_table(catalog, name.identifier)))
        return Response(status_code=204) if request.method == "HEAD" else answer

    # --- planning --------------------------------------------------------------------------------

    async def _plan(self, request: Request, caller: Caller) -> Response:
        name = _whole_table(request, caller)
        body = await _body(request, MAX_PLAN_BYTES)
        job = self._jobs.start(
            name.parts,
            lambda cancelled: self._planner.plan(
                name.catalog, name.identifier, body, caller, cancelled
            ),
        )
        future = asyncio.wrap_future(job.future)
        # what goes wrong later is asked for by the id; asyncio would call it forgotten
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        if not await self._within_wait(future, request):
            self._jobs.cancel(job.plan_id, job.table)
            raise Cancelled("the client has left")
        if not future.done():
            logger.info("plan goes on in the background", extra={"table": ".".join(name.parts)})
            return _json({"status": "submitted", "plan-id": job.plan_id})
        task = await future
        return await self._completed(task, request, caller, {"plan-id": job.plan_id})

    async def _within_wait(self, future: asyncio.Future[PlanTask], request: Request) -> bool:
        """Wait until the future is done, or as long as a client waits; say whether it does."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wait_seconds
        while (left := until - loop.time()) > 0 and not future.done():
            await asyncio.wait({future}, timeout=min(left, _CHECK_SECONDS))
            if not future.done() and await request.is_disconnected():
                return False
        return True

    async def _fetch_plan(self, request: Request, caller: Caller) -> Response:
        job = self._job(request, caller)
        if job.cancelled.is_set():
            return _json({"status": "cancelled"})
        if not job.future.done():
            return _json({"status": "submitted"})
        try:
            task = job.future.result()
        except (Cancelled, CancelledError):
            return _json({"status": "cancelled"})
        except FloebergError as error:
            return _json({"status": "failed", **rest_error(error)[1]})
        return await self._completed(task, request, caller, {})

    async def _cancel_plan(self, request: Request, caller: Caller) -> Response:
        job = self._job(request, caller)
        self._jobs.cancel(job.plan_id, job.table)
        return Response(status_code=204)

    async def _fetch_tasks(self, request: Request, caller: Caller) -> Response:
        name = _whole_table(request, caller)
        body = await _body(request, MAX_TASK_BYTES)
        client = _client(request)
        return await self._in_thread(
            lambda: _json(self._planner.fetch(name.catalog, name.identifier, body, caller, client))
        )

    async def _completed(
        self, task: PlanTask, request: Request, caller: Caller, beside: dict[str, Json]
    ) -> Response:
        client = _client(request)
        return await self._in_thread(
            lambda: _json(
                {"status": "completed", **beside, **self._planner.page(task, caller, client)}
            )
        )

    def _job(self, request: Request, caller: Caller) -> Job[PlanTask]:
        return self._jobs.get(_part(request, "plan_id"), _whole_table(request, caller).parts)

    async def _caller(self, request: Request) -> Caller:
        """Return who asks. Raises `Unauthenticated`; keys may have to be fetched to tell."""
        authorization = request.headers.getlist("authorization")
        if not self._gate.demands:
            return self._callers.of(None)
        return await self._in_thread(lambda: self._callers.of(self._gate.admit(authorization)))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._jobs.run(work))

    # --- the edge --------------------------------------------------------------------------------

    def _route(
        self,
        path: str,
        method: str,
        endpoint: str,
        handler: Callable[[Request, Caller], Awaitable[Response]],
    ) -> Route:
        async def guarded(request: Request) -> Response:
            try:
                response = await handler(request, await self._caller(request))
            except (FloebergError, CancelledError) as error:
                response = _error(
                    error if isinstance(error, FloebergError) else Cancelled("it was cancelled")
                )
            except Exception:
                # an answer all the same, with nothing of our inside
                logger.exception("a REST request failed", extra={"endpoint": endpoint})
                response = _error(InternalError("the coordinator failed; its log says why"))
            self._answered.labels(endpoint, response.status_code).inc()
            return response

        return _RawRoute(path, guarded, methods=[method])


class _RawRoute(Route):
    """A route over the path as it was sent: a name may hold a slash, percent-encoded."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw: bytes | None = scope.get("raw_path")
        if raw is not None:
            scope = {**scope, "path": raw.decode("latin-1")}
        return super().matches(scope)


@dataclass(frozen=True, slots=True)
class _TableName:
    catalog: str
    identifier: tuple[str, ...]

    @classmethod
    def of(cls, request: Request) -> _TableName:
        return cls(_part(request, "prefix"), (*_namespace(request), _part(request, "table")))

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.catalog, *self.identifier)


def _whole_table(request: Request, caller: Caller) -> _TableName:
    """Return the table of a request that tells of all of it. Raises `UnknownTable`, and
    `NotPermitted` where a policy restricts the caller: REST clients read the files themselves."""
    name = _TableName.of(request)
    caller.check_full(name.catalog, name.identifier, "tables are planned for REST clients")
    return name


def _part(request: Request, name: str) -> str:
    try:
        return unquote_to_bytes(request.path_params[name]).decode()
    except UnicodeDecodeError as exc:
        raise BadCommand(f"the path's {name} is not UTF-8") from exc


def _namespace(request: Request) -> tuple[str, ...]:
    return tuple(_part(request, "namespace").split(_SEPARATOR))


def _client(request: Request) -> Client:
    # PyIceberg up to 0.12 refuses a whole answer for a null in a partition tuple
    is_pyiceberg = request.headers.get("user-agent", "").startswith("PyIceberg/")
    return Client(reads_null_partitions=not is_pyiceberg)


async def _body(request: Request, max_bytes: int) -> bytes:
    """Return a request's body. Raises `BadCommand` as soon as it is longer than `max_bytes`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise BadCommand(f"the request is longer than {max_bytes} bytes")
    return bytes(body)


def _json(body: Json, status: int = 200) -> Response:
    return Response(dump_json(body), status, media_type="application/json")


def _error(error: FloebergError) -> Response:
    status, body = rest_error(error)
    response = _json(body, status)
    if status == 503:
        response.headers["retry-after"] = str(_RETRY_SECONDS)
    return response
