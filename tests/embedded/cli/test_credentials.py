from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from floeberg.embedded.cli.main import app
from floeberg.process.auth.passwords import PasswordList
from floeberg.process.auth.principals import Principal
from floeberg.process.auth.tokens import TokenList


def run(*arguments: str, input: str | None = None) -> str:
    done = CliRunner().invoke(app, list(arguments), input=input)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_a_token_is_printed_and_its_hash_kept(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text("# of the team")
    file.chmod(0o644)

    tokens = [run("token", str(file), name).strip() for name in ("ann", "bob", "ann")]

    kept = file.read_text()
    listed = TokenList.parse(kept)
    found = [listed.find(token) for token in tokens]
    assert found == [Principal(name, "token") for name in ("ann", "bob", "ann")]
    assert kept.startswith("# of the team\n")
    assert not any(token in kept for token in tokens)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_password_is_read_from_standard_input_and_its_hash_kept(tmp_path: Path):
    file = tmp_path / "users"
    told = run("password", str(file), "ann", input="first\n")
    file.write_text("# people\n" + file.read_text())
    told += run("password", str(file), "bob", input="bob's\n")
    told += run("password", str(file), "ann", input="second\n")

    kept = file.read_text()
    users = PasswordList.parse(kept)
    assert users.find("ann", "second") == Principal("ann", "password")
    assert users.find("ann", "first") is None
    assert users.find("bob", "bob's") == Principal("bob", "password")
    assert kept.startswith("# people\n")
    assert not any(secret in kept + told for secret in ("first", "second", "bob's"))
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "input"),
    [
        (["token", "{file}", "a:b"], None),
        (["password", "{file}", "#ann"], "x\n"),
        (["password", "{file}", "ann"], "\n"),
        (["password", "{folder}/none/users", "ann"], "x\n"),
        (["token", "{folder}", "ann"], None),
    ],
)
def test_what_cannot_be_written_is_an_error_in_one_line(
    tmp_path: Path, arguments: list[str], input: str | None
):
    places = {"file": str(tmp_path / "file"), "folder": str(tmp_path)}
    done = CliRunner().invoke(app, [a.format(**places) for a in arguments], input=input)

    assert done.exit_code == 2
    assert done.stderr.startswith("error [BAD_CONFIG]")
    assert list(tmp_path.iterdir()) == []
