from __future__ import annotations

from floeberg.worker.query_rows import QueryRows


def test_each_query_s_rows_are_its_own() -> None:
    rows = QueryRows()

    assert [rows.add("a", 3), rows.add("b", 5), rows.add("a", 4)] == [3, 5, 7]


def test_a_query_that_was_stopped_stays_so_and_others_go_on() -> None:
    rows = QueryRows()

    rows.stop(["a"])

    assert rows.is_stopped("a")
    assert not rows.is_stopped("b")


def test_the_oldest_queries_are_forgotten() -> None:
    rows = QueryRows()
    for number in range(5000):
        rows.add(str(number), 1)
        rows.stop([str(number)])

    assert rows.add("0", 1) == 1
    assert rows.add("4999", 1) == 2
    assert not rows.is_stopped("0")
