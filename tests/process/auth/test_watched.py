from __future__ import annotations

import os
from pathlib import Path

import pytest

from floeberg.process.auth.watched import WatchedFile
from floeberg.protocol.errors import BadConfig
from tests.support.clock import Clock


def parse(text: str) -> str:
    if "bad" in text:
        raise BadConfig("line 1: bad")
    return text


def replace(path: Path, text: str) -> None:
    """Put a new file in the place of one, as editors and Kubernetes do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    os.replace(new, path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    replace(path, "one")
    return path


def test_a_change_is_seen_a_second_later(path: Path):
    clock = Clock()
    file = WatchedFile("auth_tokens", path, parse, clock=clock)
    replace(path, "two")

    at_once, clock.seconds = file.get(), 1.5

    assert (at_once, file.get()) == ("one", "two")


@pytest.mark.parametrize("spoil", ["bad", None], ids=["unreadable text", "no file"])
def test_what_was_read_before_stays_while_the_file_cannot_be_used(
    path: Path, spoil: str | None, caplog: pytest.LogCaptureFixture
):
    clock = Clock()
    file = WatchedFile("auth_tokens", path, parse, clock=clock)
    if spoil is None:
        path.unlink()
    else:
        replace(path, spoil)

    found = []
    for clock.seconds in (2.0, 4.0, 6.0):
        found.append(file.get())
    replace(path, "three")
    clock.seconds = 8.0

    assert found == ["one"] * 3
    assert file.get() == "three"
    assert [r.levelname for r in caplog.records].count("ERROR") == 1


def test_a_file_that_cannot_be_used_from_the_start_is_refused(path: Path, tmp_path: Path):
    replace(path, "bad")

    with pytest.raises(BadConfig, match=r"'auth_tokens': .*line 1: bad"):
        WatchedFile("auth_tokens", path, parse)
    with pytest.raises(BadConfig, match="cannot be read"):
        WatchedFile("auth_tokens", tmp_path / "none", parse)


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o660, 0o644])
def test_a_secret_file_is_not_for_others(path: Path, mode: int):
    path.chmod(mode)

    with pytest.raises(BadConfig, match="chmod 600"):
        WatchedFile("auth_tokens", path, parse, secret=True)
    assert WatchedFile("policies", path, parse).get() == "one"


def test_bytes_that_are_no_text_are_not_shown(path: Path):
    path.write_bytes(b"hush\xff")

    with pytest.raises(BadConfig) as refused:
        WatchedFile("auth_tokens", path, parse)
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None
