"""Each file is read with the credentials of its prefix, which a real S3 store enforces."""

from __future__ import annotations

import pytest

from floeberg.process.storage import StorageCache, open_storage
from floeberg.protocol.errors import AccessDenied, MissingFile
from floeberg.protocol.storage import StorageConfig, StorageCredential
from tests.support.lending import lent_bucket, s3_identity
from tests.support.services import LENT, LENT_BUCKET, Seaweed

ROOT = f"s3://{LENT_BUCKET}"
FILES = {
    "data/x": b"data",
    "data/wide/y": b"wide",
    "deletes/x": b"deletes",
    "metadata/x": b"metadata",
}


@pytest.fixture(scope="module")
def config(seaweed: Seaweed) -> StorageConfig:
    lent_bucket(seaweed)
    seaweed.put(LENT_BUCKET, FILES)
    properties = seaweed.s3_properties(LENT["metadata"])
    return StorageConfig(
        properties,
        {"s3://written": ROOT},
        (
            StorageCredential(f"{ROOT}/data/", s3_identity(LENT["data"])),
            StorageCredential(f"{ROOT}/deletes/", s3_identity(LENT["deletes"])),
            # what is written there is elsewhere now, and credentials go by what is written
            StorageCredential("s3a://written/data", s3_identity(LENT["data-again"])),
        ),
    )


@pytest.mark.parametrize("name", FILES)
def test_every_request_goes_out_with_the_credentials_of_its_prefix(config, name):
    storage, location, content = open_storage(config), f"{ROOT}/{name}", FILES[name]

    assert storage.read(location) == content
    assert storage.read_ranges(location, [(1, 2)]) == [content[1:3]]
    assert storage.size(location) == len(content)
    assert storage.open(location).read() == content
    assert not storage.is_local(location)
    assert storage.is_local("file:/x")


def test_requests_made_together_go_to_the_store_of_each(config):
    storage = open_storage(config)
    requests = [(f"{ROOT}/{name}", [(0, 4)]) for name in FILES]
    missing, refused = f"{ROOT}/data/none", f"{ROOT}/elsewhere"

    *found, gone, no = storage.read_many([*requests, (missing, [(0, 1)]), (refused, [(0, 1)])])

    assert found == [[content[:4]] for content in FILES.values()]
    assert isinstance(gone, MissingFile)
    assert isinstance(no, AccessDenied)


def test_without_a_prefix_of_its_own_a_file_is_read_with_what_holds_for_all(config):
    storage = open_storage(config)

    assert storage.read("s3://written/metadata/x") == b"metadata"
    assert storage.read("s3://written/data/x") == b"data"
    with pytest.raises(AccessDenied):
        storage.read("s3://written/deletes/x")


def test_a_prefix_that_is_too_long_does_not_count(config, seaweed: Seaweed):
    narrow = StorageCredential(f"{ROOT}/data/wide/", s3_identity(LENT["deletes"]))
    wide = StorageCredential(f"{ROOT}/data", s3_identity(LENT["data"]))
    storage = open_storage(StorageConfig(seaweed.s3_properties(), {}, (narrow, wide)))

    assert storage.read(f"{ROOT}/data/x") == b"data"
    with pytest.raises(AccessDenied):
        storage.read(f"{ROOT}/data/wide/y")


def test_connections_are_shared_by_what_opens_them(config, seaweed: Seaweed):
    opened: list[StorageConfig] = []
    both = config

    def opening(config: StorageConfig):
        opened.append(config)
        return open_storage(config)

    cache = StorageCache(opening)
    other = StorageConfig(both.properties, both.rebase, both.credentials[:1])

    for one in (both, other, both):
        assert cache(one).read(f"{ROOT}/data/x") == b"data"
        assert cache(one).read(f"{ROOT}/metadata/x") == b"metadata"

    assert [c.properties["s3.access-key-id"] for c in opened] == ["data-key", "metadata-key"]
    assert not any(c.credentials for c in opened)
