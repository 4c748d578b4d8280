"""A REST catalog's answers as they were sent.

PyIceberg parses the metadata that a REST catalog sends with a table: keys that it does not know are
lost, and a table with a type that it does not know cannot be loaded at all. So the request is
PyIceberg's, with its authentication, and the answer is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyiceberg.catalog.rest import Endpoints, RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.exceptions import NoSuchTableError
from requests import Session
from requests.adapters import HTTPAdapter
from urllib3 import Retry

_CONNECT_SECONDS = 5.0
# for a connection that the server has closed meanwhile, and a proxy that restarts
_RETRY = Retry(
    total=3,
    backoff_factor=0.2,
    status_forcelist=(502, 503, 504),
    allowed_methods=("GET", "HEAD"),
    raise_on_status=False,
)
# a server may call a name that it does not allow a bad request; the rest of it is always the same
_NOT_FOUND = (400, 404)
_TOKEN_REFUSED = (401, 419)


@dataclass(frozen=True, slots=True)
class RestTable:
    """What a catalog answers for a table.

    `metadata` is JSON, as sent. `config` and `credentials` reach its files: the second by location
    prefix, and before the first.
    """

    metadata: Mapping[str, object]
    metadata_location: str | None
    config: Mapping[str, object] = field(repr=False)
    credentials: tuple[tuple[str, Mapping[str, object]], ...] = field(repr=False)


class RestTables(RestCatalog):
    """PyIceberg's REST catalog, with a time limit for each request, and whole answers.

    `read_seconds` is how long the catalog may take between two parts of an answer.
    """

    def __init__(self, name: str, read_seconds: float, **properties: Any) -> None:
        self._timeout = (_CONNECT_SECONDS, read_seconds)
        super().__init__(name, **properties)

    def load_answer(self, identifier: tuple[str, ...]) -> RestTable:
        """Return the answer for a table. Raises `NoSuchTableError`, `NoSuchIdentifierError`,
        requests' own errors, and `ValueError` for an answer that is no table."""
        url = self.url(
            Endpoints.load_table, prefixed=True, **self._split_identifier_for_path(identifier)
        )
        response = self._session.get(url)
        if response.status_code in _TOKEN_REFUSED:
            self._refresh_token()  # it may have expired
            response = self._session.get(url)
        if response.status_code in _NOT_FOUND:
            raise NoSuchTableError(".".join(identifier))
        response.raise_for_status()
        return _parse(json.loads(response.content))

    # The rest is how PyIceberg builds its session; it asks for a token while doing so.

    def _create_session(self) -> Session:
        return self._limited(super()._create_session())

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        return super()._create_legacy_oauth2_auth_manager(self._limited(session))

    def _warn_oauth_tokens_deprecation(self) -> None:
        """Say nothing: the notice is for those who write PyIceberg's configuration."""

    def _limited(self, session: Session) -> Session:
        # requests waits for ever unless each request says otherwise
        session.request = partial(  # type: ignore[method-assign]
            Session.request, session, timeout=self._timeout
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRY))
        return session


def _parse(answer: object) -> RestTable:
    if not isinstance(answer, Mapping) or not isinstance(answer.get("metadata"), Mapping):
        raise ValueError("the answer holds no table metadata")
    location = answer.get("metadata-location")
    credentials = tuple(
        (str(c.get("prefix", "")), _mapping(c.get("config")))
        for c in answer.get("storage-credentials") or ()
        if isinstance(c, Mapping)
    )
    return RestTable(
        metadata=answer["metadata"],
        metadata_location=location if isinstance(location, str) else None,
        config=_mapping(answer.get("config")),
        credentials=credentials,
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
