"""floeberg over Flight: its client, whose batches are folded as they come."""

from __future__ import annotations

import argparse
from pathlib import Path

from floeberg.client import Lake, connect
from tests.bench.taxi.answers import Answer, folded
from tests.bench.taxi.lake import NAMESPACE
from tests.bench.taxi.sides.fleet import Fleet
from tests.bench.taxi.sides.serving import Question, Refuses, serve


class FlightSide:
    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def answer(self, question: Question) -> Answer:
        if question.properties:
            raise Refuses("has a warehouse of local files")
        query = question.asked
        table = self._lake.table((NAMESPACE, question.table))
        scan = table.scan(filter=query.filter_text(), select=query.selected)
        return folded(query, scan.to_batches())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("--workers", type=int, required=True)
    arguments = parser.parse_args()
    with (
        Fleet(arguments.warehouse, arguments.workers) as fleet,
        connect(fleet.coordinator) as lake,
    ):
        serve(FlightSide(lake), fleet)
