"""The HTTP side port of a process: is it alive, is it ready, what has it counted.

`/healthz` says that the process answers, `/readyz` whether it should be given work (and if not,
why), `/metrics` gives Prometheus its numbers. All of it is read-only and without names of tables;
what names them (`floeberg.process.page`) comes as `routes`, with a rule of its own for who sees it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence

import uvicorn
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from floeberg.protocol.errors import BadConfig, ServerUnavailable
from floeberg.protocol.requests import REQUEST_ID_HEADER, request_of, working_on

Readiness = Callable[[], Mapping[str, str | None]]
"""Returns what a process needs in order to work, by name: None where that is fine, else the
reason.
"""

_START_SECONDS = 20.0
_STOP_SECONDS = 5.0


def new_registry() -> CollectorRegistry:
    """Return an empty registry but for the process's own numbers (memory, CPU, files).

    Each service has its own, so that two in one process count apart.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


class HttpService:
    """Serves the side port from a thread of its own. The thread is `start`ed and `stop`ped once."""

    def __init__(
        self,
        registry: CollectorRegistry,
        readiness: Readiness,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        routes: Sequence[BaseRoute] = (),
    ) -> None:
        self._host = host
        self._port = port
        self._app = _application(registry, readiness, routes)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bind, and return once requests are answered. Raises `BadConfig` for a port that is
        taken.
        """
        bound = _bind(self._host, self._port)
        self._port = bound.getsockname()[1]
        config = uvicorn.Config(
            self._app, loop="uvloop", http="h11", log_config=None, access_log=False, lifespan="off"
        )
        server = self._server = _Server(config)
        # uvicorn handles signals in the main thread only; this is another
        self._thread = threading.Thread(
            target=server.run, args=([bound],), name="floeberg-http", daemon=True
        )
        self._thread.start()
        if not server.answering.wait(_START_SECONDS):
            raise ServerUnavailable(f"the HTTP side port did not start on {self.uri}")

    @property
    def port(self) -> int:
        """The port that is bound; what was asked for (perhaps 0) before `start`."""
        return self._port

    @property
    def uri(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def stop(self) -> None:
        """Finish the requests under way and end the thread. Harmless if it never started."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(128)  # at once: until then, SO_REUSEADDR lets another process bind it too
    except OSError as exc:
        bound.close()
        raise BadConfig(f"'http_port': {host}:{port} cannot be bound: {exc.strerror}") from exc
    return bound


def _application(
    registry: CollectorRegistry, readiness: Readiness, routes: Sequence[BaseRoute]
) -> Starlette:
    def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    def readyz(_: Request) -> Response:
        checks = readiness()
        problems = {name: why for name, why in checks.items() if why is not None}
        body = {
            "status": "not ready" if problems else "ready",
            "checks": {name: why or "ok" for name, why in checks.items()},
        }
        return JSONResponse(body, status_code=503 if problems else 200)

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            *routes,
        ],
        middleware=[Middleware(_NamedRequests)],
    )


class _NamedRequests:
    """Does each request's work under its id, and tells the id to whoever asked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[str, list[str | bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value)
        request = request_of(headers)
        header = (REQUEST_ID_HEADER.encode(), request.request_id.encode())

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], header]}
            await send(message)

        with working_on(request):  # a request has a task, and so a context, of its own
            await self._app(scope, receive, send_named)
