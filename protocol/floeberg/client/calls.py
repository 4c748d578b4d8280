"""Actions: questions to the coordinator that are not scans."""

from __future__ import annotations

from typing import TypeVar

import pyarrow.flight as fl
from pydantic import BaseModel

from floeberg.client.connection import Connection
from floeberg.client.unreachable import floeberg_errors
from floeberg.protocol.actions import Action
from floeberg.protocol.bodies import Reply

RequestT = TypeVar("RequestT", bound=BaseModel)
ReplyT = TypeVar("ReplyT", bound=Reply)


def ask(
    connection: Connection, action: Action[RequestT, ReplyT], body: bytes = b"{}"
) -> list[ReplyT]:
    """Return every result of `action`; most have one, long answers a page each."""
    with connection.client() as client, floeberg_errors(connection.location):
        results = client.do_action(fl.Action(action.name, body), connection.call_options())
        raw = [result.body.to_pybytes() for result in results]
    return [action.parse_reply(page) for page in raw]
