"""The endpoints over HTTP, as the REST catalog's OpenAPI document has them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from pyiceberg.catalog.rest.scan_planning import PlanCompleted, ScanTasks

from floeberg.server.catalogs import Catalogs, LoadedTable, WarehouseCatalog
from floeberg.server.config import CoordinatorConfig
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.gate import NO_HURRY
from tests.support.lake import TableWriter, required, schema
from tests.support.waiting import wait_until

COLUMNS = schema({"id": required("long"), "region": "string"})
ORDERS = "/v1/warehouse/namespaces/db/tables/orders"


@pytest.fixture
def http(coordinator: LocalFleet) -> Iterator[httpx.Client]:
    with client_of(coordinator) as client:
        yield client


def client_of(fleet: LocalFleet) -> httpx.Client:
    return httpx.Client(base_url=str(fleet.coordinator.addresses()["http"]), timeout=30)


def write(warehouse: Path, name: str, files: int, **options: Any) -> TableWriter:
    table = TableWriter.create(
        warehouse / "paged" / name, COLUMNS, [("region", "identity")], **options
    )
    rows = [{"id": n, "region": f"r{n:03}"} for n in range(files)]
    table.append(rows)
    return table


def plan(http: httpx.Client, table: str = ORDERS, **members: Any) -> dict[str, Any]:
    answer = http.post(f"{table}/plan", json={k.replace("_", "-"): v for k, v in members.items()})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def error_of(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    return answer.status_code, error["type"], error["message"]


def paths(body: dict[str, Any]) -> list[str]:
    return [task["data-file"]["file-path"] for task in body["file-scan-tasks"]]


# --- plans ---------------------------------------------------------------------------------------


def test_a_plan_is_complete_in_one_answer_where_it_is_short(http: httpx.Client):
    body = plan(http, filter={"type": "eq", "term": "region", "value": "eu"})

    assert body["status"] == "completed"
    assert body["plan-tasks"] == []
    assert len(body["file-scan-tasks"]) == 7
    assert {d["content"] for d in body["delete-files"]} == {"position-deletes", "equality-deletes"}
    assert all(task["residual-filter"] is True for task in body["file-scan-tasks"])
    PlanCompleted.model_validate(body)


def test_a_task_has_what_the_document_names_and_no_more(http: httpx.Client):
    (task, *_) = plan(http)["file-scan-tasks"]

    assert set(task) == {"data-file", "delete-file-references", "residual-filter"}
    assert set(task["data-file"]) == {
        "content",
        "file-path",
        "file-format",
        "spec-id",
        "partition",
        "file-size-in-bytes",
        "record-count",
        "split-offsets",
    }


def test_statistics_come_for_the_fields_that_ask_for_them(http: httpx.Client):
    (task, *_) = plan(http, stats_fields=["ID", "customer.name"], case_sensitive=False)[
        "file-scan-tasks"
    ]

    ids = task["data-file"]["lower-bounds"]["keys"]
    assert len(ids) == 2
    assert task["data-file"]["value-counts"]["keys"] == ids
    answer = http.post(f"{ORDERS}/plan", json={"stats-fields": ["nothing"]})
    assert error_of(answer)[:2] == (400, "BadRequestException")


def test_nulls_are_kept_for_engines_in_whose_eyes_they_differ_from_every_value(
    warehouse: Path, http: httpx.Client
):
    table = TableWriter.create(warehouse / "db" / "nulls", COLUMNS, [("region", "identity")])
    table.append([{"id": 1, "region": "eu"}, {"id": 2, "region": None}, {"id": 3, "region": "us"}])

    body = plan(
        http,
        "/v1/warehouse/namespaces/db/tables/nulls",
        filter={"type": "not-eq", "term": "region", "value": "eu"},
    )

    assert [t["data-file"]["partition"] for t in body["file-scan-tasks"]] == [[None], ["us"]]
    assert all(t["residual-filter"] is True for t in body["file-scan-tasks"])


def test_names_are_the_tables_own_unless_the_snapshots_are_asked_for(
    warehouse: Path, http: httpx.Client
):
    table = TableWriter.create(warehouse / "db" / "renamed", COLUMNS)
    table.append([{"id": 1, "region": "eu"}])
    old = table.snapshot_id
    table.rename_column("region", "zone")
    table.append([{"id": 2, "zone": "us"}])
    path = "/v1/warehouse/namespaces/db/tables/renamed"

    def asks(name: str) -> dict[str, Any]:
        return {"type": "eq", "term": name, "value": "eu"}

    assert len(plan(http, path, snapshot_id=old, filter=asks("zone"))["file-scan-tasks"]) == 1
    old_names = plan(http, path, snapshot_id=old, filter=asks("region"), use_snapshot_schema=True)
    assert len(old_names["file-scan-tasks"]) == 1
    assert len(plan(http, path)["file-scan-tasks"]) == 2
    wrong = http.post(f"{path}/plan", json={"snapshot-id": old, "filter": asks("region")})
    assert error_of(wrong)[0] == 400


def test_files_without_rows_are_left_out(warehouse: Path, http: httpx.Client):
    table = TableWriter.create(warehouse / "db" / "ghost", COLUMNS)
    with table.commit() as commit:
        (file,) = commit.append([{"id": 1, "region": "eu"}])
        commit.add_file(replace(file, location=f"{file.location}.ghost", record_count=0))

    body = plan(http, "/v1/warehouse/namespaces/db/tables/ghost")

    assert paths(body) == [file.location]


def test_a_table_never_written_to_has_an_empty_plan(warehouse: Path, http: httpx.Client):
    TableWriter.create(warehouse / "db" / "empty", COLUMNS)

    body = plan(http, "/v1/warehouse/namespaces/db/tables/empty")

    assert body["status"] == "completed"
    assert (body["file-scan-tasks"], body["delete-files"], body["plan-tasks"]) == ([], [], [])


# --- pages ---------------------------------------------------------------------------------------


def fetched(http: httpx.Client, table: str, body: dict[str, Any]) -> list[str]:
    """Return the paths of a plan's files, its plan tasks followed to the end."""
    found = paths(body)
    waiting = list(body["plan-tasks"])
    while waiting:
        answer = http.post(f"{table}/tasks", json={"plan-task": waiting.pop(0)})
        assert answer.status_code == 200, answer.text
        ScanTasks.model_validate(answer.json())
        found += paths(answer.json())
        waiting += answer.json()["plan-tasks"]
    return found


