from floeberg.server.catalogs.file_properties import file_properties, storage_credentials


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


def test_where_credentials_are_renewed_is_no_property_of_files():
    lent = {
        "s3.region": "eu",
        "client.refresh-credentials-endpoint": "v1/x/credentials",
        "client.refresh-credentials-enabled": "true",
        "gcs.oauth2.refresh-credentials-endpoint": "v1/x/credentials",
        "adls.refresh-credentials-enabled": "false",
    }

    assert file_properties({}, lent) == {"s3.region": "eu"}


def test_of_what_is_lent_by_prefix_that_is_kept_which_reaches_files():
    found = storage_credentials(
        [
            ("s3://lake", {"s3.access-key-id": "first", "token": "the catalog's"}),
            ("s3://other", {"token": "the catalog's"}),
            ("s3://lake", {"s3.access-key-id": "last", "s3.session-token": None}),
        ]
    )

    assert [(c.prefix, c.properties) for c in found] == [
        ("s3://lake", {"s3.access-key-id": "last"})
    ]
