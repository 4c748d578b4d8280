from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlglot import exp

from floeberg.protocol.errors import BadSql, CatalogUnavailable, UnknownTable
from floeberg.server.catalogs import Catalogs, WarehouseCatalog
from floeberg.server.sql.lookup import Found, Neighbours, find_table
from floeberg.server.sql.names import Session, Version
from floeberg.server.sql.parsing import parse_sql
from tests.support.lake import TableWriter, required, schema

COLUMNS = schema({"id": required("long")})


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Catalogs:
    directory: Path = tmp_path_factory.mktemp("lake")
    for name in ("Sales/Orders", "Sales/files", "twins/one", "twins/One", "Twins/two", "alone"):
        TableWriter.create(directory / name, COLUMNS)
    return Catalogs([WarehouseCatalog("lake", str(directory))])


def find(
    catalogs: Catalogs,
    table: str,
    schema: tuple[str, ...] = (),
    neighbours: Neighbours | None = None,
) -> Found:
    node = parse_sql(f"SELECT * FROM {table}").tree.find(exp.Table)
    assert node is not None
    reference = Session(catalogs.names, "lake", schema).reference(node)
    asked = neighbours or (lambda catalog, identifier: catalogs.get(catalog).neighbours(identifier))
    return find_table(reference, lambda name: catalogs.load(name.parts), asked)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Sales.Orders", "lake.Sales.Orders"),
        ("sales.orders", "lake.Sales.Orders"),
        ("LAKE.SALES.ORDERS", "lake.Sales.Orders"),
        ('"sales.ORDERS"', "lake.Sales.Orders"),
        ("ALONE", "lake.alone"),
        ("twins.one", "lake.twins.one"),
        ("twins.One", "lake.twins.One"),
        ("twins.TWO", "lake.Twins.two"),
    ],
)
def test_a_table_is_found_as_it_is_written_or_but_for_its_case(catalogs, written, meant):
    found = find(catalogs, written)

    assert str(found.meaning.name) == meant
    assert found.table.name == meant


def test_the_session_s_schema_has_no_case_either(catalogs):
    assert str(find(catalogs, "ORDERS", ("sales",)).meaning.name) == "lake.Sales.Orders"


def test_what_is_asked_of_the_table_stays(catalogs):
    found = find(catalogs, "sales.orders.FILES VERSION AS OF 5")

    assert str(found.meaning.name) == "lake.Sales.Orders"
    assert found.meaning.metadata_table == "files"
    assert found.meaning.version == Version(snapshot_id=5)
    assert find(catalogs, "sales.files").meaning.metadata_table is None


def test_names_that_differ_in_case_only_have_to_be_written_as_they_are(catalogs):
    with pytest.raises(BadSql, match=r"'TWINS.ONE' may be lake.twins.One or lake.twins.one"):
        find(catalogs, "TWINS.ONE")


def test_a_table_that_is_nowhere_is_told_with_what_is_near(catalogs):
    with pytest.raises(UnknownTable, match=r"sales.odrers.*Sales.Orders"):
        find(catalogs, "sales.odrers")


def test_what_there_is_instead_is_told_in_sql_s_words(catalogs):
    with pytest.raises(UnknownTable, match=r"did you mean.*; SHOW ALL TABLES shows"):
        find(catalogs, "sales.odrers")
    for written in ("sales.orders.ALL_data_files", '"sales.orders$all_data_files"'):
        with pytest.raises(UnknownTable, match=r"entries, files, .* and 'all_data_files' is not"):
            find(catalogs, written)
    with pytest.raises(UnknownTable, match="SHOW ALL TABLES"):
        find(catalogs, "data_files")


def test_a_catalog_that_suggests_nothing_makes_no_other_error(catalogs):
    def fails(catalog: str, identifier: tuple[str, ...]) -> Sequence[tuple[str, ...]]:
        raise CatalogUnavailable("it is gone")

    with pytest.raises(UnknownTable):
        find(catalogs, "sales.orders", neighbours=fails)
