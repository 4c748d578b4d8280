import json

import pytest

from floeberg.process.storage import open_storage
from floeberg.protocol.errors import CorruptMetadata, MissingFile
from floeberg.server.catalogs.metadata_cache import MetadataCache
from tests.support.documents import TABLE_UUID, empty_metadata

UNIQUE = f"00001-{TABLE_UUID}.metadata.json"


def document(last_updated_ms):
    return empty_metadata("/t", last_updated_ms=last_updated_ms)


def write(directory, name, last_updated_ms=1):
    path = directory / name
    path.write_text(json.dumps(document(last_updated_ms)))
    return str(path)


def test_a_name_that_is_never_used_again_is_read_once(tmp_path):
    cache = MetadataCache()
    location = write(tmp_path, UNIQUE)
    first = cache.load(open_storage(), location)

    (tmp_path / UNIQUE).unlink()

    assert cache.load(open_storage(), location) is first


def test_a_name_that_may_be_used_again_is_read_each_time(tmp_path):
    cache = MetadataCache()
    location = write(tmp_path, "v1.metadata.json")
    first = cache.load(open_storage(), location)
    assert cache.load(open_storage(), location) is first  # the same content is not parsed again
    assert (cache.hits, cache.misses) == (1, 1)

    write(tmp_path, "v1.metadata.json", last_updated_ms=2)
    assert cache.load(open_storage(), location).last_updated_ms == 2

    (tmp_path / "v1.metadata.json").unlink()
    with pytest.raises(MissingFile):
        cache.load(open_storage(), location)


def test_a_uuid_in_a_directory_makes_no_name_unique(tmp_path):
    directory = tmp_path / TABLE_UUID
    directory.mkdir()
    cache = MetadataCache()
    cache.load(open_storage(), write(directory, "v1.metadata.json"))

    again = write(directory, "v1.metadata.json", last_updated_ms=2)

    assert cache.load(open_storage(), again).last_updated_ms == 2


def test_only_what_was_used_last_is_kept(tmp_path):
    cache = MetadataCache(max_entries=2)
    names = [UNIQUE.replace("00001", f"0000{i}") for i in range(3)]
    locations = [write(tmp_path, name) for name in names]
    loaded = [cache.load(open_storage(), location) for location in locations]

    assert cache.load(open_storage(), locations[2]) is loaded[2]
    assert cache.load(open_storage(), locations[1]) is loaded[1]
    assert cache.load(open_storage(), locations[0]) is not loaded[0]


def test_a_document_without_a_location_is_known_by_its_content():
    cache = MetadataCache()

    first = cache.parse(document(1), None, "an answer")

    assert cache.parse(document(1), None, "an answer") is first
    assert cache.parse(document(2), None, "an answer").last_updated_ms == 2
    with pytest.raises(CorruptMetadata, match="an answer"):
        cache.parse({"format-version": 2}, None, "an answer")
