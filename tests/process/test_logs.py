from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Iterator

import pytest

from floeberg.process.logs import LogFormat, configure_logging

logger = logging.getLogger("floeberg.test")


@pytest.fixture(autouse=True)
def root_logger_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(form: LogFormat, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    configure_logging(level, form, stream)
    return stream


def test_json_lines_hold_the_fields() -> None:
    stream = logged("json")

    logger.info("worker joined", extra={"worker": "w1", "capacity": 4, "level": "odd"})

    line = json.loads(stream.getvalue())
    assert line["message"] == "worker joined"
    assert line["level"] == "INFO"
    assert line["pid"] == os.getpid()
    assert line["worker"] == "w1"
    assert line["capacity"] == 4
    assert line["level_"] == "odd"
    assert line["time"].endswith("Z")


def test_human_lines_quote_what_needs_it() -> None:
    stream = logged("human")

    logger.warning("odd name", extra={"table": "a b", "path": "/x", "bytes": 3})

    begin = f"WARNING {os.getpid()} floeberg.test | odd name"
    assert f'{begin} table="a b" path=/x bytes=3' in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "human"])
def test_secrets_are_blanked(form: LogFormat) -> None:
    stream = logged(form)
    extra = {
        "token": "hunter2",
        "properties": {"s3.secret-access-key": "hunter2", "s3.region": "eu-1"},
        "uri": "postgresql://me:hunter2@db/x",
        "key": "hunter2",
    }

    logger.info("catalog at %s", "https://u:hunter2@host/", extra=extra)

    assert "hunter2" not in stream.getvalue()
    assert "eu-1" in stream.getvalue()
    assert "host" in stream.getvalue()


def test_a_huge_value_is_cut() -> None:
    """Callers choose some of what is logged; what searches it must not take quadratic time."""
    stream = logged("json")

    logger.info("scan planned", extra={"table": "x" * 10_000_000})

    assert len(stream.getvalue()) < 20_000
    assert "10000000 characters" in stream.getvalue()


def test_a_traceback_is_logged_though_the_process_shows_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = logged("json")
    monkeypatch.setattr(sys, "tracebacklimit", 0, raising=False)

    try:
        raise ValueError("boom")
    except ValueError:
        logger.exception("it failed")

    assert "test_logs.py" in json.loads(stream.getvalue())["exception"]


def test_other_libraries_are_heard_only_when_it_is_serious() -> None:
    stream = logged("human", "debug")

    logging.getLogger("botocore.auth").debug("signing with a secret")
    logging.getLogger("botocore.auth").warning("slow")
    logger.debug("ours")

    assert "signing" not in stream.getvalue()
    assert "slow" in stream.getvalue()
    assert "ours" in stream.getvalue()
