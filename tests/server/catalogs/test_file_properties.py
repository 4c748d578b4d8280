from floeberg.server.catalogs.file_properties import credentials_for, file_properties

CREDENTIALS = [
    ("s3://lake", {"s3.access-key-id": "wide"}),
    ("s3://lake/db/t", {"s3.access-key-id": "narrow"}),
    ("gs://lake", {"gcs.oauth2.token": "google"}),
]


def test_only_what_reaches_files_leaves_the_coordinator():
    configured = {
        "uri": "http://catalog",
        "credential": "id:secret",
        "token": "secret",
        "header.Authorization": "secret",
        "s3.region": "eu",
        "client.region": "eu",
        "gcs.project-id": "p",
        "adls.account-name": "a",
        "s3.session-token": None,
    }

    assert file_properties(configured) == {
        "s3.region": "eu",
        "client.region": "eu",
        "gcs.project-id": "p",
        "adls.account-name": "a",
    }


def test_two_identities_are_never_mixed():
    own = {
        "s3.access-key-id": "own",
        "s3.secret-access-key": "own",
        "s3.session-token": "own",
        "client.profile-name": "own",
        "s3.endpoint": "http://store",
    }

    assert file_properties(own, {"s3.access-key-id": "lent", "s3.secret-access-key": "lent"}) == {
        "s3.endpoint": "http://store",
        "s3.access-key-id": "lent",
        "s3.secret-access-key": "lent",
    }
    assert file_properties(own, {"s3.region": "eu"}) == {**own, "s3.region": "eu"}


def test_the_credential_with_the_longest_prefix_is_the_tables():
    assert credentials_for("s3://lake/db/t/data", CREDENTIALS) == {"s3.access-key-id": "narrow"}
    assert credentials_for("s3://lake/other", CREDENTIALS) == {"s3.access-key-id": "wide"}
    assert credentials_for("file:/x", CREDENTIALS) == {}
