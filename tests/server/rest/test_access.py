"""Who may plan over HTTP, and which tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog import load_catalog

from tests.support.callers import ANN, BOB, secret_file, token_file
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema
from tests.support.orders import live_ids

NAMESPACES = "/v1/warehouse/namespaces"
ORDERS = f"{NAMESPACES}/db/tables/orders"
RULES = """
[[rule]]
principals = ["ann"]
tables = ["*"]

[[rule]]
principals = ["bob"]
tables = ["warehouse.db.*"]
rows = "region = 'eu'"
"""


@pytest.fixture(scope="module")
def guarded(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    folder = tmp_path_factory.mktemp("auth")
    policies = secret_file(folder / "policies.toml", RULES)
    table = TableWriter.create(warehouse / "hr" / "pay", schema({"id": required("long")}))
    table.append([{"id": n} for n in range(3)])
    with local_fleet(
        warehouse,
        workers=0,
        rest_planning=True,
        rest_page_files=1,
        auth_tokens=token_file(folder),
        policies=policies,
    ) as fleet:
        yield fleet


def address(fleet: LocalFleet) -> str:
    return str(fleet.coordinator.addresses()["http"])


def client_of(fleet: LocalFleet, token: str | None) -> httpx.Client:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=address(fleet), timeout=30, headers=headers)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"].split("]")[0].strip("[")


REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/config", None),
    ("GET", NAMESPACES, None),
    ("GET", f"{NAMESPACES}/db", None),
    ("GET", f"{NAMESPACES}/db/tables", None),
    ("GET", ORDERS, None),
    ("POST", f"{ORDERS}/plan", {}),
    ("GET", f"{ORDERS}/plan/made-up", None),
    ("DELETE", f"{ORDERS}/plan/made-up", None),
    ("POST", f"{ORDERS}/tasks", {"plan-task": "made-up"}),
]


@pytest.mark.parametrize("token", [None, "made-up-made-up-made-up"])
def test_nothing_is_answered_to_who_is_not_known(guarded: LocalFleet, token: str | None):
    with client_of(guarded, token) as http:
        for method, path, body in REQUESTS:
            answer = http.request(method, path, json=body)

            assert refusal(answer) == (401, "UNAUTHENTICATED")
            assert "made-up" not in answer.text
        assert http.get("/healthz").status_code == 200


def test_pyiceberg_sends_its_token(guarded: LocalFleet):
    options = {"type": "rest", "uri": address(guarded), "token": ANN}
    table = load_catalog("lake", **options).load_table("db.orders")

    assert table.scan(row_filter="id >= 5000").to_arrow().num_rows == sum(
        number >= 5000 for number in live_ids()
    )


def test_a_restricted_caller_plans_nothing_over_http(guarded: LocalFleet):
    """REST clients read the files themselves: there, nothing would keep rows back."""
    with client_of(guarded, ANN) as ann, client_of(guarded, BOB) as bob:
        plan = ann.post(f"{ORDERS}/plan", json={}).json()
        assert plan["status"] == "completed"
        for method, path, body in (
            ("GET", ORDERS, None),
            ("POST", f"{ORDERS}/plan", {}),
            ("GET", f"{ORDERS}/plan/{plan['plan-id']}", None),
            ("DELETE", f"{ORDERS}/plan/{plan['plan-id']}", None),
            ("POST", f"{ORDERS}/tasks", {"plan-task": plan["plan-tasks"][0]}),
        ):
            assert refusal(bob.request(method, path, json=body)) == (403, "NOT_PERMITTED")
        task = {"plan-task": plan["plan-tasks"][0]}
        assert ann.post(f"{ORDERS}/tasks", json=task).status_code == 200


def test_a_table_that_is_kept_back_is_told_from_none_by_nothing(guarded: LocalFleet):
    with client_of(guarded, ANN) as ann, client_of(guarded, BOB) as bob:
        names = [n for [n] in bob.get(NAMESPACES).json()["namespaces"]]
        everything = [n for [n] in ann.get(NAMESPACES).json()["namespaces"]]
        assert names == ["db"]
        assert "hr" in everything
        assert refusal(bob.get(f"{NAMESPACES}/hr/tables"))[0] == 404
        plan = ann.post(f"{NAMESPACES}/hr/tables/pay/plan", json={}).json()
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/plan", {}),
            ("GET", f"/plan/{plan['plan-id']}", None),
            ("POST", "/tasks", {"plan-task": "x"}),
        ):
            there = bob.request(method, f"{NAMESPACES}/hr/tables/pay{path}", json=body)
            nowhere = bob.request(method, f"{NAMESPACES}/hr/tables/pai{path}", json=body)
            assert refusal(there) == (404, "UNKNOWN_TABLE")
            assert there.text == nowhere.text.replace("pai", "pay")
