import logging
import os

import pytest

from floeberg.process.storage import LoggedStorage, open_storage
from floeberg.protocol.errors import AccessDenied, BadConfig, MissingFile
from floeberg.protocol.storage import Storage, StorageConfig


@pytest.fixture
def lake(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_bytes(b"0123456789")
    return tmp_path


def test_reads_what_a_rebased_location_leads_to(lake):
    storage = open_storage(StorageConfig(rebase={"s3://gone/t": str(lake)}))
    location = "s3://gone/t/metadata/v1.metadata.json"

    assert storage.read(location) == b"0123456789"
    assert storage.read_ranges(location, [(8, 10), (0, 3), (20, 5)]) == [b"89", b"012", b""]
    assert storage.size(location) == 10
    assert storage.list("s3://gone/t/metadata") == ["v1.metadata.json"]
    assert storage.is_directory("s3://gone/t/metadata")
    with storage.open(location) as file:
        file.seek(4)
        assert file.read(2) == b"45"


def test_what_is_not_there_is_named(lake):
    storage = open_storage()

    for call in (storage.read, storage.size, storage.open):
        with pytest.raises(MissingFile, match="nowhere"):
            call(f"file://{lake}/nowhere")
    assert storage.list(f"{lake}/nowhere") == []
    assert not storage.is_directory(f"{lake}/nowhere")


def test_a_directory_is_not_a_file(lake):
    with pytest.raises(MissingFile, match="metadata"):
        open_storage().read(f"{lake}/metadata")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads files whatever their mode")
def test_a_refusal_is_told_from_an_absence(lake):
    secret = lake / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0)

    with pytest.raises(AccessDenied, match="secret"):
        open_storage().read(str(secret))


def test_an_unknown_scheme_says_so():
    with pytest.raises(BadConfig, match="'warp'"):
        open_storage().read("warp://core/x")


def test_requests_are_logged_with_location_and_bytes(lake, caplog):
    storage = LoggedStorage(open_storage())
    assert isinstance(storage, Storage)
    caplog.set_level(logging.DEBUG, "floeberg.process.storage.logged")

    storage.read(f"{lake}/metadata/v1.metadata.json")

    (record,) = caplog.records
    assert record.operation == "read"
    assert record.location.endswith("v1.metadata.json")
    assert record.length_bytes == 10


def test_a_failed_request_is_logged_too(lake, caplog):
    caplog.set_level(logging.DEBUG, "floeberg.process.storage.logged")

    with pytest.raises(MissingFile):
        LoggedStorage(open_storage()).read(f"{lake}/nowhere")

    (record,) = caplog.records
    assert (record.location, record.outcome) == (f"{lake}/nowhere", "MISSING_FILE")


def test_what_can_be_no_file_of_a_table_is_missing(lake):
    os.mkfifo(lake / "pipe")  # opening it would wait for a writer for ever
    storage = open_storage()

    for name in ("pipe", "a\0b", "x" * 300, "half a pair \ud800"):
        for call in (storage.read, storage.size, storage.open):
            with pytest.raises(MissingFile):
                call(f"{lake}/{name}")
