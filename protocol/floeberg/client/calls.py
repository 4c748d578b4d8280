"""Actions: questions to the coordinator that are not scans."""

from __future__ import annotations

from typing import TypeVar

import pyarrow.flight as fl
from pydantic import BaseModel

from floeberg.client.connection import Connection
from floeberg.client.unreachable import floeberg_errors
from floeberg.protocol.actions import Action
from floeberg.protocol.bodies import Reply
from floeberg.protocol.requests import current_request, new_request

RequestT = TypeVar("RequestT", bound=BaseModel)
ReplyT = TypeVar("ReplyT", bound=Reply)


def ask(
    connection: Connection, action: Action[RequestT, ReplyT], body: bytes = b"{}"
) -> list[ReplyT]:
    """Return every result of `action`; most have one, long answers a page each."""
    request = current_request() or new_request()
    with connection.client() as client, floeberg_errors(connection.location, request):
        results = client.do_action(fl.Action(action.name, body), connection.call_options(request))
        raw = [result.body.to_pybytes() for result in results]
    return [action.parse_reply(page) for page in raw]
