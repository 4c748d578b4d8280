from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from floeberg.process.storage import LoggedStorage, open_storage
from floeberg.protocol.discovery import find_metadata, load_metadata, newest_metadata
from floeberg.protocol.errors import CorruptMetadata, MissingFile, NotATable
from floeberg.protocol.storage import Storage, StorageConfig

UUID = "844030fa-6b44-406b-ac35-494fe3c8e4a2"


def metadata(version: int = 1) -> bytes:
    raw = {
        "format-version": 2,
        "location": f"file:/v{version}",
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
    }
    return json.dumps(raw).encode()


@pytest.fixture
def storage() -> Storage:
    return open_storage(StorageConfig())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A table's directory; its name must come through untouched."""
    directory = tmp_path / "odd %20 na+me"
    (directory / "metadata").mkdir(parents=True)
    return directory


def put(directory: Path, *names: str, hint: str | None = None) -> None:
    for name in names:
        (directory / "metadata" / name).write_bytes(metadata())
    if hint is not None:
        (directory / "metadata" / "version-hint.text").write_bytes(hint.encode())


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("2", "v2.metadata.json"),
        ("2\n", "v2.metadata.json"),
        (" v2 ", "v2.metadata.json"),
        ("v2.metadata.json\r\n", "v2.metadata.json"),
        ("1", "v1.gz.metadata.json"),
        ("3", "v3.metadata.json.gz"),
        ("v3", "v3.metadata.json.gz"),
        ("7", f"00007-{UUID}.metadata.json"),
        (f"00007-{UUID}", f"00007-{UUID}.metadata.json"),
        ("00008-legacy", "00008-legacy.metadata.json"),
        ("v9", "v10.metadata.json"),
        ("9", "v10.metadata.json"),
        ("", "v10.metadata.json"),
        ("../../etc/passwd", "v10.metadata.json"),
        ("\ufffd nonsense", "v10.metadata.json"),
        ("²", "v10.metadata.json"),
        ("9" * 5000, "v10.metadata.json"),
    ],
)
def test_the_hint_counts_when_its_file_is_there_else_the_highest_version(
    storage, directory, hint, expected
):
    put(
        directory,
        *("v1.gz.metadata.json", "v2.metadata.json", "v3.metadata.json.gz", "v10.metadata.json"),
        *(f"00007-{UUID}.metadata.json", "00008-legacy.metadata.json"),
        hint=hint,
    )

    assert find_metadata(storage, str(directory)) == f"{directory}/metadata/{expected}"


@pytest.mark.parametrize("hint", ["11", "v11", "v11.metadata.json", f"00011-{UUID}"])
def test_a_table_does_not_fall_back_behind_its_hint(storage, directory, hint):
    put(directory, "v9.metadata.json", "v10.metadata.json", hint=hint)

    with pytest.raises(MissingFile, match=r"11.*metadata\.json does not exist"):
        find_metadata(storage, str(directory))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["v9.metadata.json", "v10.metadata.json"], "v10.metadata.json"),
        (["v2.gz.metadata.json", "v1.metadata.json"], "v2.gz.metadata.json"),
        (["v2.metadata.json.gz", "v1.metadata.json"], "v2.metadata.json.gz"),
        (["00009-a.metadata.json", "00010-b.metadata.json"], "00010-b.metadata.json"),
        (["99999-a.metadata.json", "100000-b.metadata.json"], "100000-b.metadata.json"),
        (["00003-a.metadata.json", "00003-b.metadata.json"], "00003-b.metadata.json"),
        (["00003-a.gz.metadata.json", "00002-b.metadata.json"], "00003-a.gz.metadata.json"),
        (["v1.metadata.json", f"{UUID}.metadata.json"], "v1.metadata.json"),
        (["vfinal.metadata.json", "v1.metadata.json"], "v1.metadata.json"),
        (["vfinal.metadata.json", "snap-1.avro"], "vfinal.metadata.json"),
        (["vfinal.metadata.json", "vdraft.metadata.json"], None),
        (["v1.metadata.json.crc", ".v1.metadata.json.crc", "v1.json", "snap-2.avro"], None),
        ([], None),
    ],
)
def test_the_highest_version_is_that_of_numbers(names, expected):
    assert newest_metadata(names) == expected
    assert newest_metadata(names[::-1]) == expected


