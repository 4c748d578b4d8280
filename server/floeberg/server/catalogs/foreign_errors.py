"""What PyIceberg's catalogs raise, in floeberg's words.

Each catalog lets through the errors of the library below it (requests, SQLAlchemy, botocore,
thrift, …), most of which are not installed where they are not needed. So anything that a catalog
raises is caught where it enters, and what is not known here counts as the catalog being out of
reach: it did not answer, whatever the reason.
"""

from __future__ import annotations

import traceback

import pydantic
from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    UnauthorizedError,
)
from requests import HTTPError, RequestException

from floeberg.protocol.errors import AccessDenied, BadConfig, CatalogUnavailable, FloebergError
from floeberg.server.catalogs.secrets import SecretValues

NOT_FOUND = (NoSuchTableError, NoSuchNamespaceError, NoSuchIdentifierError)
"""What says that there is no such table, or could be none."""

_REFUSALS = (UnauthorizedError, ForbiddenError, AuthorizationExpiredError, OAuthError)
_MISTAKES = (NoSuchPropertyException, NotInstalledError, BadRequestError, ImportError, ValueError)
_AWS_REFUSALS = (
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "UnrecognizedClientException",
)
_MAX_MESSAGE = 300


def catalog_error(
    catalog: str, exc: Exception, secrets: SecretValues, *, opening: bool = False
) -> FloebergError:
    """Return the error to raise for what the catalog `catalog` raised, `opening` it or later.

    Its cause is `exc`, unless a traceback of that would show a secret.
    """
    what = _describe(exc, secrets)
    error: FloebergError
    if _is_refusal(exc):
        error = AccessDenied(f"catalog {catalog!r} refused floeberg's credentials: {what}")
    elif isinstance(exc, TimeoutError) and not isinstance(exc, RequestException):
        error = CatalogUnavailable(f"catalog {catalog!r} gave {exc}")
    elif isinstance(exc, NOT_FOUND) or (opening and _is_mistake(exc)):
        error = BadConfig(f"catalog {catalog!r} cannot be used as it is configured: {what}")
    else:
        error = CatalogUnavailable(f"catalog {catalog!r} does not answer: {what}")
    if not secrets.shows_in("".join(traceback.format_exception(exc))):
        error.__cause__ = exc
    return error


def _is_refusal(exc: Exception) -> bool:
    if isinstance(exc, HTTPError):
        return exc.response is not None and exc.response.status_code in (401, 403, 419)
    if isinstance(exc, ClientError):
        return exc.response.get("Error", {}).get("Code") in _AWS_REFUSALS
    return isinstance(exc, (*_REFUSALS, NoCredentialsError, PartialCredentialsError))


def _is_mistake(exc: Exception) -> bool:
    # an answer that cannot be read is a ValueError too, but of the catalog's making
    is_answer = isinstance(exc, (pydantic.ValidationError, RequestException))
    return isinstance(exc, _MISTAKES) and not is_answer


def _describe(exc: Exception, secrets: SecretValues) -> str:
    # pydantic's message quotes the answer, which may hold vended credentials
    message = (
        f"it sent {exc.title} with {exc.error_count()} errors"
        if isinstance(exc, pydantic.ValidationError)
        else str(exc)
    )
    line = " ".join(secrets.hide(message).split())
    if len(line) > _MAX_MESSAGE:
        line = line[: _MAX_MESSAGE - 1] + "…"
    return f"{type(exc).__name__}: {line}" if line else type(exc).__name__