def test_pages_hold_every_file_once_and_any_coordinator_serves_them(warehouse: Path):
    table = write(warehouse, "many", 25)
    files = sorted(f.location for f in table.files())
    path = "/v1/warehouse/namespaces/paged/tables/many"

    with (
        local_fleet(warehouse, workers=0, rest_planning=True, rest_page_files=4) as one,
        client_of(one) as first,
    ):
        body = plan(first, path)
        assert len(body["file-scan-tasks"]) == 4
        assert len(body["plan-tasks"]) == 6
        assert sorted(fetched(first, path, body)) == files

        other = LocalFleet(warehouse, key=one.keys.to_text(), rest_planning=True)
        try:
            with client_of(other) as second:
                table.append([{"id": 99, "region": "later"}])  # the plan is of its snapshot
                assert sorted(fetched(second, path, body)) == files
        finally:
            other.close()


def test_very_many_pages_are_chained(warehouse: Path):
    table = write(warehouse, "chained", 140)
    path = "/v1/warehouse/namespaces/paged/tables/chained"

    with (
        local_fleet(warehouse, workers=0, rest_planning=True, rest_page_files=1) as fleet,
        client_of(fleet) as http,
    ):
        body = plan(http, path)

        assert len(body["plan-tasks"]) <= 64
        assert sorted(fetched(http, path, body)) == sorted(f.location for f in table.files())


