"""Tell who calls, by every way that is configured; knows nothing of Flight."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from floeberg.process.auth import carrying
from floeberg.process.auth.carrying import (
    Carrier,
    cookie_values,
    open_carrier,
    seal_carrier,
    set_cookie,
)
from floeberg.process.auth.credentials import Basic, Bearer, Credentials, parse_authorization
from floeberg.process.auth.passwords import PasswordList
from floeberg.process.auth.principals import Principal, is_name
from floeberg.process.auth.sessions import PREFIX, open_session, seal_session, wall_clock_ms
from floeberg.process.auth.tokens import TokenList
from floeberg.process.auth.watched import WatchedFile
from floeberg.protocol.errors import BadCommand, Denied, FloebergError, Unauthenticated
from floeberg.protocol.sealing import Keyring
from floeberg.protocol.types import Json

logger = logging.getLogger(__name__)

_RELAY_SECONDS = 60

_MOST_CARRIED = 7 << 10
"""Of headers, gRPC takes 8 KiB in all."""

Outcome: TypeAlias = Literal["admitted", "refused", "logged in", "login refused"]


class TokenVerifier(Protocol):
    """Verifies bearer tokens of one kind."""

    def handles(self, token: str) -> bool:
        """Say whether `token` is of its kind, by the looks of it."""
        ...

    def verify(self, token: str) -> Principal:
        """Return whose token it is. Raises `Unauthenticated`, which says why not, and `Unavailable`
        where it can't be told now."""
        ...


