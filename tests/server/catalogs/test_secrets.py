import pytest

from floeberg.server.catalogs.secrets import SecretValues

PROPERTIES = {
    "uri": "postgresql+psycopg2://reader:p%40ss-word@db.example:5432/lake",
    "credential": "client-id:client-hush",
    "token": "bearer-hush/+",
    "s3.endpoint": "http://store.example:9000",
    "s3.access-key-id": "AKIA1234",
    "s3.secret-access-key": "aws-hush",
    "adls.connection-string": "AccountKey=azure-hush",
    "warehouse": "lakehouse",
    "auth": {"type": "oauth2", "oauth2": {"client_id": "the-id", "client_secret": "oauth-hush"}},
    "oauth2-server-uri": "https://login.example/oauth/tokens",
    "pin": "abc",
}


@pytest.mark.parametrize(
    "secret",
    [
        "p%40ss-word",
        "p@ss-word",
        "client-hush",
        "client-id:client-hush",
        "bearer-hush/+",
        "bearer-hush%2F%2B",
        "AKIA1234",
        "aws-hush",
        "azure-hush",
        "oauth-hush",
    ],
)
def test_secrets_are_hidden_in_every_spelling(secret):
    secrets = SecretValues(PROPERTIES)
    text = f"login failed for '{secret}'"

    assert secrets.shows_in(text)
    assert secret not in secrets.hide(text)
    assert secret not in repr(secrets)


@pytest.mark.parametrize(
    "text", ["lakehouse", "db.example:5432", "http://store.example:9000", "login.example", "abc"]
)
def test_what_helps_to_find_the_fault_stays(text):
    assert SecretValues(PROPERTIES).hide(text) == text


def test_nothing_is_hidden_where_nothing_is_secret():
    secrets = SecretValues({"warehouse": "w", "uri": "http://["})

    assert secrets.hide("any text") == "any text"
    assert not secrets.shows_in("")
