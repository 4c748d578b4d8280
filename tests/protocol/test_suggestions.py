from __future__ import annotations

import pytest

from floeberg.protocol import errors
from floeberg.protocol.bodies import unknown_key
from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadCommand, BadFilter, FloebergError
from floeberg.protocol.expressions import as_expression
from floeberg.protocol.suggestions import LONGEST_NAME, MOST_COMPARED, cut, nearest, quoted

HUGE = "n" * 1_000_000


class Compared(str):
    """A name that notes when it is prepared for comparison."""

    seen: list[str]

    def casefold(self) -> str:
        self.seen.append(str(self))
        return super().casefold()


@pytest.fixture
def compared() -> list[str]:
    Compared.seen = []
    return Compared.seen


def test_the_nearest_names_come_first_and_far_ones_not_at_all():
    assert nearest("reigon", ["id", "regions", "region", "amount"]) == ["region", "regions"]
    assert nearest("reigon", ["regions", "region"], n=1) == ["region"]
    assert nearest("reigon", ["id", "amount"]) == []
    assert nearest("region", []) == []


def test_case_counts_for_nothing_and_is_kept():
    assert nearest("REGION", ["id", "Region", "region"]) == ["Region", "region"]


def test_a_huge_name_is_compared_with_nothing(compared: list[str]):
    assert nearest(HUGE, map(Compared, [HUGE, "n", "n" * LONGEST_NAME])) == []
    assert compared == []


def test_a_name_is_compared_with_no_huge_one(compared: list[str]):
    assert nearest("nn", map(Compared, [HUGE, "nn"])) == ["nn"]
    assert compared == ["nn"]


def test_a_name_is_compared_with_those_nearest_in_length(compared: list[str]):
    far = [Compared(f"orders_of_{n:020}") for n in range(10 * MOST_COMPARED)]

    assert nearest("ordesr", [*far, Compared("orders")]) == ["orders"]
    assert len(compared) == MOST_COMPARED


def test_a_text_is_cut_before_it_is_quoted():
    assert cut("short") == "short"
    assert cut(HUGE) == "n" * LONGEST_NAME + "…"
    assert quoted("\x00" * 1_000_000, 2) == r"'\x00\x00…'"


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownTable(HUGE, [HUGE, "n"]),
        errors.UnknownCatalog(HUGE, [HUGE, "n"]),
        errors.UnknownColumn(HUGE, [HUGE] * 40),
        errors.AmbiguousColumn(HUGE, [HUGE, HUGE.upper()]),
        errors.UnknownRef(HUGE, [HUGE, "n"]),
        errors.BadLiteral(HUGE, "int", "write a number", HUGE),
        errors.BadLiteral(HUGE.encode(), "int", "write a number", HUGE),
    ],
    ids=lambda error: error.code,
)
def test_a_message_holds_the_beginning_of_a_huge_name(error: FloebergError):
    assert "nnn…" in str(error)
    assert len(str(error)) < 2000


def test_what_a_client_sends_is_cut_in_messages():
    for wrong in (
        ["n" + HUGE, "a", 1],
        ["=", HUGE, None],
        f"{HUGE} 1",
        f"{HUGE} NOT 1",
    ):
        with pytest.raises(BadFilter) as raised:
            as_expression(wrong)
        assert len(str(raised.value)) < 400
    with pytest.raises(BadCommand) as refused:
        TableName.parse(f"{HUGE}..t")
    assert len(str(refused.value)) < 400
    assert len(unknown_key(HUGE, ["filter"])) < 200
