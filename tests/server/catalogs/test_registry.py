import json
from dataclasses import dataclass, field

import pytest

from floeberg.protocol.errors import (
    BadConfig,
    CatalogUnavailable,
    FloebergError,
    UnknownCatalog,
    UnknownTable,
)
from floeberg.protocol.metadata import TableMetadata
from floeberg.protocol.storage import StorageConfig
from floeberg.server.catalogs import Catalog, Catalogs, LoadedTable
from tests.support.documents import empty_metadata

METADATA = TableMetadata.parse(json.dumps(empty_metadata("/t")), "it")


@dataclass
class Shelf:
    """A catalog that holds names and may be out of reach."""

    name: str
    tables: list[tuple[str, ...]] = field(default_factory=list)
    failure: FloebergError | None = None
    kind: str = "shelf"
    suggests_cheaply: bool = True
    is_local: bool = True

    def neighbours(self, identifier):
        return self.list_tables()

    def list_tables(self):
        if self.failure:
            raise self.failure
        return self.tables

    def load(self, identifier):
        if self.failure:
            raise self.failure
        if identifier not in self.tables:
            raise UnknownTable(".".join(identifier))
        return LoadedTable(self.name, identifier, METADATA, None, StorageConfig())


def test_the_first_catalog_is_the_default():
    catalogs = Catalogs([Shelf("one", [("db", "t")]), Shelf("two", [("db", "t")])])

    assert catalogs.load(("db", "t")).name == "one.db.t"
    assert catalogs.load(("two", "db", "t")).name == "two.db.t"
    assert catalogs.names == ("one", "two")


def test_another_catalog_can_be_the_default():
    catalogs = Catalogs([Shelf("one", [("t",)]), Shelf("two", [("t",)])], default="two")

    assert catalogs.load(("t",)).catalog == "two"
    with pytest.raises(UnknownCatalog, match="'tow' is configured; it has two"):
        Catalogs([Shelf("one"), Shelf("two")], default="tow")


def test_a_namespace_called_like_a_catalog_stays_in_reach():
    one = Shelf("one", [("two", "t"), ("two",)])
    two = Shelf("two", [("u",)])
    catalogs = Catalogs([one, two])

    assert catalogs.load(("two", "t")).name == "one.two.t"
    assert catalogs.load(("two", "u")).name == "two.u"
    assert catalogs.load(("two",)).name == "one.two"
    assert catalogs.resolve(("two", "t")) == (one, ("two", "t"))
    assert catalogs.resolve(("two", "u")) == (two, ("u",))


def test_a_name_with_one_meaning_resolves_without_a_request():
    one = Shelf("one", failure=CatalogUnavailable("gone"))

    assert Catalogs([one]).resolve(("db", "t")) == (one, ("db", "t"))


def test_an_unknown_table_is_told_of_by_the_catalog_that_was_named():
    catalogs = Catalogs([Shelf("one", [("db", "t")]), Shelf("two", [("db", "orders")])])

    for call in (catalogs.load, catalogs.resolve):
        with pytest.raises(UnknownTable) as raised:
            call(("two", "db", "order"))
        assert str(raised.value) == (
            "no table 'two.db.order'; did you mean two.db.orders? (a name without its catalog is"
            " one of 'one'; the catalogs are one, two)"
        )


def test_with_one_catalog_names_are_suggested_without_it():
    with pytest.raises(UnknownTable) as raised:
        Catalogs([Shelf("one", [("db", "orders")])]).load(("db", "order"))

    assert str(raised.value) == "no table 'db.order'; did you mean db.orders?"


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        (("db", "ordres"), "two.db.orders"),  # of another catalog
        (("analytics", "trips"), "one.analytics_for_all.trips"),  # of another namespace
        (("one", "db", "orders"), "two.db.orders"),
        (("tow", "db", "orders"), "two.db.orders"),  # the catalog's name is misspelt
        (("trips",), "one.analytics_for_all.trips"),  # without its namespace
        (("DB", "Orders"), "two.db.orders"),
        (("db", "orders.2023"), '["one", "db", "orders.2024"]'),
    ],
)
def test_a_table_is_suggested_from_every_catalog_that_is_cheap_to_ask(asked, suggested):
    one = Shelf("one", [("db", "orders.2024"), ("analytics_for_all", "trips"), ()])
    two = Shelf("two", [("db", "orders")])
    down = Shelf("down", failure=CatalogUnavailable("gone"))
    dear = Shelf("dear", [asked], suggests_cheaply=False)

    with pytest.raises(UnknownTable) as raised:
        Catalogs([one, two, down, dear]).load(asked)

    assert suggested in str(raised.value).partition("did you mean ")[2].partition("?")[0]
    assert "dear." not in str(raised.value)


def test_names_that_only_begin_alike_are_not_suggested():
    lake = Shelf("lake", [("sales_data", "orders"), ("sales_data", "items"), ("sales_data", "x")])

    with pytest.raises(UnknownTable) as raised:
        Catalogs([lake]).load(("sales_data", "ordres"))

    assert str(raised.value) == "no table 'sales_data.ordres'; did you mean sales_data.orders?"


def test_only_what_the_named_catalog_can_never_find_is_told_instead():
    class Rootless(Shelf):
        def neighbours(self, identifier):
            raise BadConfig(f"{self.name} has no warehouse")

    with pytest.raises(BadConfig, match="one has no warehouse"):
        Catalogs([Rootless("one"), Shelf("two")]).load(("db", "t"))
    with pytest.raises(UnknownTable, match="lists what is served"):
        Catalogs([Shelf("one"), Rootless("two")]).load(("db", "t"))


def test_a_catalog_out_of_reach_is_not_taken_for_one_without_the_table():
    catalogs = Catalogs(
        [Shelf("one", [("two", "t")]), Shelf("two", failure=CatalogUnavailable("x"))]
    )

    with pytest.raises(CatalogUnavailable):
        catalogs.load(("two", "t"))


def test_listing_goes_on_when_a_catalog_fails():
    failure = CatalogUnavailable("gone")
    catalogs = Catalogs([Shelf("one", failure=failure), Shelf("two", [("db", "t")])])

    listing = catalogs.list_tables()

    assert listing.tables == (("two", ("db", "t")),)
    assert listing.failures == {"one": failure}


def test_catalogs_need_distinct_names_and_at_least_one():
    assert isinstance(Shelf("one"), Catalog)
    with pytest.raises(BadConfig, match="'one'"):
        Catalogs([Shelf("one"), Shelf("one")])
    with pytest.raises(BadConfig, match="no catalog"):
        Catalogs([])
