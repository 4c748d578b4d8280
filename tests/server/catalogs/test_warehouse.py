import shutil

import pytest

from floeberg.process.storage import LoggedStorage, open_storage
from floeberg.protocol.errors import BadConfig, CorruptTable, UnknownTable
from floeberg.protocol.storage import StorageConfig
from floeberg.server.catalogs import Catalog, WarehouseCatalog
from tests.support.documents import write_empty_table


@pytest.fixture
def lake(tmp_path):
    write_empty_table(tmp_path / "trips")
    write_empty_table(tmp_path / "db" / "orders")
    write_empty_table(tmp_path / "hive.db" / "orders")
    return tmp_path


def column_names(table):
    return [f.name for f in table.metadata.schema().fields]


def test_directories_are_tables_and_namespaces(lake):
    catalog = WarehouseCatalog("lake", str(lake))

    assert isinstance(catalog, Catalog)
    assert catalog.list_tables() == [("db", "orders"), ("hive", "orders"), ("trips",)]
    for identifier in catalog.list_tables():
        table = catalog.load(identifier)
        assert table.identifier == identifier
        assert table.metadata_location.endswith("/metadata/v1.metadata.json")
        assert table.metadata.location == table.metadata_location.rpartition("/metadata/")[0]
    assert catalog.load(("db", "orders")).name == "lake.db.orders"


def test_listing_ignores_what_is_no_table(lake):
    write_empty_table(lake / "_staging" / "t")
    write_empty_table(lake / ".hidden")
    write_empty_table(lake / "a" / "b" / "too_deep")
    write_empty_table(lake / "trips" / "data" / "inside_a_table")
    (lake / "a" / "file").write_text("x")
    (lake / "README").write_text("x")
    (lake / "loop").symlink_to(lake)

    listed = WarehouseCatalog("lake", str(lake)).list_tables()

    assert [t for t in listed if t[0] != "loop"] == [
        ("db", "orders"),
        ("hive", "orders"),
        ("trips",),
    ]
    assert [t for t in listed if t[0] == "loop"] == [("loop", "trips")]


@pytest.mark.parametrize(
    "identifier",
    [
        ("..", "lake", "trips"),
        ("..", "outside"),
        ("../outside",),
        ("db/../../outside",),
        ("/outside",),
        ("db", "."),
        ("db", ""),
        ("",),
        (),
        (".hidden",),
        ("a\0b",),
        ("db", "..\\outside"),
    ],
)
def test_a_name_never_leads_out_of_the_warehouse(tmp_path, identifier):
    write_empty_table(tmp_path / "outside")
    write_empty_table(tmp_path / "lake" / "trips")
    write_empty_table(tmp_path / "lake" / ".hidden")

    with pytest.raises(UnknownTable):
        WarehouseCatalog("lake", str(tmp_path / "lake")).load(identifier)


def test_an_unknown_table_has_all_tables_of_the_directory_as_neighbours(lake):
    catalog = WarehouseCatalog("lake", str(lake))

    assert catalog.suggests_cheaply
    assert catalog.is_local
    assert catalog.neighbours(("db", "order")) == catalog.list_tables()


def test_neighbours_in_an_object_store_take_a_handful_of_requests(lake, caplog):
    for number in range(40):
        write_empty_table(lake / "db" / f"other_{number}")
    (lake / "db" / "orders.bak").mkdir()
    # files here, which the catalog takes for objects of a store
    storage = LoggedStorage(open_storage(StorageConfig({}, {"s3://bucket/lake": str(lake)})))
    catalog = WarehouseCatalog("lake", "s3://bucket/lake", storage_factory=lambda _: storage)
    caplog.set_level("DEBUG", "floeberg.process.storage")

    assert not catalog.suggests_cheaply
    assert not catalog.is_local
    assert catalog.neighbours(("db", "ordrs")) == [("db", "orders")]
    assert 1 < len(caplog.records) <= 8
    assert catalog.neighbours(("hive", "order")) == [("hive", "orders")]
    assert catalog.neighbours(("trip",)) == [("trips",)]
    assert catalog.neighbours(("..", "x")) == catalog.neighbours(("a", "b", "c")) == ()


def test_a_commit_and_a_new_table_of_the_same_name_are_seen(lake):
    catalog = WarehouseCatalog("lake", str(lake))
    assert column_names(catalog.load(("trips",))) == ["id"]

    write_empty_table(lake / "trips", "v2.metadata.json", columns=("id", "fare"))
    assert column_names(catalog.load(("trips",))) == ["id", "fare"]

    shutil.rmtree(lake / "trips")
    with pytest.raises(UnknownTable):
        catalog.load(("trips",))
    write_empty_table(lake / "trips", columns=("other",))
    assert column_names(catalog.load(("trips",))) == ["other"]


def test_a_table_without_metadata_is_a_corrupt_one(lake):
    (lake / "db" / "empty" / "metadata").mkdir(parents=True)

    with pytest.raises(CorruptTable, match="empty"):
        WarehouseCatalog("lake", str(lake)).load(("db", "empty"))


def test_the_location_means_the_same_to_every_process(lake, monkeypatch):
    monkeypatch.chdir(lake.parent)

    table = WarehouseCatalog("lake", lake.name).load(("trips",))

    assert table.metadata_location == f"{lake}/trips/metadata/v1.metadata.json"


def test_file_locations_and_rebase_lead_to_the_same_table(lake):
    rebase = {"s3://gone": str(lake)}

    assert WarehouseCatalog("l", f"file://{lake}/").list_tables()
    table = WarehouseCatalog("l", "s3://gone", rebase=rebase).load(("trips",))
    assert table.metadata_location == "s3://gone/trips/metadata/v1.metadata.json"
    assert table.storage.rebase == rebase


def test_a_directory_that_is_not_there_is_a_mistake_of_configuration(tmp_path):
    with pytest.raises(BadConfig, match="nowhere"):
        WarehouseCatalog("lake", str(tmp_path / "nowhere"))


def test_properties_stay_out_of_sight(lake):
    catalog = WarehouseCatalog("lake", str(lake), {"s3.secret-access-key": "hush"})

    assert "hush" not in repr(catalog.load(("trips",)))
