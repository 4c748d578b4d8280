from __future__ import annotations

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
