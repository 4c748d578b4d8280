from __future__ import annotations

from pathlib import Path

import pytest

from floeberg.process.storage.s3 import s3_options
from floeberg.process.storage.s3_identity import identity_options
from floeberg.process.storage.s3_storage import S3Storage
from floeberg.protocol.storage import Storage
from tests.support.services import OWNER, Seaweed

KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "secret"}
REGION = {"s3.region": "eu-north-1"}
ENDPOINT = {"s3.endpoint": "http://localhost:9000"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep what the machine is configured with out of the tests."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def test_keys_that_are_given_are_used_with_their_token_and_no_other() -> None:
    given = s3_options({**KEYS, **REGION, **ENDPOINT, "s3.session-token": "token"})

    found = identity_options(given, {"AWS_SESSION_TOKEN": "another"})

    assert found is not None
    assert found["endpoint"] == "http://localhost:9000"
    assert found["region"] == "eu-north-1"
    assert found["credential_provider"]() == {
        "access_key_id": "key",
        "secret_access_key": "secret",
        "token": "token",
        "expires_at": None,
    }
    bare = identity_options(s3_options({**KEYS, **REGION}), {})
    assert bare is not None
    assert bare["credential_provider"]()["token"] is None


def test_nobody_signs_nothing() -> None:
    found = identity_options(s3_options({"s3.anonymous": "true", **REGION}), {})

    assert found == {"region": "eu-north-1", "skip_signature": True}


@pytest.mark.parametrize(
    ("properties", "environ"),
    [
        (KEYS, {}),  # in which region?
        ({"s3.anonymous": "true"}, {}),
        ({"s3.access-key-id": "key", **ENDPOINT}, {}),
        ({**KEYS, **REGION, "s3.force-virtual-addressing": "true"}, {}),
        ({**KEYS, **REGION}, {"AWS_USE_FIPS_ENDPOINT": "true"}),
        (REGION, {}),  # no credentials anywhere
        ({"s3.profile-name": "none", **REGION}, {}),
    ],
)
def test_what_obstore_cannot_find_out_is_for_s3fs(
    properties: dict[str, str], environ: dict[str, str]
) -> None:
    assert identity_options(s3_options(properties), environ) is None


def test_the_environment_says_where() -> None:
    found = identity_options(s3_options(KEYS), {"AWS_ENDPOINT_URL_S3": "http://localhost:9000"})

    assert found is not None
    assert (found["endpoint"], found["region"]) == ("http://localhost:9000", "us-east-1")


def test_a_profile_is_read_as_awss_own_tools_read_it(seaweed: Seaweed, tmp_path: Path) -> None:
    seaweed.make_bucket("s3-identity")
    seaweed.put("s3-identity", {"x": b"abc"})
    (tmp_path / "credentials").write_text(
        f"[lake]\naws_access_key_id = {OWNER.access_key}\n"
        f"aws_secret_access_key = {OWNER.secret_key}\n"
    )
    (tmp_path / "config").write_text(
        "[profile lake]\nregion = us-east-1\n"
        "[profile other]\nregion = us-east-1\nendpoint_url = http://localhost:1\n"
    )

    def no_rest() -> Storage:
        raise AssertionError("obstore can read it")

    properties = {"s3.endpoint": seaweed.s3_endpoint, "s3.profile-name": "lake"}
    assert S3Storage(properties, no_rest).read("s3://s3-identity/x") == b"abc"
    assert identity_options(s3_options({"s3.profile-name": "other"}), {}) is None
