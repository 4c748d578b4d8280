from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from floeberg.process.config import (
    config_from_command_line,
    load_config,
    option,
    options_table,
)
from floeberg.protocol.errors import BadConfig


@dataclass(frozen=True, kw_only=True)
class Config:
    port: int = option(8815, "the port", minimum=0)
    lease_seconds: float = option(10.0, "how long a lease lasts", minimum=0.1, maximum=86400)
    insecure: bool = option(False, "serve strangers")
    key_file: Path | None = option(None, "the keys")
    key: str | None = option(None, "the keys themselves", secret=True)
    log_format: Literal["human", "json"] = option("human", "how logs look")
    coordinator: tuple[str, ...] = option((), "whom to register with")
    rebase: Mapping[str, str] = option({}, "moved prefixes")
    catalogs: Mapping[str, object] = option({}, "catalogs by name")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "floeberg.toml"
    path.write_text(
        """
        port = 1
        lease_seconds = 2
        insecure = true
        coordinator = ["grpc://a:1", "grpc://b:1"]
        [rebase]
        "file:/old" = "/new"
        [catalogs.lake]
        type = "sql"
        """
    )
    return path


def test_without_anything_given_the_defaults_hold() -> None:
    assert load_config(Config) == Config()


def test_a_file_gives_each_type(file: Path) -> None:
    config = load_config(Config, file=file)

    assert config == Config(
        port=1,
        lease_seconds=2.0,
        insecure=True,
        coordinator=("grpc://a:1", "grpc://b:1"),
        rebase={"file:/old": "/new"},
        catalogs={"lake": {"type": "sql"}},
    )


def test_the_environment_wins_over_the_file_and_flags_over_both(file: Path) -> None:
    environ = {"FLOEBERG_PORT": "2", "FLOEBERG_LEASE_SECONDS": "3.5", "FLOEBERG_INSECURE": "off"}

    config = load_config(Config, file=file, environ=environ, flags={"port": 3, "key_file": None})

    assert (config.port, config.lease_seconds, config.insecure) == (3, 3.5, False)


def test_the_environment_holds_lists_with_commas_or_as_json() -> None:
    commas = load_config(Config, environ={"FLOEBERG_COORDINATOR": "grpc://a:1, grpc://b:1"})
    as_json = load_config(Config, environ={"FLOEBERG_COORDINATOR": '["grpc://a:1", "a,b"]'})
    pairs = load_config(Config, environ={"FLOEBERG_REBASE": "s3://a=/x,s3://b=/y"})

    assert commas.coordinator == ("grpc://a:1", "grpc://b:1")
    assert as_json.coordinator == ("grpc://a:1", "a,b")
    assert pairs.rebase == {"s3://a": "/x", "s3://b": "/y"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lease_secnds = 1", "unknown key 'lease_secnds': did you mean 'lease_seconds'?"),
        ("port = 'many'", "'port' in .*: 'many' is not a whole number"),
        ("port = true", "'port' in .* is not a whole number"),
        ("port = 1.5", "is not a whole number"),
        ("port = -1", "'port' in .*: -1 is less than 0"),
        ("lease_seconds = 0", "0.0 is less than 0.1"),
        ("lease_seconds = 1e9", "1000000000.0 is more than 86400"),
        ("lease_seconds = nan", "'lease_seconds' in .*: nan is not finite"),
        ("lease_seconds = 'inf'", "is not finite"),
        ("insecure = 'maybe'", "is neither true nor false"),
        ("log_format = 'xml'", "is none of human, json"),
        ("coordinator = [1]", "is not a list of texts"),
        ("catalogs = 'x'", "is not a table"),
        ("port = ", "is not TOML"),
    ],
)
def test_what_a_file_has_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)

    with pytest.raises(BadConfig, match=message):
        load_config(Config, file=file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"gone\.toml cannot be read: No such file"):
        load_config(Config, file=tmp_path / "gone.toml")


def test_a_misspelt_variable_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"'lease_second': did you mean 'lease_seconds'.*variable"):
        load_config(Config, environ={"FLOEBERG_LEASE_SECOND": "1"})


def test_variables_of_others_are_left_alone() -> None:
    environ = {
        "FLOEBERG_SERVER": "grpc://x:1",
        "FLOEBERG_COORDINATOR_SERVICE_HOST": "10.0.0.1",
        "FLOEBERG_PORT": "tcp://10.0.0.1:8815",
        "PORT": "1",
    }

    assert load_config(Config, environ=environ) == Config()


def test_a_secret_is_neither_a_flag_nor_shown() -> None:
    config = load_config(Config, environ={"FLOEBERG_KEY": "k1:abcdef"})

    assert config.key == "k1:abcdef"
    assert "abcdef" not in repr(config)
    with pytest.raises(
        BadConfig, match="'key' is no flag: it is for the file, or for the variable FLOEBERG_KEY"
    ):
        config_from_command_line(Config, ["--key", "x"], {}, program="p", summary="s")


def test_a_command_line_is_read(file: Path) -> None:
    argv = ["--config", str(file), "--port", "9", "--no-insecure", "--coordinator", "grpc://c:1"]
    argv += ["--coordinator=grpc://d:1", "--rebase", "a=b=c"]

    config = config_from_command_line(Config, argv, {}, program="p", summary="s")

    assert (config.port, config.insecure) == (9, False)
    assert config.coordinator == ("grpc://c:1", "grpc://d:1")
    assert config.rebase == {"a": "b=c"}


def test_help_says_what_holds_when_a_flag_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        config_from_command_line(Config, ["--help"], {}, program="p", summary="s")

    shown = " ".join(capsys.readouterr().out.split())
    assert "--port N the port [default: 8815]" in shown
    assert "serve strangers [default: false]" in shown
    assert "--key-file PATH the keys --log-format" in shown
    assert "FLOEBERG_DRAIN_SECONDS" in shown


def test_the_environment_may_name_the_file(file: Path) -> None:
    environ = {"FLOEBERG_CONFIG": str(file)}

    assert config_from_command_line(Config, [], environ, program="p", summary="s").port == 1


def test_a_misspelt_flag_is_named() -> None:
    with pytest.raises(BadConfig, match="unknown key 'lease_secs': did you mean 'lease_seconds'"):
        config_from_command_line(Config, ["--lease-secs", "1"], {}, program="p", summary="s")


def test_a_key_without_a_default_must_be_given() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Strict:
        name: str = option(doc="what it is called")

    with pytest.raises(BadConfig, match="'name' must be given: --name or FLOEBERG_NAME"):
        load_config(Strict)


def test_the_table_for_the_documentation_lists_every_key() -> None:
    table = options_table(Config)

    assert "| `port` | `8815` | the port |" in table
    assert "| `key` (file and environment) | none |" in table
    assert "| `catalogs` (file only) | none |" in table