class SlowCatalog:
    """A warehouse whose tables are loaded when the test says so."""

    kind = "warehouse"

    def __init__(self, inner: WarehouseCatalog) -> None:
        self._inner = inner
        self.name = inner.name
        self.go_on = threading.Event()

    def list_tables(self) -> Any:
        return self._inner.list_tables()

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        self.go_on.wait()
        return self._inner.load(identifier)


class ShoutingCatalog(SlowCatalog):
    """Spells tables otherwise than they are asked for, as catalogs without regard to case may."""

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        loaded = self._inner.load(identifier)
        return replace(loaded, identifier=tuple(part.upper() for part in identifier))


def test_a_table_is_the_one_asked_for_however_its_catalog_spells_it(warehouse: Path):
    table = write(warehouse, "spelled", 3)
    catalog = ShoutingCatalog(WarehouseCatalog("warehouse", str(warehouse)))
    path = "/v1/warehouse/namespaces/paged/tables/spelled"

    with (
        local_fleet(Catalogs([catalog]), workers=0, rest_planning=True, rest_page_files=1) as fleet,
        client_of(fleet) as http,
    ):
        found = fetched(http, path, plan(http, path))

    assert sorted(found) == sorted(f.location for f in table.files())


def test_a_plan_task_is_of_its_table_and_of_the_tables_life(warehouse: Path):
    write(warehouse, "mine", 3)
    table = write(warehouse, "gone", 3)
    path = "/v1/warehouse/namespaces/paged/tables"
    with local_fleet(warehouse, workers=0, rest_planning=True, rest_page_files=1) as one:
        with client_of(one) as http:
            (plan_task, *_) = plan(http, f"{path}/gone")["plan-tasks"]
            other = http.post(f"{path}/mine/tasks", json={"plan-task": plan_task})
            assert error_of(other)[:2] == (404, "NoSuchPlanTaskException")

        table.edit(lambda metadata: metadata.update({"table-uuid": "another"}))
        again = LocalFleet(warehouse, key=one.keys.to_text(), rest_planning=True)
        try:
            with client_of(again) as http:
                late = http.post(f"{path}/gone/tasks", json={"plan-task": plan_task})
                assert error_of(late)[:2] == (404, "NoSuchPlanTaskException")
                assert "plan the scan again" in error_of(late)[2]
        finally:
            again.close()


# --- plan ids ------------------------------------------------------------------------------------


@pytest.fixture
def slow(warehouse: Path) -> Iterator[tuple[SlowCatalog, httpx.Client]]:
    catalog = SlowCatalog(WarehouseCatalog("warehouse", str(warehouse)))
    with (
        local_fleet(
            Catalogs([catalog]), workers=0, rest_planning=True, rest_wait_seconds=0
        ) as fleet,
        client_of(fleet) as http,
    ):
        yield catalog, http
        catalog.go_on.set()


def test_a_plan_that_takes_long_is_asked_for_by_its_id(
    slow: tuple[SlowCatalog, httpx.Client], http: httpx.Client
):
    catalog, client = slow
    body = plan(client)
    path = f"{ORDERS}/plan/{body['plan-id']}"
    assert set(body) == {"status", "plan-id"}
    assert body["status"] == client.get(path).json()["status"] == "submitted"

    catalog.go_on.set()
    wait_until(lambda: client.get(path).json()["status"] != "submitted", "the plan to be made")

    done = client.get(path).json()
    assert done["status"] == "completed"
    assert paths(done) == paths(plan(http))
    assert error_of(client.get(f"{ORDERS}/plan/none"))[:2] == (404, "NoSuchPlanIdException")
    elsewhere = f"/v1/warehouse/namespaces/db/tables/other/plan/{body['plan-id']}"
    assert client.get(elsewhere).status_code == 404
    assert client.delete(elsewhere).status_code == 404


