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
from typing import Any, TypeAlias
from urllib.parse import urljoin, urlsplit

from pyiceberg.catalog.rest import Capability, Endpoints, RestCatalog
from pyiceberg.catalog.rest.auth import AuthManager
from pyiceberg.exceptions import NoSuchTableError
from requests import Response, Session
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
_NO_SUCH_ENDPOINT = (400, 404, 405, 406, 501)

_REFRESH_ENDPOINTS = (
    "client.refresh-credentials-endpoint",
    "gcs.oauth2.refresh-credentials-endpoint",
    "adls.refresh-credentials-endpoint",
)
_REFRESH_ENABLED = (
    "client.refresh-credentials-enabled",
    "gcs.oauth2.refresh-credentials-enabled",
    "adls.refresh-credentials-enabled",
)


Credentials: TypeAlias = tuple[tuple[str, Mapping[str, object]], ...]
"""What a catalog lends by location prefix; secret."""


@dataclass(frozen=True, slots=True)
class RestTable:
    """What a catalog answers for a table.

    `metadata` is JSON, as sent. `config` and `credentials` reach its files: the second by location
    prefix, and before the first.
    """

    metadata: Mapping[str, object]
    metadata_location: str | None
    config: Mapping[str, object] = field(repr=False)
    credentials: Credentials = field(repr=False)


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
        response = self._get(self._url(Endpoints.load_table, identifier))
        if response.status_code in _NOT_FOUND:
            raise NoSuchTableError(".".join(identifier))
        response.raise_for_status()
        if response.is_redirect:
            raise ValueError("it sends requests on to another server, which is not asked")
        return _parse(json.loads(response.content))

    def load_credentials_answer(
        self, identifier: tuple[str, ...], config: Mapping[str, object]
    ) -> Credentials | None:
        """Return the credentials that the catalog lends for a table now, by location prefix; None
        where it has no way to ask for them alone.

        `config` is what came with the table, which may say where to ask. Raises requests' own
        errors, and `ValueError`.
        """
        url = self._credentials_url(identifier, config)
        if url is None:
            return None
        response = self._get(url)
        if response.status_code in _NO_SUCH_ENDPOINT or response.is_redirect:
            return None
        response.raise_for_status()
        return _credentials(json.loads(response.content))

    def _credentials_url(
        self, identifier: tuple[str, ...], config: Mapping[str, object]
    ) -> str | None:
        for key in _REFRESH_ENDPOINTS:
            if isinstance(endpoint := config.get(key), str) and endpoint:
                base = str(self.uri).rstrip("/")
                url = endpoint if "://" in endpoint else f"{base}/{endpoint.lstrip('/')}"
                # the catalog's token is for nobody else
                return url if _origin(url) == _origin(base) else None
        if Capability.V1_LOAD_CREDENTIALS not in self._supported_endpoints:
            return None
        return self._url(Endpoints.load_credentials, identifier)

    def _url(self, endpoint: str, identifier: tuple[str, ...]) -> str:
        parts = self._split_identifier_for_path(identifier)
        return self.url(endpoint, prefixed=True, **parts)

    def _get(self, url: str) -> Response:
        response = self._session.get(url)
        if response.status_code in _TOKEN_REFUSED:
            self._refresh_token()  # it may have expired
            response = self._session.get(url)
        return response

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
        # another server would get the headers that the catalog is configured with, which may be
        # secret, and what it answers would be believed
        session.get_redirect_target = partial(  # type: ignore[method-assign]
            _redirect_target, session
        )
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRY))
        return session


def _parse(answer: object) -> RestTable:
    if not isinstance(answer, Mapping) or not isinstance(answer.get("metadata"), Mapping):
        raise ValueError("the answer holds no table metadata")
    location = answer.get("metadata-location")
    return RestTable(
        metadata=answer["metadata"],
        metadata_location=location if isinstance(location, str) else None,
        config=_mapping(answer.get("config")),
        credentials=_credentials(answer),
    )


def _credentials(answer: object) -> Credentials:
    if not isinstance(answer, Mapping):
        raise ValueError("the answer holds no credentials")
    return tuple(
        (str(c.get("prefix", "")), _mapping(c.get("config")))
        for c in answer.get("storage-credentials") or ()
        if isinstance(c, Mapping)
    )


def may_be_renewed(config: Mapping[str, object]) -> bool:
    """Say whether a catalog lets the credentials be renewed that it lends with `config`."""
    return not any(str(config.get(key)).lower() == "false" for key in _REFRESH_ENABLED)


def _redirect_target(session: Session, response: Response) -> str | None:
    """Return where a redirect leads on the same server, None where it leads elsewhere or is
    none."""
    target = Session.get_redirect_target(session, response)
    if target is None or session.should_strip_auth(response.url, urljoin(response.url, target)):
        return None
    return target


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
