"""Keep a catalog's secrets out of what people and logs see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, urlsplit

_SECRET_KEY = re.compile(
    r"secret|password|passwd|token|credential|account-key|access-key|sas|connection-string|cert|auth"
    r"|api-key|private",
    re.IGNORECASE,
)
_HIDDEN = "***"
# shorter than this, a value stands in too many innocent places
_SHORTEST = 4


class SecretValues:
    """The values of a catalog's properties that must not be shown; the repr shows none.

    Values are secret by what their keys are called, and so is the password in a URI.
    """

    def __init__(self, properties: Mapping[str, object]) -> None:
        values = {v for v in _secret_values(properties) if len(v) >= _SHORTEST}
        spellings = values | {quote(v, safe="") for v in values} | {quote_plus(v) for v in values}
        longest_first = sorted(spellings, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if values else None

    def hide(self, text: str) -> str:
        """Return `text` with every secret replaced.

        >>> SecretValues({"credential": "id:hush!"}).hide("bad login id / hush!")
        'bad login id / ***'
        """
        return self._pattern.sub(_HIDDEN, text) if self._pattern else text

    def shows_in(self, text: str) -> bool:
        return self._pattern is not None and self._pattern.search(text) is not None


def _secret_values(properties: Mapping[str, object], under_secret: bool = False) -> Iterator[str]:
    for key, value in properties.items():
        is_secret = under_secret or _SECRET_KEY.search(key) is not None
        if isinstance(value, Mapping):
            yield from _secret_values(value, is_secret)
        elif isinstance(value, str):
            password = _password(value)
            if password:
                yield from (password, unquote(password))
            if is_secret and "://" not in value:
                yield value
                yield from value.split(":", 1)[1:]  # the secret half of a client's credential
                for part in value.split(";"):  # of a connection string, key=value;…
                    yield from part.split("=", 1)[1:]


def _password(value: str) -> str | None:
    try:
        return urlsplit(value).password
    except ValueError:
        return None
