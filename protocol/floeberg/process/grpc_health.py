"""gRPC's own health service (grpc.health.v1), served by grpcio (extra `health`). Only `health`
imports this, when a port is configured.

The messages are those of grpcio-health-checking. Its `HealthServicer` is not used: it holds a lock
while it tells whoever watches, and so waits for ever when one of them leaves meanwhile, or doesn't
read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future

import grpc
import grpc.aio
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from floeberg.process.http import Readiness
from floeberg.protocol.errors import BadConfig

SERVICE = "grpc.health.v1.Health"
WHOLE_PROCESS = ""
FLIGHT = "arrow.flight.protocol.FlightService"
LIVENESS = "liveness"
"""The service that is well as long as the process answers, ready or not: without a name of its own
for that, a platform's liveness probe would kill a worker for its coordinator's absence."""
SERVICES = (WHOLE_PROCESS, FLIGHT, LIVENESS)

_LOOK_SECONDS = 0.1
_STOP_SECONDS = 0.5
_MAX_CALLS = 100


class GrpcHealth:
    """Serves health from a thread of its own, from `start` until `stop`, each called once.

    A readiness is a function to ask. For a client that watches, it is asked ten times a second.
    """

    def __init__(self, readiness: Readiness, *, host: str, port: int) -> None:
        self._readiness = readiness
        self._host = f"[{host}]" if ":" in host else host
        self._port = port
        self._is_over = False
        self._stop: Future[None] = Future()
        self._bound: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="floeberg-grpc-health", daemon=True
        )

    @property
    def address(self) -> str:
        """`HOST:PORT`, as gRPC's clients take it; the port is the bound one after `start`."""
        return f"{self._host}:{self._port}"

    def start(self) -> None:
        """Bind, and return once calls are answered. Raises `BadConfig` for a port that is taken."""
        self._thread.start()
        self._port = self._bound.result()

    def stop(self) -> None:
        """Tell whoever watches that this is over, and end. Harmless if it never started."""
        self._is_over = True
        self._stop.set_result(None)
        if self._thread.ident is not None:
            self._thread.join()

    async def _serve(self) -> None:
        server = grpc.aio.server(
            # else a port that is taken would be shared, and half the probes go elsewhere
            options=[("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=_MAX_CALLS,
        )
        server.add_generic_rpc_handlers((self._handlers(),))
        try:
            port = server.add_insecure_port(self.address)
        except RuntimeError:
            error = BadConfig(f"'health_port': {self.address} cannot be bound")
            self._bound.set_exception(error)
            return
        await server.start()
        self._bound.set_result(port)
        await asyncio.wrap_future(self._stop)
        await server.stop(_STOP_SECONDS)

    def _handlers(self) -> grpc.GenericRpcHandler:
        request = HealthCheckRequest.FromString
        response = HealthCheckResponse.SerializeToString
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Check": grpc.unary_unary_rpc_method_handler(self._check, request, response),
                "Watch": grpc.unary_stream_rpc_method_handler(self._watch, request, response),
            },
        )

    async def _check(
        self,
        request: HealthCheckRequest,
        context: grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse],
    ) -> HealthCheckResponse:
        status = self._status_of(request.service)
        if status == HealthCheckResponse.SERVICE_UNKNOWN:
            names = ", ".join(map(repr, SERVICES))
            await context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service; there are {names}")
        return HealthCheckResponse(status=status)

    async def _watch(
        self,
        request: HealthCheckRequest,
        context: grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse],
    ) -> AsyncIterator[HealthCheckResponse]:
        told: int | None = None
        while True:
            is_over = self._is_over
            status = self._status_of(request.service)
            if status != told:
                yield HealthCheckResponse(status=status)
                told = status
            if is_over:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _status_of(self, service: str) -> int:
        if service not in SERVICES:
            return HealthCheckResponse.SERVICE_UNKNOWN
        is_well = service == LIVENESS or all(why is None for why in self._readiness().values())
        if is_well and not self._is_over:
            return HealthCheckResponse.SERVING
        return HealthCheckResponse.NOT_SERVING