def test_what_went_wrong_meanwhile_is_told_by_the_id(slow: tuple[SlowCatalog, httpx.Client]):
    catalog, client = slow
    body = plan(client, snapshot_id=1)
    catalog.go_on.set()

    path = f"{ORDERS}/plan/{body['plan-id']}"
    wait_until(lambda: client.get(path).json()["status"] != "submitted", "the plan to fail")

    failed = client.get(path).json()
    assert failed["status"] == "failed"
    assert failed["error"]["type"] == "BadRequestException"
    assert "no snapshot 1" in failed["error"]["message"]


def test_a_cancelled_plan_says_so(slow: tuple[SlowCatalog, httpx.Client]):
    catalog, client = slow
    body = plan(client)
    path = f"{ORDERS}/plan/{body['plan-id']}"

    cancelled = client.delete(path)

    assert (cancelled.status_code, cancelled.content) == (204, b"")
    assert client.get(path).json() == {"status": "cancelled"}
    catalog.go_on.set()
    assert client.get(path).json() == {"status": "cancelled"}


def test_a_plan_that_was_complete_at_once_has_an_id_too(http: httpx.Client):
    body = plan(http)

    again = http.get(f"{ORDERS}/plan/{body['plan-id']}").json()
    assert again == {k: v for k, v in body.items() if k != "plan-id"}
    assert http.delete(f"{ORDERS}/plan/{body['plan-id']}").status_code == 204


def test_planning_holds_up_no_health_check(slow: tuple[SlowCatalog, httpx.Client]):
    _, client = slow
    for _ in range(20):
        plan(client)

    assert client.get("/healthz").json() == {"status": "ok"}


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 400, "BadRequestException"),
        (b'{"snapshot-id": 1}', 400, "BadRequestException"),
        (b'{"filter": {"type": "eq", "term": "none", "value": 1}}', 400, "BadRequestException"),
        (b'{"start-snapshot-id":1,"end-snapshot-id":2}', 406, "UnsupportedOperationException"),
        (b'{"location": "s3://elsewhere/metadata.json"}', 400, "BadRequestException"),
        (b" " * ((1 << 20) + 1), 400, "BadRequestException"),
    ],
)
def test_a_request_that_cannot_be_planned_names_what_is_wrong(
    http: httpx.Client, body: bytes, status: int, kind: str
):
    answer = http.post(f"{ORDERS}/plan", content=body)

    assert error_of(answer)[:2] == (status, kind)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/warehouse/namespaces/db/tables/none", "NoSuchTableException"),
        ("/v1/none/namespaces/db/tables/orders", "NoSuchWarehouseException"),
        ("/v1/warehouse/namespaces/none", "NoSuchNamespaceException"),
        ("/v1/warehouse/namespaces/none/tables", "NoSuchNamespaceException"),
        ("/v1/config?warehouse=none", "NoSuchWarehouseException"),
        ("/v1/warehouse/namespaces/..%2F..%2Fetc/tables/passwd", "NoSuchTableException"),
        ("/v1/warehouse/namespaces/db%1F..%1F..%1Fetc/tables/passwd", "NoSuchTableException"),
    ],
)
def test_what_is_not_there_is_not_found(http: httpx.Client, path: str, kind: str):
    assert error_of(http.get(path))[:2] == (404, kind)


def test_a_path_that_is_no_text_is_refused(http: httpx.Client):
    answer = http.get("/v1/warehouse/namespaces/db/tables/%FF")

    assert error_of(answer)[:2] == (400, "BadRequestException")


def test_a_damaged_table_is_the_servers_error_and_named(warehouse: Path, http: httpx.Client):
    table = TableWriter.create(warehouse / "db" / "damaged", COLUMNS)
    table.append([{"id": 1, "region": "eu"}])
    table.local(table.snapshot()["manifest-list"]).write_bytes(b"nothing")

    answer = http.post("/v1/warehouse/namespaces/db/tables/damaged/plan", json={})

    status, kind, message = error_of(answer)
    assert (status, kind) == (500, "InternalServerError")
    assert message.startswith("[CORRUPT_MANIFEST]")


