from __future__ import annotations

import pytest

from tests.bench.taxi.answers import aggregated, same
from tests.bench.taxi.lake import TABLES, Lake, Size
from tests.bench.taxi.queries import QUERIES
from tests.bench.taxi.rounds import AnswersDiffer, in_turns
from tests.bench.taxi.sides.in_process_side import InProcessSide
from tests.bench.taxi.sides.pyarrow_side import PyArrowSide
from tests.bench.taxi.sides.serving import Measured, Question, Refuses, Side


class _Asked:
    """A side in this process, whose answers take no time; `add` is added to its sums."""

    def __init__(self, side: Side, add: float = 0.0) -> None:
        self._side = side
        self._add = add

    def ask(self, question: Question) -> Measured | str:
        try:
            answer = self._side.answer(question)
        except Refuses as refusal:
            return str(refusal)
        return Measured({k: [v + self._add for v in vs] for k, vs in answer.items()}, 0.0, 0.0, 0)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    size = Size(months=15, rows_a_month=1_200, wide_rows_a_file=50)
    return Lake(tmp_path_factory.mktemp("bench"), size)


def _questions(lake: Lake, table: str) -> dict[str, Question]:
    file = str(lake.metadata_file(table))
    return {query: Question(table, query, file, {}) for query in TABLES[table]}


@pytest.mark.parametrize("table", ["trips", "wide"])
def test_floeberg_and_pyarrow_agree_on_every_query(lake: Lake, table: str) -> None:
    sides = {"ours": _Asked(InProcessSide()), "theirs": _Asked(PyArrowSide())}

    results = in_turns(_questions(lake, table), sides, 1)

    assert all(rounds.measured for by in results.values() for rounds in by.values())


def test_rows_deleted_by_position_and_by_vector_are_the_same_and_those_by_key_are_not(
    lake: Lake,
) -> None:
    counted = {
        table: InProcessSide().answer(_questions(lake, table)["Q5"])
        for table in TABLES
        if table != "wide"
    }

    rows = {table: sum(count for (count,) in answer.values()) for table, answer in counted.items()}
    assert same(counted["trips_positions"], counted["trips_vectors"])
    assert rows["trips_positions"] == rows["trips"] * 0.99
    assert rows["trips_equal_10k"] == rows["trips"] - rows["trips"] // 1_200
    assert rows["trips_equal_1m"] == rows["trips"] - rows["trips"] // 12


def test_no_time_counts_where_answers_differ(lake: Lake) -> None:
    sides = {"ours": _Asked(InProcessSide()), "theirs": _Asked(PyArrowSide(), add=1.0)}

    with pytest.raises(AnswersDiffer, match="Q1 of trips: theirs answers"):
        in_turns(_questions(lake, "trips"), sides, 1)


@pytest.mark.parametrize("name", QUERIES)
def test_an_engines_answer_is_what_a_client_folds(lake: Lake, name: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = "trips" if name.startswith("Q") else "wide"
    files = [str(path) for path in lake.data_files(table)]
    query = QUERIES[name]

    rows = duckdb.sql(query.sql(f"read_parquet({files})")).to_arrow_table()

    question = Question(table, name, str(lake.metadata_file(table)), {})
    assert same(aggregated(query, rows), InProcessSide().answer(question))
