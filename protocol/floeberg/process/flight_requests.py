"""Name each Flight call's request: from its headers, and back to its client in a header."""

from __future__ import annotations

import pyarrow.flight as fl

from floeberg.protocol.requests import REQUEST_ID_HEADER, RequestContext, request_of

MIDDLEWARE = "floeberg-request"


class RequestMiddleware(fl.ServerMiddleware):
    """What a call belongs to, as its headers say."""

    def __init__(self, request: RequestContext) -> None:
        self.request = request

    def sending_headers(self) -> dict[str, list[str] | list[bytes]]:
        return {REQUEST_ID_HEADER: [self.request.request_id]}


class RequestMiddlewareFactory(fl.ServerMiddlewareFactory):
    def start_call(
        self, info: fl.CallInfo, headers: dict[str, list[str] | list[bytes]]
    ) -> RequestMiddleware:
        return RequestMiddleware(request_of(headers))


def request_of_call(context: fl.ServerCallContext) -> RequestContext | None:
    """Return what a call belongs to; None on a server without the middleware."""
    found = context.get_middleware(MIDDLEWARE)
    return found.request if isinstance(found, RequestMiddleware) else None
