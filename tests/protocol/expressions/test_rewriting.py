from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from floeberg.protocol.expressions.evaluation import is_true
from floeberg.protocol.expressions.json_form import bound_from_json
from floeberg.protocol.expressions.model import TRUE, BoundExpression, field_ids
from floeberg.protocol.expressions.rewriting import only_about
from floeberg.protocol.schema import Schema
from floeberg.protocol.types import IntType, Json, NestedField

SCHEMA = Schema(tuple(NestedField(i, f"c{i}", IntType()) for i in (1, 2, 3)))


def leaves() -> st.SearchStrategy[Json]:
    ids = st.integers(1, 3)
    compared = st.tuples(st.sampled_from(["=", "<", ">="]), ids, st.integers(0, 3))
    return st.one_of(compared.map(list), st.tuples(st.just("is-null"), ids).map(list))


def filters() -> st.SearchStrategy[BoundExpression]:
    nested = st.recursive(
        leaves(),
        lambda inner: st.builds(
            lambda op, operands: [op, *operands],
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    )
    return nested.map(lambda raw: bound_from_json(raw, SCHEMA))


@given(filters(), st.frozensets(st.integers(1, 3)), st.tuples(*[st.none() | st.integers(0, 3)] * 3))
def test_what_is_said_of_some_columns_is_true_wherever_all_of_it_is(
    bound: BoundExpression, columns: frozenset[int], values: tuple[int | None, ...]
):
    said = only_about(bound, columns)

    assert field_ids(said) <= columns
    row = dict(enumerate(values, 1))
    assert is_true(said, row) or not is_true(bound, row)


def test_other_columns_are_left_out_and_nothing_else():
    raw = ["and", ["=", 1, 5], ["or", ["<", 2, 3], [">", 1, 7]], ["in", 1, [0, 5]]]
    bound = bound_from_json(raw, SCHEMA)

    assert only_about(bound, frozenset({1, 2})) == bound
    assert only_about(bound, frozenset({1})) == bound_from_json(
        ["and", ["=", 1, 5], ["in", 1, [0, 5]]], SCHEMA
    )
    assert only_about(bound, frozenset({3})) == TRUE
