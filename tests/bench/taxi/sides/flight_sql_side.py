"""floeberg over Flight SQL: ADBC's driver, with what is left to aggregate done by workers."""

from __future__ import annotations

from adbc_driver_flightsql import dbapi

from tests.bench.taxi.answers import Answer, Fold, aggregated
from tests.bench.taxi.lake import NAMESPACE
from tests.bench.taxi.sides.fleet import Fleet, side_parser
from tests.bench.taxi.sides.serving import Question, Refuses, serve

_BESIDE = ", (VALUES (1)) AS beside(one)"
"""A join that changes nothing, but that the query is not divided."""


class FlightSQLSide:
    """Asks as people do; or `undivided`, so that one worker's engine computes all of an answer."""

    def __init__(self, connection: dbapi.Connection, *, undivided: bool) -> None:
        self._connection = connection
        self._undivided = undivided

    def answer(self, question: Question) -> Answer:
        query = question.asked
        table = f"{NAMESPACE}.{question.table}"
        if self._undivided:
            if query.rows:
                raise Refuses("is for queries that aggregate")
            table += _BESIDE
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(query.sql(table))
            except dbapi.NotSupportedError as refusal:
                raise Refuses(str(refusal)) from refusal
            if not query.rows:
                return aggregated(query, cursor.fetch_arrow_table())
            fold = Fold(query)
            for batch in cursor.fetch_record_batch():
                fold.add(batch)
            return fold.answer()


if __name__ == "__main__":
    parser = side_parser(__doc__)
    parser.add_argument("--undivided", action="store_true")
    arguments = parser.parse_args()
    with (
        Fleet(arguments.warehouse, arguments.workers, arguments.properties) as fleet,
        dbapi.connect(fleet.coordinator.replace("grpc+tcp", "grpc"), autocommit=True) as connection,
    ):
        serve(FlightSQLSide(connection, undivided=arguments.undivided), fleet)
