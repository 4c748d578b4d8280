from __future__ import annotations

import pytest

from floeberg.protocol.errors import BadConfig
from floeberg.protocol.expressions import as_expression
from floeberg.server.access import FULL, Access, Policies

POLICIES = Policies.parse(
    """
    [[rule]]
    principals = ["root"]
    tables = ["*"]

    [[rule]]
    principals = ["*"]
    tables = ["prod.hr.*"]
    deny = true

    [[rule]]
    principals = ["ann", "team-*"]
    tables = ["prod.sales.orders"]
    rows = "region = 'eu'"
    mask = ["email"]
    hide = ["ssn", "address.street"]

    [[rule]]
    principals = ["ann"]
    tables = ["prod.*", "*.public.v?"]
    """
)
SALES = Access(as_expression("region = 'eu'"), ("email",), ("ssn", "address.street"))


@pytest.mark.parametrize(
    ("principal", "table", "access"),
    [
        ("root", "prod.hr.pay", FULL),
        ("root", "other.x", FULL),
        ("ann", "prod.sales.orders", SALES),
        ("team-7", "prod.sales.orders", SALES),
        ("team-7", "prod.sales.other", None),
        ("ann", "prod.sales.other", FULL),
        ("ann", "prod.sales.deep.other", FULL),
        ("ann", "prod.hr.pay", None),
        ("ann", "prod.hr.deep.pay", None),
        ("ann", "prod.hr", FULL),  # a table of that name
        ("ann", "prod.HR.pay", None),  # some catalogs take either spelling
        ("ann", "PROD.Sales.ORDERS", SALES),
        ("ann", "test.public.v1", FULL),
        ("ann", "test.public.v12", None),
        ("ann", "test.public", None),
        ("ann", "test.x", None),
        ("Ann", "prod.x", None),
        ("ann2", "prod.x", None),
        ("", "prod.x", None),
        ("eve", "prod.sales.orders", None),
    ],
)
def test_the_first_rule_that_fits_decides(principal: str, table: str, access: Access | None):
    catalog, *identifier = table.split(".")

    assert POLICIES.access(principal, catalog, identifier) == access


def test_a_part_of_a_name_that_holds_a_dot_is_one_part():
    policies = Policies.parse('[[rule]]\nprincipals=["ann"]\ntables=["prod.db.*"]')

    assert policies.access("ann", "prod", ("db", "a.b")) == FULL
    assert policies.access("ann", "prod.db", ("x",)) is None
    assert policies.access("ann", "prod", ("db.x",)) is None


def test_no_rule_lets_nobody_read_anything():
    assert Policies.parse("").access("root", "prod", ("db", "t")) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[rule", "not TOML"),
        ("rules = []", "unknown key 'rules'; did you mean 'rule'?"),
        ("[[rule]]\ntables=['*']", "rule 1: key 'principals' is missing"),
        ("[[rule]]\nprincipals=[]\ntables=['*']", "rule 1: key 'principals'"),
        ("[[rule]]\nprincipals='ann'\ntables=['*']", "rule 1: key 'principals'"),
        ("[[rule]]\nprincipals=['ann']\ntables=['a..b']", "rule 1: key 'tables"),
        (
            "[[rule]]\nprincipals=['a']\ntables=['*']\n"
            "[[rule]]\nprincipals=['a']\ntables=['*']\nmasks=['x']",
            "rule 2: unknown key 'masks'; did you mean 'mask'?",
        ),
        ("[[rule]]\nprincipals=['a']\ntables=['*']\nrows='x >'", "rule 1: rows: "),
        ("[[rule]]\nprincipals=['a']\ntables=['*']\ndeny=true\nmask=['x']", "rule 1: a rule that"),
        ("[[rule]]\nprincipals=['a']\ntables=['*']\ndeny='yes'", "rule 1: key 'deny'"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named(text: str, told: str):
    with pytest.raises(BadConfig) as refused:
        Policies.parse(text)

    assert told in str(refused.value)
