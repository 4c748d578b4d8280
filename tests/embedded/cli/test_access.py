"""How commands say who asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floeberg.embedded.cli.main import app
from tests.support.callers import ANN, password_file, secret_file, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.orders import live_ids

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def guarded(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    folder = tmp_path_factory.mktemp("auth")
    passwords = password_file(folder, ann=PASSWORD)
    auth = {"auth_tokens": token_file(folder), "auth_passwords": passwords}
    with local_fleet(warehouse, workers=0, **auth) as fleet:
        fleet.add_worker(**auth)
        yield fleet


def count(fleet: LocalFleet, *arguments: str, **environment: str) -> str:
    command = ["count", "db.orders", "--filter", "id >= 0", "--server", fleet.location, *arguments]
    done = CliRunner().invoke(app, command, env=environment)
    assert "hush" not in done.output
    return done.stdout.strip() or done.stderr


def test_each_way_to_say_who_asks_is_taken(guarded: LocalFleet, tmp_path: Path):
    file = secret_file(tmp_path / "token", f"{ANN}\n")
    told = [
        count(guarded, "--token", ANN),
        count(guarded, FLOEBERG_TOKEN=ANN),
        count(guarded, "--token-file", file),
        count(guarded, FLOEBERG_TOKEN_FILE=file),
        count(guarded, "--user", "ann", FLOEBERG_PASSWORD=PASSWORD),
        count(guarded, FLOEBERG_USER="ann", FLOEBERG_PASSWORD=PASSWORD),
    ]

    assert told == [str(len(live_ids()))] * 6


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        ([], {}, "error [UNAUTHENTICATED] this server must know who calls; send a bearer token"),
        (["--token", "hush"], {}, "error [UNAUTHENTICATED] the bearer token is none that this"),
        (
            ["--user", "ann"],
            {"FLOEBERG_PASSWORD": "hush"},
            "error [UNAUTHENTICATED] the username or the password is wrong",
        ),
        (["--user", "ann"], {}, "error [BAD_CONFIG] no password for ann: put it into"),
        (["--user", "ann", "--token", "hush"], {}, "error [BAD_CONFIG] give a token, or --user"),
        (["--token-file", "/none"], {}, "error [BAD_CONFIG] --token-file /none cannot be read"),
    ],
)
def test_a_refusal_says_what_to_do(
    guarded: LocalFleet, arguments: list[str], environment: dict[str, str], told: str
):
    assert count(guarded, *arguments, **environment).startswith(told)


def test_credentials_are_told_apart_by_the_exit_status(guarded: LocalFleet):
    assert CliRunner().invoke(app, ["tables", "--server", guarded.location]).exit_code == 3


def test_a_table_that_is_opened_in_place_asks_for_no_password(warehouse: Path):
    table = str(warehouse / "db" / "orders")
    done = CliRunner().invoke(app, ["count", "--table", table], env={"FLOEBERG_USER": "ann"})

    assert done.stdout == f"{len(live_ids())}\n"
