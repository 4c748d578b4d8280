from itertools import permutations

import pytest

from floeberg.process.storage.credentials import (
    credential_for,
    earliest_expiry_ms,
    expiry_ms,
    fingerprint,
    layered,
    properties_for,
)
from floeberg.protocol.storage import StorageConfig, StorageCredential


def lent(*prefixes: str) -> list[StorageCredential]:
    return [StorageCredential(prefix, {"s3.access-key-id": prefix}) for prefix in prefixes]


@pytest.mark.parametrize(
    ("location", "prefixes", "expected"),
    [
        ("s3://b/a/x", ["s3://b/a/x", "s3://b", "s3://b/a"], "s3://b/a/x"),
        # a prefix is text, in the specification's words and in what the Java library does
        ("s3://b/ab", ["s3://b/a"], "s3://b/a"),
        ("s3://b/ab", ["s3://b/a", "s3://b"], "s3://b/a"),
        ("s3://b/ab", ["s3://b/a/", "s3://b"], "s3://b"),
        ("s3://b2/x", ["s3://b"], "s3://b"),
        ("s3://b2/x", ["s3://b/"], None),
        ("s3://b/x", ["s3"], "s3"),
        ("s3://b/x", [""], ""),
        ("s3://b/x", ["s3://B"], None),
        ("s3://b/x", ["gs://b", "abfss://b"], None),
        ("s3://b/x", [], None),
        # one store by several schemes
        ("s3a://b/x", ["s3://b"], "s3://b"),
        ("s3://b/x", ["s3a://b"], "s3a://b"),
        ("s3a://b/x", ["s3"], "s3"),
        ("s3://b/x", ["s3n"], "s3n"),
        ("S3://b/x", ["s3://b"], "s3://b"),
        ("gcs://b/x", ["gs://b"], "gs://b"),
        # of two that are equal but for the scheme
        ("s3a://b/x", ["s3a://b", "s3://b"], "s3a://b"),
        ("s3://b/x", ["s3a://b", "s3://b"], "s3://b"),
        ("s3a://b/x", ["s3://b/x", "s3a://b"], "s3://b/x"),
        ("/b:x/y", ["/b", "s3://"], "/b"),
    ],
)
def test_the_longest_prefix_of_a_location_counts(location, prefixes, expected):
    for in_some_order in permutations(prefixes):
        found = credential_for(location, lent(*in_some_order))
        assert (None if found is None else found.prefix) == expected


def test_an_identity_is_replaced_as_a_whole_and_the_rest_one_by_one():
    lower = {
        "s3.access-key-id": "own",
        "s3.session-token": "own",
        "s3.session-token-expires-at-ms": "1",
        "client.profile-name": "own",
        "s3.endpoint": "http://store",
        "s3.region": "us",
        "gcs.oauth2.token": "own",
        "gcs.oauth2.token-expires-at": "2",
        "adls.sas-token.a.dfs.core.windows.net": "own",
        "adls.account-name": "a",
    }

    assert layered(lower, {"s3.access-key-id": "lent", "s3.region": "eu"}) == {
        "s3.access-key-id": "lent",
        "s3.endpoint": "http://store",
        "s3.region": "eu",
        **{key: value for key, value in lower.items() if key[0] in "ga"},
    }
    assert layered(lower, {"gcs.oauth2.token": "lent"}).get("gcs.oauth2.token-expires-at") is None
    assert layered(lower, {"adls.sas-token.b": "x"}).keys() >= {"adls.account-name"}
    assert "own" not in layered(lower, {"adls.sas-token.b": "x"}).get("adls.sas-token.a", "")
    assert layered(lower, {"s3.region": "eu"}) == {**lower, "s3.region": "eu"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"s3.session-token-expires-at-ms": "17"}, 17),
        ({"gcs.oauth2.token-expires-at": "18"}, 18),
        ({"adls.sas-token-expires-at-ms.acc": "19", "gcs.oauth2.token-expires-at": "20"}, 19),
        ({"s3.session-token-expires-at-ms": "soon"}, None),
        ({"s3.session-token-expires-at-ms": ""}, None),
        ({"s3.session-token-expires-at-ms": "-1"}, None),
        ({"s3.session-token-expires-at-ms": "1.8e12"}, None),
        ({"s3.session-token-expires-at-ms": "9" * 15}, 10**15 - 1),
        ({"s3.session-token-expires-at-ms": "9" * 400}, None),  # beyond what a float holds
        ({"s3.session-token-expires-at-ms": "9" * 5000}, None),  # and what int() takes
        ({"s3.access-key-id": "5"}, None),
    ],
)
def test_the_end_of_credentials_is_told_by_the_names_of_each_store(properties, expected):
    assert expiry_ms(properties) == expected


def test_the_first_end_of_all_counts_and_no_end_that_is_replaced():
    ends = StorageCredential(
        "s3://a", {"s3.access-key-id": "k", "s3.session-token-expires-at-ms": "30"}
    )
    endless = StorageCredential("s3://b", {"s3.access-key-id": "k"})
    own = {"s3.access-key-id": "own", "s3.session-token-expires-at-ms": "20"}

    assert earliest_expiry_ms(StorageConfig({}, credentials=(ends, endless))) == 30
    assert earliest_expiry_ms(StorageConfig(own, credentials=(ends,))) == 20
    config = StorageConfig(own, credentials=(ends, endless))
    assert expiry_ms(properties_for("s3://b/x", config)) is None


def test_a_fingerprint_tells_credentials_apart_and_tells_nothing_of_them():
    first = StorageConfig({"s3.region": "eu"}, credentials=tuple(lent("s3://a", "s3://b")))
    turned = StorageConfig({"s3.region": "eu"}, credentials=tuple(lent("s3://b", "s3://a")))
    other = StorageConfig({"s3.region": "eu"}, credentials=tuple(lent("s3://a", "s3://c")))

    assert fingerprint(first) == fingerprint(turned)
    assert len({fingerprint(first), fingerprint(other), fingerprint(StorageConfig())}) == 3
    assert "s3" not in fingerprint(first)


def test_no_value_is_in_a_repr():
    config = StorageConfig({}, credentials=(StorageCredential("s3://a", {"k": "hunter2"}),))

    assert "hunter2" not in repr(config)
    assert "s3://a" in repr(config)
