"""docs/operations.md tells of every metric, and of every error."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from floeberg.protocol import errors
from floeberg.protocol.errors import FloebergError
from tests.support.fleet import LocalFleet, local_fleet
from tests.support.lake import TableWriter, required, schema
from tests.support.operations_page import documented


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    """A fleet that has all that may be switched on, and has been asked something."""
    lake, cache = tmp_path_factory.mktemp("lake"), tmp_path_factory.mktemp("cache")
    TableWriter.create(lake / "db" / "orders", schema({"id": required("long")}))
    with local_fleet(lake, workers=0, rest_planning=True, manifest_cache_dir=str(cache)) as fleet:
        fleet.add_worker(block_cache_dir=str(cache))
        yield fleet


def metrics(service: object) -> dict[str, Metric]:
    """Return a service's own metrics by the names that Prometheus knows them by."""
    text = httpx.get(f"{service}/metrics").text
    found = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if name.startswith("floeberg_") and not name.endswith("_created"):
            found[name] = family
    return found


def test_each_metric_of_a_coordinator_is_told_of_and_no_other(fleet: LocalFleet) -> None:
    there = metrics(fleet.coordinator.addresses()["http"])

    assert documented("### Coordinator").keys() == there.keys()


def test_each_metric_of_a_worker_is_told_of_and_no_other(fleet: LocalFleet) -> None:
    there = metrics(fleet.workers[0].addresses()["http"])

    assert documented("### Worker").keys() == there.keys()


@pytest.mark.parametrize("heading", ["### Coordinator", "### Worker"])
def test_labels_are_told_of(fleet: LocalFleet, heading: str) -> None:
    service = fleet.coordinator if heading == "### Coordinator" else fleet.workers[0]
    told = documented(heading)

    for name, family in metrics(service.addresses()["http"]).items():
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert labels <= told[name], name


@pytest.mark.parametrize(
    "counter",
    [
        'floeberg_fleet_changes_total{change="expired"}',
        'floeberg_fleet_changes_total{change="replaced"}',
        'floeberg_fleet_lookups_total{outcome="failed"}',
        'floeberg_errors_total{code="INTERNAL"}',
        'floeberg_errors_total{code="FLEET_BUSY"}',
    ],
)
def test_what_alerts_ask_for_is_there_before_it_happens(fleet: LocalFleet, counter: str) -> None:
    # to Prometheus, a series that begins with 1 has not increased
    numbers = httpx.get(f"{fleet.coordinator.addresses()['http']}/metrics").text

    assert f"{counter} 0.0" in numbers.splitlines()


def test_the_runbook_has_every_code_and_no_other() -> None:
    def codes(kind: type[FloebergError]) -> Iterator[str]:
        yield kind.code
        for sub in kind.__subclasses__():
            if sub.__module__ == errors.__name__:
                yield from codes(sub)

    assert documented("## Runbook").keys() == set(codes(FloebergError))
