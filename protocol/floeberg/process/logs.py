"""Log lines for people or for machines: a constant message, with its values as fields.

Only a process's entry configures logging; libraries log through `logging.getLogger(__name__)` and
`extra`. Fields whose names say that they are secret are blanked, and so are credentials inside
URLs. What a thread logs while it works on a request has the request's id.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, TextIO

from floeberg.protocol.requests import current_request

LogFormat = Literal["human", "json"]

_BUILT_IN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_SECRET_NAME = re.compile(
    r"secret|password|passwd|token|credential|authorization|access.?key|private|(^|[_.-])keys?$",
    re.IGNORECASE,
)
# from the start of a word and of a scheme's length at most, or a long word takes quadratic time
_URL_CREDENTIALS = re.compile(r"(\b\w{1,32}://)[^/\s@]+@")
_HIDDEN = "***"

# sys.tracebacklimit is 0 in a service, so that none goes over the wire; logs state their own limit
_TRACEBACK_FRAMES = 50
_MAX_TEXT = 16_384


def configure_logging(level: str, form: LogFormat, stream: TextIO) -> None:
    """Send every log record of `level` and above to `stream`, replacing what was configured before.

    Other libraries are heard from `WARNING` on, whatever `level` is: their DEBUG lines hold
    headers and credentials.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    handler.addFilter(_own_or_serious)
    handler.addFilter(_with_request)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _own_or_serious(record: logging.LogRecord) -> bool:
    return record.name.split(".")[0] == "floeberg" or record.levelno >= logging.WARNING


def _with_request(record: logging.LogRecord) -> bool:
    """Give the record the id of the request that is worked on, and let it pass."""
    request = current_request()
    if request is not None and not hasattr(record, "request_id"):
        record.request_id = request.request_id
    return True


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return what was passed as `extra`, secrets blanked.

    >>> record = logging.makeLogRecord({"msg": "opened", "location": "s3://k:s@b/f", "token": "t"})
    >>> fields_of(record)
    {'location': 's3://***@b/f', 'token': '***'}
    """
    return {k: _safe(k, v) for k, v in record.__dict__.items() if k not in _BUILT_IN}


def _safe(name: str, value: object) -> object:
    if _SECRET_NAME.search(name):
        return _HIDDEN
    if isinstance(value, Mapping):
        return {str(k): _safe(str(k), v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe("", v) for v in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _safe_text(str(value))


def _safe_text(text: str) -> str:
    """Return `text` without credentials in URLs, cut where it is too long.

    Callers choose some of what is logged: a name of a megabyte must cost neither a line of a
    megabyte nor the time to search one.
    """
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}… ({len(text)} characters)"
    return _URL_CREDENTIALS.sub(rf"\1{_HIDDEN}@", text)


class _Formatter(logging.Formatter):
    # logging.Formatter declares the tuple with its own alias, which mypy and pyright both accept
    def formatException(  # noqa: N802
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        if ei[1] is None:
            return ""
        lines = traceback.format_exception(*ei, limit=_TRACEBACK_FRAMES)
        return _safe_text("".join(lines).rstrip("\n"))


class JsonFormatter(_Formatter):
    """One JSON object a line: time, level, process id, logger, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time_of(record),
            "level": record.levelname,
            # several services may log to one place, as below `floeberg up`
            "pid": record.process,
            "logger": record.name,
            "message": _safe_text(record.getMessage()),
        }
        for key, value in fields_of(record).items():
            line[key if key not in line else f"{key}_"] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class HumanFormatter(_Formatter):
    """Time, level, process id, message and `name=value` fields, for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        shown = [f"{k}={_quoted(v)}" for k, v in fields_of(record).items() if v is not None]
        message = _safe_text(record.getMessage())
        begin = f"{_time_of(record)} {record.levelname:<7} {record.process} {record.name} |"
        line = " ".join([begin, message, *shown])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _time_of(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(value: object) -> str:
    if isinstance(value, str):
        bare = value and not re.search(r"[\s\"=]", value) and value.isprintable()
        return value if bare else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, default=str, ensure_ascii=False)
