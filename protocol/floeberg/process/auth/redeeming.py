"""Whether a caller may redeem a ticket."""

from __future__ import annotations

from typing import Protocol

from floeberg.process.auth.principals import Principal
from floeberg.protocol.errors import NotPermitted, Unauthenticated


class Owned(Protocol):
    """A ticket of any kind, as far as it says whose it is."""

    @property
    def principal(self) -> str | None: ...
    @property
    def is_bound(self) -> bool: ...


def check_redeemer(ticket: Owned, caller: Principal | None) -> None:
    """Let pass who may redeem `ticket`: everybody, unless it is bound to its principal.

    Raises `Unauthenticated` for a caller who has not said who it is, and `NotPermitted` for
    somebody else; neither tells whose ticket it is.
    """
    if not ticket.is_bound:
        return
    if caller is None:
        raise Unauthenticated(
            "the ticket is bound to who asked for it: send the same credentials with it, also to"
            " workers (which need the 'auth_…' keys to know other tokens than those of a login)"
        )
    if caller.name != ticket.principal:
        raise NotPermitted("the ticket is bound to somebody else; call GetFlightInfo for your own")
