from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.protocol.errors import BadConfig
from floeberg.server.config import CoordinatorConfig


def test_planning_for_rest_clients_is_off_and_stays_on_this_machine():
    assert not CoordinatorConfig().rest_planning
    assert CoordinatorConfig(rest_planning=True, http_host="::1").rest_planning
    with pytest.raises(BadConfig, match=r"'rest_planning'.*no TLS"):
        CoordinatorConfig(
            rest_planning=True, http_host="0.0.0.0", tls_cert="cert.pem", tls_key="key.pem"
        )
    assert CoordinatorConfig(rest_planning=True, http_host="0.0.0.0", insecure=True).insecure


def test_what_all_services_check_is_checked_too():
    with pytest.raises(BadConfig, match="go together"):
        CoordinatorConfig(tls_cert="cert.pem")


def test_beyond_loopback_a_coordinator_must_know_its_callers():
    tls = {"tls_cert": Path("cert.pem"), "tls_key": Path("key.pem")}
    with pytest.raises(BadConfig, match=r"'host' .* nothing says who may call"):
        CoordinatorConfig(host="0.0.0.0", **tls)

    assert CoordinatorConfig(host="127.0.0.1")
    assert CoordinatorConfig(host="0.0.0.0", insecure=True)
    for known_by in ("auth_tokens", "auth_passwords", "auth_client_roots", "auth_jwks"):
        assert CoordinatorConfig(host="0.0.0.0", **tls, **{known_by: Path("file")}).knows_callers


@pytest.mark.parametrize("given", [{"policies": Path("rules")}, {"bind_tickets": True}])
def test_what_differs_by_caller_needs_to_know_callers(given: dict[str, object]):
    with pytest.raises(BadConfig, match="needs to know who calls"):
        CoordinatorConfig(**given)


def test_workers_to_look_for_are_addresses_and_as_private_as_the_coordinator():
    tls = {"tls_cert": Path("cert.pem"), "tls_key": Path("key.pem")}
    for name in ("worker", "worker_dns"):
        assert CoordinatorConfig(**{name: ("grpc://workers:8815",)})
        assert CoordinatorConfig(**tls, **{name: ("grpc+tls://workers:8815",)})
        with pytest.raises(BadConfig, match=f"'{name}' workers is no Flight URI"):
            CoordinatorConfig(**{name: ("workers",)})
        with pytest.raises(BadConfig, match=f"'{name}' .* is clear text"):
            CoordinatorConfig(**tls, **{name: ("grpc://workers:8815",)})
