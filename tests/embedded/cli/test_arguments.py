from __future__ import annotations

import pytest

from floeberg.embedded.cli.arguments import column_names, pairs, table_name
from floeberg.protocol.commands import TableName
from floeberg.protocol.errors import BadCommand, BadRequest


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, None),
        ([""], ()),
        (["a"], ("a",)),
        (["a, b.c", "d"], ("a", "b.c", "d")),
        (['["a,b", " c"]', "d"], ("a,b", " c", "d")),
        (["[a]"], ("[a]",)),  # a name, and no JSON
    ],
)
def test_columns_have_commas_between_or_are_a_list(given, names):
    assert column_names(given) == names


@pytest.mark.parametrize(
    "parts", [("db", "orders"), ("db", "a.b"), ("db", "a/b"), ('db"', "ü", "x.y")]
)
def test_a_name_is_written_as_it_is_read(parts: tuple[str, ...]):
    assert table_name(TableName(parts).written()).parts == parts


def test_a_name_with_an_empty_part_is_refused():
    with pytest.raises(BadCommand):
        table_name("db..orders")


@pytest.mark.parametrize("path", ["/data/lake/db/orders", "./orders", "s3://lake/db/orders"])
def test_a_path_instead_of_a_name_is_told_the_option_for_it(path: str):
    with pytest.raises(BadRequest, match=f"'{path}' looks like a path: .* --table PATH"):
        table_name(path)


def test_pairs_are_divided_at_the_first_equals_sign():
    assert pairs("--rebase", ["s3://a=/b=c", "x=y"]) == {"s3://a": "/b=c", "x": "y"}
    with pytest.raises(BadRequest, match="--rebase 'nothing'"):
        pairs("--rebase", ["nothing"])
