from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench.taxi.aims import Aim, aim_table, aims, total
from tests.bench.taxi.comparing import part_of
from tests.bench.taxi.contenders import FLIGHT_2, IN_PROCESS, PYARROW, PYICEBERG
from tests.bench.taxi.page import filled
from tests.bench.taxi.parts import Part, keep, kept
from tests.bench.taxi.plotting import bars, lines
from tests.bench.taxi.report import write_page, write_report
from tests.bench.taxi.rounds import Results, Rounds
from tests.bench.taxi.sides.serving import Measured


def _took(*seconds: float) -> Rounds:
    return Rounds([Measured({}, s, 2 * s, 100_000_000, 50_000_000, 7) for s in seconds])


def _results() -> Results:
    return {
        "Q1": {PYICEBERG: _took(1.0), PYARROW: _took(0.2), IN_PROCESS: _took(0.1)},
        "Q7": {PYICEBERG: _took(2.0), PYARROW: _took(0.2), IN_PROCESS: _took(0.3, 0.4, 0.5)},
    }


def test_an_aim_is_met_missed_or_without_a_figure() -> None:
    assert Aim("at most", 0.5, 0.5).verdict == "met"
    assert Aim("at most", 0.5, 0.6).verdict == "**missed**"
    assert Aim("at least", 0.9, 0.8, at_least=True).verdict == "**missed**"
    assert Aim("never asked", 1.0, None).verdict == "no figure"


def test_every_aim_is_named_whatever_was_measured() -> None:
    figures = {total("trips", FLIGHT_2): 3.0, total("trips", PYICEBERG): 6.0}

    found = aims(figures)

    assert [a.what for a in found] == [a.what for a in aims({})]
    assert [a.found for a in found if a.found is not None] == [0.5]
    assert aim_table(found).count("\n") == len(found) + 1


def test_a_tables_part_has_its_sums_and_where_it_is_worst() -> None:
    part = part_of(_results(), "trips", "trips")

    assert part.figures[total("trips", IN_PROCESS)] == pytest.approx(0.5)
    assert {a.what: a.found for a in aims(part.figures)}[
        "plain: in process to pyarrow, query by query"
    ] == pytest.approx(2.0)
    assert "400 ±100" in part.text
    assert "100 + 50" in part.text


def test_who_refuses_a_query_has_no_sum_and_says_why() -> None:
    results = {
        **_results(),
        "Q8": {**_results()["Q7"], PYARROW: Rounds(refusal="no /a/b/c.x: https://d.e/f")},
    }

    part = part_of(results, "trips", "trips")

    assert total("trips", PYARROW) not in part.figures
    assert "- pyarrow has no answer to Q8: no …/c.x: https://d.e/f" in part.text


def test_who_takes_seconds_is_asked_three_times() -> None:
    assert not _took(2.5, 2.5).is_enough
    assert _took(2.5, 2.5, 2.5).is_enough
    assert not _took(1.5, 1.5, 1.5).is_enough


def test_parts_wait_for_each_other_in_a_directory(tmp_path: Path) -> None:
    part = Part("text", {"a figure": 1.5}, {"a.svg": "<svg/>"}, "now", "here")
    keep(tmp_path, "trips", Part("older"))
    keep(tmp_path, "trips", part)
    keep(tmp_path, "wide", Part("other"))

    assert kept(tmp_path) == {"trips": part, "wide": Part("other")}


def test_the_report_and_the_page_have_what_was_found(tmp_path: Path) -> None:
    parts = {"trips": Part("all of it", {}, {"trips.svg": "<svg/>"}, "some day", "on a machine")}
    page = tmp_path / "page.md"
    page.write_text("# Title\n<!-- trips: begin -->\nold\n<!-- trips: end -->\nby hand\n")
    (tmp_path / "images").mkdir()

    report = write_report(tmp_path / "report", parts)
    write_page(page, parts)

    assert report.startswith("Measured from some day to some day UTC: on a machine.")
    assert "![12 million trips in 24 files](trips.svg)\n\nall of it" in report
    assert (tmp_path / "report" / "trips.svg").read_text() == "<svg/>"
    assert page.read_text() == (
        "# Title\n<!-- trips: begin -->\n![12 million trips in 24 files](images/trips.svg)\n\n"
        "all of it\n<!-- trips: end -->\nby hand\n"
    )
    assert (tmp_path / "images" / "trips.svg").exists()


def test_a_page_with_half_of_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="without its end"):
        filled("<!-- a: begin -->\n", {"a": "text"})


def test_pictures_are_well_formed() -> None:
    ElementTree.fromstring(bars({"a < b": {"Polars": 1.0, FLIGHT_2: 0.5}}))
    ElementTree.fromstring(lines("title", "clients", {"a": [(1, 5), (32, 80)], "b": [(1, 3)]}))