def test_none_of_it_is_served_unless_it_was_asked_for(warehouse: Path):
    with local_fleet(warehouse, workers=0) as fleet, client_of(fleet) as http:
        assert http.get("/v1/config").status_code == 404
        assert http.post(f"{ORDERS}/plan", json={}).status_code == 404
    assert not CoordinatorConfig().rest_planning


# --- the catalog ---------------------------------------------------------------------------------


def test_the_configuration_names_the_endpoints_and_the_prefix(http: httpx.Client):
    config = http.get("/v1/config", params={"warehouse": "warehouse"}).json()

    assert config["overrides"] == {"prefix": "warehouse"}
    assert config["defaults"] == {"scan-planning-mode": "server"}
    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert {f"POST {table}/plan", f"POST {table}/tasks", f"GET {table}"} <= set(config["endpoints"])
    assert config == http.get("/v1/config").json()


def test_every_endpoint_that_is_announced_is_there(http: httpx.Client):
    for endpoint in http.get("/v1/config").json()["endpoints"]:
        method, path = endpoint.split(" ")
        for name, value in {
            "{prefix}": "warehouse",
            "{namespace}": "db",
            "{table}": "orders",
            "{plan-id}": "none",
        }.items():
            path = path.replace(name, value)
        answer = http.request(method, path)
        told = answer.text.startswith('{"error"') or answer.status_code in (200, 204)
        assert told, (endpoint, answer.status_code, answer.text)


def test_namespaces_and_tables_are_listed(warehouse: Path, http: httpx.Client):
    TableWriter.create(warehouse / "odd" / "a b+ü", COLUMNS)

    assert ["odd"] in http.get("/v1/warehouse/namespaces").json()["namespaces"]
    assert http.get("/v1/warehouse/namespaces?parent=odd").json() == {"namespaces": []}
    assert http.get("/v1/warehouse/namespaces/odd").json()["namespace"] == ["odd"]
    assert http.get("/v1/warehouse/namespaces/odd/tables").json() == {
        "identifiers": [{"namespace": ["odd"], "name": "a b+ü"}]
    }
    table = f"/v1/warehouse/namespaces/odd/tables/{quote('a b+ü', safe='')}"
    assert http.head(table).status_code == 204
    assert http.head("/v1/warehouse/namespaces/odd").status_code == 204
    assert plan(http, table)["status"] == "completed"


def test_a_table_is_loaded_without_the_coordinators_properties(warehouse: Path):
    catalog = WarehouseCatalog("lake", str(warehouse), {"s3.secret-access-key": "hidden"})
    with (
        local_fleet(Catalogs([catalog]), workers=0, rest_planning=True) as fleet,
        client_of(fleet) as http,
    ):
        loaded = http.get("/v1/lake/namespaces/db/tables/orders")

    assert loaded.json()["config"] == {}
    assert "hidden" not in loaded.text
    assert loaded.json()["metadata-location"].endswith(".metadata.json")
    assert loaded.json()["metadata"]["format-version"] == 2


def test_requests_are_counted_by_endpoint_and_status(http: httpx.Client):
    plan(http)

    text = http.get("/metrics").text

    assert 'floeberg_rest_requests_total{endpoint="plan",status="200"}' in text


def test_stopping_the_coordinator_ends_what_is_planned(warehouse: Path):
    catalog = SlowCatalog(WarehouseCatalog("warehouse", str(warehouse)))
    fleet = LocalFleet(Catalogs([catalog]), rest_planning=True, rest_wait_seconds=0)
    with client_of(fleet) as http:
        plan(http)
        assert fleet.coordinator.stop(NO_HURRY)
    catalog.go_on.set()