class Gate:
    """Decides who a caller is. Safe to use from several threads.

    A gate that `demands` nothing, since no way to tell callers apart is configured, lets everybody
    through. Session tokens of this fleet are read in any case: a worker that is told nothing
    of clients can so tell who may redeem a ticket that is bound.
    """

    def __init__(
        self,
        keyring: Keyring,
        *,
        tokens: WatchedFile[TokenList] | None = None,
        verifiers: Sequence[TokenVerifier] = (),
        passwords: WatchedFile[PasswordList] | None = None,
        certificates: bool = False,
        session_seconds: float = 8 * 3600,
        now_ms: Callable[[], int] = wall_clock_ms,
        count: Callable[[Outcome], None] = lambda outcome: None,
    ) -> None:
        """With `certificates`, clients show certificates, and a caller without a token is who its
        certificate says. `count` is told how each caller fares."""
        self._keyring = keyring
        self._tokens = tokens
        self._verifiers = verifiers
        self._passwords = passwords
        self._certificates = certificates
        self._session_seconds = session_seconds
        self._now_ms = now_ms
        self._count = count

    @property
    def demands(self) -> bool:
        """Whether a caller must prove who it is."""
        ways = (self._tokens, self._passwords, *self._verifiers)
        return self._certificates or any(way is not None for way in ways)

    @property
    def takes_passwords(self) -> bool:
        return self._passwords is not None

    def admit(
        self,
        authorization: Sequence[str | bytes],
        peer_identity: str | None = None,
        peer: str | None = None,
    ) -> Principal | None:
        """Return who calls; None for a caller who has not said so and need not.

        `authorization` are the header's values, `peer_identity` is the name in the client's
        certificate, and `peer` is where the call comes from, for the log. Raises
        `Unauthenticated`, and what a verifier raises.
        """
        if not self.demands:
            return self._known_without_asking(authorization)
        try:
            found = self._proved(authorization, peer_identity)
        except Denied as error:
            self._count("refused")
            logger.info("call refused", extra={"peer": peer, "why": str(error)})
            raise
        self._count("admitted")
        return found

    def _proved(self, authorization: Sequence[str | bytes], peer_identity: str | None) -> Principal:
        match self._own(parse_authorization(authorization)):
            case Bearer(token):
                return self._bearer(token)
            case Basic():
                raise Unauthenticated(
                    "a username and password are taken by a Handshake alone, which answers a bearer"
                    f" token for the other calls; {self._remedy()}"
                )
            case None:
                if self._certificates and peer_identity and is_name(peer_identity):
                    return Principal(peer_identity, "certificate")
                raise Unauthenticated(f"this server must know who calls; {self._remedy()}")

    def log_in(self, authorization: Sequence[str | bytes]) -> str:
        """Return a session token for a username and password. Raises `Unauthenticated`."""
        try:
            token = self._session_for(authorization)
        except Denied as error:
            self._count("login refused")
            logger.info("login refused", extra={"why": str(error)})
            raise
        self._count("logged in")
        return token

    def _session_for(self, authorization: Sequence[str | bytes]) -> str:
        if self._passwords is None:
            raise Unauthenticated(f"this server takes no passwords; {self._remedy()}")
        credentials = parse_authorization(authorization)
        if not isinstance(credentials, Basic):
            raise Unauthenticated("a login takes a username and a password (Basic)")
        known = self._passwords.get()
        principal = known.find(credentials.username, credentials.password)
        if principal is None:
            raise Unauthenticated("the username or the password is wrong")
        return seal_session(
            principal.name,
            self._keyring,
            expires_at_ms=self._now_ms() + int(self._session_seconds * 1000),
            stamp=known.stamp(principal.name),
        )

    def relay_token(self, principal: Principal | None) -> str:
        """Return a token with which a coordinator calls a worker on `principal`'s behalf, good for
        a minute."""
        name = principal.name if principal else "coordinator"
        expires_at_ms = self._now_ms() + _RELAY_SECONDS * 1000
        return seal_session(name, self._keyring, expires_at_ms=expires_at_ms, stamp=None)

    # --- what clients carry ----------------------------------------------------------------------

    def carried(
        self, authorization: Sequence[str | bytes], cookies: Sequence[str | bytes] = ()
    ) -> Mapping[str, Json]:
        """Return what a client was given to carry, nothing for a client that was given nothing.

        The arguments are the values of the headers `authorization` and `cookie`, of which the later
        one counts. Raises `Unauthenticated` for what can't be read.
        """
        return self._latest(authorization, cookies).content

    def to_carry(
        self,
        authorization: Sequence[str | bytes],
        content: Mapping[str, Json],
        cookies: Sequence[str | bytes] = (),
    ) -> Iterator[tuple[str, str]]:
        """Yield headers of an answer that have the client carry `content` from now on, instead of
        what its call came with; an empty one has it drop the cookie.

        A bearer token that is for somebody else, such as a proxy on the way, stays as it is: such a
        client gets the cookie alone. Raises `BadCommand` for more than headers hold.
        """
        held = self._carrier(authorization)
        own = None if held else self._bearer_token(authorization)
        turn = self._latest(authorization, cookies).turn + 1
        cookie = seal_carrier(Carrier(content, turn=turn), self._keyring) if content else None
        headers = [("set-cookie", set_cookie(cookie))]
        if held or own is None or self.demands or own.startswith(PREFIX):
            carrier = Carrier(content, held.bearer if held else own, turn)
            headers.append(("authorization", f"Bearer {seal_carrier(carrier, self._keyring)}"))
        if sum(len(value) for _, value in headers) > _MOST_CARRIED:
            raise BadCommand(
                "the session's options and your token together are longer than headers may be; set"
                " fewer or shorter options"
            )
        yield from headers

    def _latest(
        self, authorization: Sequence[str | bytes], cookies: Sequence[str | bytes]
    ) -> Carrier:
        token = self._carrier(authorization)
        found = [] if token is None else [token]
        found += [open_carrier(value, self._keyring) for value in cookie_values(cookies) if value]
        # of equals, max takes the first: the token
        return max(found, key=lambda carrier: carrier.turn, default=Carrier({}))

    def _own(self, credentials: Credentials | None) -> Credentials | None:
        """Return a client's own credentials, where it carries them for us."""
        if not isinstance(credentials, Bearer) or not credentials.token.startswith(carrying.PREFIX):
            return credentials
        bearer = open_carrier(credentials.token, self._keyring).bearer
        return None if bearer is None else Bearer(bearer)

    def _carrier(self, authorization: Sequence[str | bytes]) -> Carrier | None:
        token = self._bearer_token(authorization)
        if token is None or not token.startswith(carrying.PREFIX):
            return None
        return open_carrier(token, self._keyring)

    def _bearer_token(self, authorization: Sequence[str | bytes]) -> str | None:
        try:
            credentials = parse_authorization(authorization)
        except Unauthenticated:
            return None  # the caller was admitted, so it is meant for somebody else
        return credentials.token if isinstance(credentials, Bearer) else None

    # --- the ways to prove it --------------------------------------------------------------------

    def _known_without_asking(self, authorization: Sequence[str | bytes]) -> Principal | None:
        try:
            credentials = self._own(parse_authorization(authorization))
            if isinstance(credentials, Bearer) and credentials.token.startswith(PREFIX):
                return self._session(credentials.token)
        except FloebergError:
            return None  # it may be meant for a proxy on the way
        return None

    def _bearer(self, token: str) -> Principal:
        if token.startswith(PREFIX):
            return self._session(token)
        found = None if self._tokens is None else self._tokens.get().find(token)
        if found is not None:
            return found
        for verifier in self._verifiers:
            if verifier.handles(token):
                return verifier.verify(token)
        raise Unauthenticated(f"the bearer token is none that this server knows; {self._remedy()}")

    def _session(self, token: str) -> Principal:
        session = open_session(token, self._keyring, now_ms=self._now_ms())
        if session.stamp is None or self._passwords is None:
            return session.principal
        if self._passwords.get().stamp(session.principal.name) != session.stamp:
            raise Unauthenticated(
                "the session has ended with the password that it was given for: log in again"
            )
        return session.principal

    def _remedy(self) -> str:
        ways = []
        if self._tokens is not None or self._verifiers:
            ways.append("send a bearer token (token=…, FLOEBERG_TOKEN)")
        if self._passwords is not None:
            ways.append("log in (username=… and password=…, FLOEBERG_USER and FLOEBERG_PASSWORD)")
        if self._certificates:
            ways.append("show a client certificate (tls_cert=… and tls_key=…)")
        return ", or ".join(ways)
