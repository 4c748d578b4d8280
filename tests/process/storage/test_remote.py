"""What only a store across a network can do: refuse, stall, and go away."""

import re
import socket
import time

import pytest

from floeberg.process.storage import StorageCache, open_storage
from floeberg.process.storage.remote import RemoteStorage
from floeberg.protocol.errors import (
    AccessDenied,
    BadConfig,
    MissingFile,
    StorageUnavailable,
    Unsupported,
)
from floeberg.protocol.storage import StorageConfig
from tests.support.services import STRANGER


@pytest.fixture(scope="module")
def bucket(seaweed):
    seaweed.make_bucket("remote-storage")
    seaweed.put("remote-storage", {"dir/x": b"0123456789", "marked/": b"", "marked/x": b"1"})
    return "remote-storage"


@pytest.fixture
def silent_endpoint():
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed_endpoint():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def every_call(storage, location):
    return [
        lambda: storage.read(location),
        lambda: storage.read_ranges(location, [(0, 1)]),
        lambda: storage.size(location),
        lambda: storage.open(location),
        lambda: storage.list(location),
        lambda: storage.is_directory(location),
    ]


@pytest.mark.parametrize("who", ["stranger", "wrong secret", "unknown key", "nobody"])
def test_a_refusal_is_access_denied_and_says_nothing_secret(seaweed, bucket, who):
    properties = seaweed.s3_properties()
    match who:
        case "stranger":
            properties = seaweed.s3_properties(STRANGER)
        case "wrong secret":
            properties["s3.secret-access-key"] = "not-the-secret"
        case "unknown key":
            properties["s3.access-key-id"] = "unknown-key"
        case "nobody":
            properties["s3.anonymous"] = "true"
    storage = open_storage(StorageConfig(properties))

    for call in every_call(storage, f"s3://{bucket}/dir/x"):
        with pytest.raises(AccessDenied, match=f"{bucket}/dir/x") as raised:
            call()
        assert properties["s3.secret-access-key"] not in str(raised.value)
        assert properties["s3.access-key-id"] not in str(raised.value)


def test_a_bucket_that_is_not_there_has_no_files(seaweed):
    storage = open_storage(StorageConfig(seaweed.s3_properties()))

    for location in ("s3://no-such-bucket/x", "s3://Not_A_Bucket's Name/x"):
        with pytest.raises(MissingFile):
            storage.read(location)
        assert storage.list(location) == []


def test_a_store_that_is_gone_is_unavailable_within_seconds(closed_endpoint):
    storage = open_storage(StorageConfig(s3_at(closed_endpoint)))
    started = time.monotonic()

    with pytest.raises(StorageUnavailable, match="s3://bucket/x"):
        storage.read("s3://bucket/x")

    assert time.monotonic() - started < 20


def test_a_store_that_stalls_is_unavailable_at_the_deadline(silent_endpoint):
    storage = RemoteStorage("s3", s3_at(silent_endpoint), deadline_seconds=0.2)

    for call in every_call(storage, "s3://bucket/x"):
        started = time.monotonic()
        with pytest.raises(StorageUnavailable, match="s3://bucket/x"):
            call()
        assert time.monotonic() - started < 5


def test_a_directory_marker_is_no_entry(seaweed, bucket):
    storage = open_storage(StorageConfig(seaweed.s3_properties()))

    assert storage.list(f"s3://{bucket}/marked") == ["x"]


def test_one_configuration_shares_one_storage(seaweed, bucket):
    cache = StorageCache(max_entries=2)
    location = f"s3://{bucket}/dir/x"
    first = cache(StorageConfig(seaweed.s3_properties()))
    assert first.read(location) == b"0123456789"

    assert cache(StorageConfig(seaweed.s3_properties())) is first
    rebased = cache(StorageConfig(seaweed.s3_properties(), {"s3://gone": f"s3://{bucket}"}))
    assert rebased is not first
    assert rebased.read("s3://gone/dir/x") == b"0123456789"

    assert cache(StorageConfig(seaweed.s3_properties())) is first
    with pytest.raises(AccessDenied):
        cache(StorageConfig(seaweed.s3_properties(STRANGER))).read(location)
    assert cache(StorageConfig(seaweed.s3_properties())) is first
    assert cache(StorageConfig(seaweed.s3_properties(), rebased_to(bucket))) is not rebased


def test_properties_that_cannot_be_honoured_are_refused():
    for key in ("s3.role-arn", "s3.signer"):
        with pytest.raises(Unsupported):
            open_storage(StorageConfig({key: "something"})).read("s3://bucket/x")
    with pytest.raises(BadConfig, match=r"s3\.connect-timeout"):
        open_storage(StorageConfig({"s3.connect-timeout": "soon"})).read("s3://bucket/x")
    with pytest.raises(Unsupported, match="versionId"):
        open_storage(StorageConfig(s3_at("http://127.0.0.1:1"))).read("s3://b/k?versionId=1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.endpoint", "localhost:9000"),
        ("s3.endpoint", "http://"),
        ("s3.endpoint", "http://127.0.0.1:99999"),
        ("s3.endpoint", "http://[::1"),
        ("s3.endpoint", "http://a store/"),
        ("s3.endpoint", "http://127.0.0.1:1\n"),
        ("s3.region", "us-east-1\n"),
        ("s3.access-key-id", "key\r\nx-amz-acl: public-read"),
        ("s3.secret-access-key", "hunter2\n"),
        ("client.session-token", "hunter2\n"),
        ("s3.proxy-uri", "::::"),
    ],
)
def test_what_no_request_can_be_made_with_is_refused_before_one_is(key, value):
    storage = open_storage(StorageConfig({**s3_at("http://127.0.0.1:1"), key: value}))

    for read in (storage.read, lambda location: storage.read_ranges(location, [(0, 1)])):
        with pytest.raises(BadConfig, match=re.escape(key)) as told:
            read("s3://bucket/x")
        assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("scheme", ["http", "ssh", "memory", "hdfs"])
def test_only_known_schemes_are_spoken(scheme):
    with pytest.raises(BadConfig, match=scheme):
        open_storage().read(f"{scheme}://somewhere/x")


def s3_at(endpoint):
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "s3.region": "us-east-1",
    }


def rebased_to(bucket):
    return {"s3://gone": f"s3://{bucket}"}
