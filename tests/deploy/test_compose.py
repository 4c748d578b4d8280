"""The compose file: what Compose and floeberg are told, they take."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from floeberg.client import connect
from tests.support.compose import load_compose
from tests.support.containers import Container
from tests.support.deployment_page import make_secrets
from tests.support.trips import write_trips
from tests.support.waiting import wait_until

CHECKOUT = Path(__file__).parents[2]
FILE = CHECKOUT / "deploy" / "compose" / "compose.yaml"
SERVICES = ("coordinator", "worker")
# beyond draining: streams that are left are cut, coordinators told, and the server shut down
CUTTING_SECONDS = 20


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_trips(tmp_path / "lake" / "nyc" / "trips")
    return tmp_path / "lake"


@pytest.fixture
def compose(lake: Path) -> dict[str, Any]:
    return load_compose(FILE, {"LAKE": str(lake)})


def container_of(compose: dict[str, Any], name: str, secrets: dict[str, bytes]) -> Container:
    service = compose["services"][name]
    argv = [*service.get("entrypoint", ["floeberg"]), *service.get("command", [])]
    files = {f"/run/secrets/{secret}": secrets[secret] for secret in service["secrets"]}
    return Container(argv, {**service["environment"], "HOSTNAME": "127.0.0.1"}, files)


@pytest.fixture
def no_secrets() -> dict[str, bytes]:
    return {"keys": b"", "tokens": b""}


def test_the_file_is_what_compose_takes() -> None:
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema"),
            *("--builtin-schema", "vendor.compose-spec", str(FILE)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout


def test_the_directory_of_tables_must_be_named() -> None:
    with pytest.raises(KeyError, match="LAKE"):
        load_compose(FILE, {})


@pytest.mark.parametrize("name", SERVICES)
def test_floeberg_takes_what_a_container_tells_it(
    compose: dict[str, Any], name: str, no_secrets: dict[str, bytes], tmp_path: Path
) -> None:
    config = container_of(compose, name, no_secrets).config(tmp_path)

    grace = re.fullmatch(r"(\d+)s", compose["services"][name]["stop_grace_period"])
    assert grace is not None
    assert float(grace[1]) >= config.drain_seconds + CUTTING_SECONDS
    assert str(config.key_file) == "/run/secrets/keys"
    assert str(config.auth_tokens) == "/run/secrets/tokens"


def test_nothing_is_published_but_on_loopback(
    compose: dict[str, Any], no_secrets: dict[str, bytes], tmp_path: Path
) -> None:
    published = [p.split(":") for p in compose["services"]["coordinator"]["ports"]]
    config = container_of(compose, "coordinator", no_secrets).config(tmp_path)

    assert {address for address, _, _ in published} == {"127.0.0.1"}
    assert {int(port) for _, _, port in published} == {config.port, config.http_port}
    assert "ports" not in compose["services"]["worker"]


def test_two_workers_are_the_least(compose: dict[str, Any]) -> None:
    assert compose["services"]["worker"]["deploy"]["replicas"] >= 2


def test_a_client_outside_reads_through_the_coordinator(
    compose: dict[str, Any], tmp_path: Path
) -> None:
    token = make_secrets("deploy/compose", tmp_path)
    secrets = {
        name: (tmp_path / "deploy" / "compose" / secret["file"]).read_bytes()
        for name, secret in compose["secrets"].items()
    }
    here = {"FLOEBERG_ADVERTISE": "127.0.0.1"}
    coordinator_here = container_of(compose, "coordinator", secrets)
    with coordinator_here.running(tmp_path, "coordinator", **here) as coordinator:
        location = coordinator.addresses["coordinator"]
        with container_of(compose, "worker", secrets).running(
            tmp_path, "worker", FLOEBERG_COORDINATOR=location
        ) as worker:
            ready = f"{worker.addresses['http']}/readyz"
            wait_until(lambda: httpx.get(ready).status_code == 200, "the worker to register")
            with connect(location, token=token) as client:
                plan = client.table("nyc.trips").scan().planned()
                rows = sum(batch.num_rows for batch in plan.batches())

    assert rows == plan.info.total_records > 0
    # an endpoint without one is for the connection that is there
    assert [uri for endpoint in plan.info.endpoints for uri in endpoint.locations] == []
