"""floeberg over Flight: its client, whose batches are folded as they come."""

from __future__ import annotations

from floeberg.client import Lake, connect
from tests.bench.taxi.answers import Answer, folded
from tests.bench.taxi.lake import NAMESPACE
from tests.bench.taxi.sides.fleet import Fleet, side_parser
from tests.bench.taxi.sides.serving import Question, serve


class FlightSide:
    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def answer(self, question: Question) -> Answer:
        query = question.asked
        table = self._lake.table((NAMESPACE, question.table))
        scan = table.scan(filter=query.filter_text(), select=query.selected)
        return folded(query, scan.to_batches())


if __name__ == "__main__":
    parser = side_parser(__doc__)
    parser.add_argument("--keep-blocks", action="store_true", help="of what comes from a store")
    arguments = parser.parse_args()
    with (
        Fleet(
            arguments.warehouse,
            arguments.workers,
            arguments.properties,
            keep_blocks=arguments.keep_blocks,
        ) as fleet,
        connect(fleet.coordinator) as lake,
    ):
        serve(FlightSide(lake), fleet)
