from __future__ import annotations

import pytest

from floeberg.protocol.errors import BadConfig
from floeberg.server.access import Limits, Policies

POLICIES = Policies.parse(
    """
    [[limit]]
    principals = ["bot-*", "intern"]
    rows = 1000
    seconds = 1.5
    queries = 3

    [[limit]]
    principals = ["*"]
    bytes = 5_000
    tasks = 0
    """
)
DEFAULT = Limits(rows=7, tasks=8)


@pytest.mark.parametrize(
    ("principal", "limits"),
    [
        ("bot-1", Limits(rows=1000, tasks=8, seconds=1.5, queries=3)),
        ("intern", Limits(rows=1000, tasks=8, seconds=1.5, queries=3)),
        ("ann", Limits(rows=7, bytes=5000, tasks=0)),
        ("", Limits(rows=7, bytes=5000, tasks=0)),
    ],
)
def test_the_first_limit_that_fits_decides_and_the_default_has_the_rest(
    principal: str, limits: Limits
):
    assert POLICIES.limits_of(principal, DEFAULT) == limits


def test_without_limits_the_default_is_all_there_is():
    assert Policies.parse("").limits_of("ann", DEFAULT) == DEFAULT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[limit]]\nrows=1", "limit 1: key 'principals' is missing"),
        ("[[limit]]\nprincipals=['*']\nrow=1", "limit 1: unknown key 'row'; did you mean 'rows'?"),
        ("[[limit]]\nprincipals=['*']\nrows='all'", "limit 1: key 'rows'"),
        ("[[limit]]\nprincipals=['*']\nrows=-1", "limit 1: key 'rows'"),
        (
            "[[limit]]\nprincipals=['*']\n[[limit]]\nprincipals=['*']\nseconds=0",
            "limit 2: key 'seconds'",
        ),
        ("[[limit]]\nprincipals=['*']\nqueries=0", "limit 1: key 'queries'"),
    ],
)
def test_a_limit_that_cannot_be_read_is_named(text: str, told: str):
    with pytest.raises(BadConfig) as refused:
        Policies.parse(text)

    assert told in str(refused.value)