@pytest.mark.parametrize("suffix", ["", "/", "/metadata", "/metadata/"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_directory_is_found_however_it_is_written(storage, directory, scheme, suffix):
    put(directory, "v1.metadata.json")

    found = find_metadata(storage, f"{scheme}{directory}{suffix}")

    assert found == f"{scheme}{directory}/metadata/v1.metadata.json"
    assert load_metadata(storage, found).location == "file:/v1"


def test_a_table_may_be_called_metadata(storage, tmp_path):
    (tmp_path / "metadata" / "metadata").mkdir(parents=True)
    put(tmp_path / "metadata", "v1.metadata.json")

    found = find_metadata(storage, f"{tmp_path}/metadata")

    assert found == f"{tmp_path}/metadata/metadata/v1.metadata.json"


@pytest.mark.parametrize("name", ["v1.metadata.json", "0-x.metadata.json.gz", "any.json", "any"])
def test_a_metadata_file_is_taken_as_it_is(storage, tmp_path, name):
    (tmp_path / name).write_bytes(metadata())

    assert find_metadata(storage, f"{tmp_path}/{name}") == f"{tmp_path}/{name}"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("/nope", "no table at /.*/nope: there is nothing of that name"),
        ("/empty", "no table at /.*/empty: /.*/empty/metadata holds no metadata file"),
        ("/data.parquet", "no table at /.*/data.parquet: it is a file, and none of metadata"),
        (None, "a table's location is empty"),
    ],
)
def test_what_is_no_table_is_an_error_with_advice(storage, tmp_path, name, told):
    (tmp_path / "empty" / "metadata").mkdir(parents=True)
    (tmp_path / "data.parquet").write_bytes(b"PAR1" * 100)

    with pytest.raises(
        NotATable, match=rf"{told}; give a table's directory, or a \*\.metadata\.json file"
    ):
        find_metadata(storage, f"{tmp_path}{name}" if name else "")


@pytest.mark.parametrize("level", ["", "/db"])
def test_a_directory_of_tables_leads_to_one_of_them(storage, tmp_path, level):
    (tmp_path / ".hidden" / "metadata").mkdir(parents=True)
    (tmp_path / "db" / "orders" / "metadata").mkdir(parents=True)
    put(tmp_path / "db" / "orders", "v1.metadata.json")

    with pytest.raises(NotATable, match=rf"such as {tmp_path}/db/orders: give one of those"):
        find_metadata(storage, f"{tmp_path}{level}/")


def test_a_mistaken_directory_is_not_listed_far(storage, tmp_path, caplog):
    for number in range(60):
        (tmp_path / f"d{number:02}" / "x").mkdir(parents=True)
    (tmp_path / "z" / "metadata").mkdir(parents=True)
    put(tmp_path / "z", "v1.metadata.json")
    caplog.set_level("DEBUG", "floeberg.process.storage")

    with pytest.raises(NotATable, match="holds no metadata file"):
        find_metadata(LoggedStorage(storage), str(tmp_path))
    assert len(caplog.records) < 40


@pytest.mark.parametrize("name", ["v1.metadata.json", "v1.gz.metadata.json"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_metadata_is_decompressed_by_its_bytes_and_not_its_name(storage, tmp_path, name, compress):
    (tmp_path / name).write_bytes(compress(metadata(5)))

    assert load_metadata(storage, f"{tmp_path}/{name}").location == "file:/v5"


def test_errors_name_the_file(storage, tmp_path):
    (tmp_path / "v2.metadata.json").write_bytes(metadata()[:-5])

    with pytest.raises(MissingFile, match=r"metadata file /.*/v1\.metadata\.json does not exist"):
        load_metadata(storage, f"{tmp_path}/v1.metadata.json")
    with pytest.raises(CorruptMetadata, match=r"/v2\.metadata\.json is not valid JSON"):
        load_metadata(storage, f"{tmp_path}/v2.metadata.json")
