"""floeberg over Flight SQL: ADBC's driver, with what is left to aggregate done by workers."""

from __future__ import annotations

import argparse
from pathlib import Path

from adbc_driver_flightsql import dbapi

from tests.bench.taxi.answers import Answer, Fold, aggregated
from tests.bench.taxi.lake import NAMESPACE
from tests.bench.taxi.sides.fleet import Fleet
from tests.bench.taxi.sides.serving import Question, Refuses, serve


class FlightSQLSide:
    def __init__(self, connection: dbapi.Connection) -> None:
        self._connection = connection

    def answer(self, question: Question) -> Answer:
        if question.properties:
            raise Refuses("has a warehouse of local files")
        query = question.asked
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(query.sql(f"{NAMESPACE}.{question.table}"))
            except dbapi.NotSupportedError as refusal:
                raise Refuses(str(refusal)) from refusal
            if not query.rows:
                return aggregated(query, cursor.fetch_arrow_table())
            fold = Fold(query)
            for batch in cursor.fetch_record_batch():
                fold.add(batch)
            return fold.answer()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("--workers", type=int, required=True)
    arguments = parser.parse_args()
    with (
        Fleet(arguments.warehouse, arguments.workers) as fleet,
        dbapi.connect(fleet.coordinator.replace("grpc+tcp", "grpc")) as connection,
    ):
        serve(FlightSQLSide(connection), fleet)
