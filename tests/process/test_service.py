from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.process.config import load_config
from floeberg.process.service import ServiceConfig, advertised_location
from floeberg.protocol.errors import BadConfig
from floeberg.protocol.sealing import Keyring


def test_the_defaults_are_loopback_and_free_ports() -> None:
    config = ServiceConfig()

    assert config.bind_location == "grpc+tcp://127.0.0.1:0"
    assert config.http_host == "127.0.0.1"


@pytest.mark.parametrize("name", ["host", "http_host"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "worker.lake"])
def test_other_addresses_than_loopback_need_tls_or_a_word(name: str, host: str) -> None:
    with pytest.raises(BadConfig, match=f"'{name}' {host} is open .*--insecure"):
        load_config(ServiceConfig, flags={name: host})

    load_config(ServiceConfig, flags={name: host, "insecure": True})
    load_config(ServiceConfig, flags={name: host, "tls_cert": "c.pem", "tls_key": "k.pem"})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_loopback_is_open_to_this_machine_only(host: str) -> None:
    assert ServiceConfig(host=host).host == host


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(BadConfig, match="go together"):
        load_config(ServiceConfig, flags={"tls_cert": "c.pem"})


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    config = ServiceConfig(tls_cert=tmp_path / "c.pem", tls_key=tmp_path / "k.pem")

    with pytest.raises(BadConfig, match=r"'tls_cert': .*c\.pem cannot be read"):
        config.tls_pair()


def test_keys_come_from_a_file_or_a_value(tmp_path: Path) -> None:
    keyring = Keyring.generate()
    keyring.write(tmp_path / "keys")

    assert ServiceConfig(key_file=tmp_path / "keys").keyring() == keyring
    assert ServiceConfig(key=keyring.to_text()).keyring() == keyring
    with pytest.raises(BadConfig, match="need a shared key"):
        ServiceConfig().keyring()
    with pytest.raises(BadConfig, match="exclude each other"):
        ServiceConfig(key=keyring.to_text(), key_file=tmp_path / "keys")


@pytest.mark.parametrize(
    ("advertise", "tls", "expected"),
    [
        (None, False, "grpc+tcp://127.0.0.1:5"),
        ("w1", False, "grpc+tcp://w1:5"),
        ("w1:9", True, "grpc+tls://w1:9"),
        ("[::1]:9", False, "grpc+tcp://[::1]:9"),
        ("fd00::7", False, "grpc+tcp://[fd00::7]:5"),
        ("grpc://w1:9", False, "grpc://w1:9"),
        ("grpc+tls://proxy:443", False, "grpc+tls://proxy:443"),
    ],
)
def test_the_advertised_address_is_not_the_bound_one(
    advertise: str | None, tls: bool, expected: str
) -> None:
    assert advertised_location(advertise, "127.0.0.1", 5, tls=tls) == expected


def test_an_address_that_nobody_can_dial_is_not_advertised() -> None:
    with pytest.raises(BadConfig, match=r"can't dial 0\.0\.0\.0"):
        advertised_location(None, "0.0.0.0", 5, tls=False)


def test_clear_text_is_never_advertised_next_to_tls() -> None:
    with pytest.raises(BadConfig, match="clear text"):
        advertised_location("grpc+tcp://w1:9", "0.0.0.0", 5, tls=True)
    with pytest.raises(BadConfig, match="no Flight URI"):
        advertised_location("http://w1:9", "0.0.0.0", 5, tls=False)


@pytest.mark.parametrize(
    "advertise",
    ["", "worker 1", "grpc://w1", "grpc://w1:0", "w1:99999", "grpc://[::1:5", "grpc://w1:9/x"],
)
def test_what_is_no_address_is_not_advertised(advertise: str) -> None:
    with pytest.raises(BadConfig, match="no Flight URI"):
        advertised_location(advertise, "0.0.0.0", 5, tls=False)
