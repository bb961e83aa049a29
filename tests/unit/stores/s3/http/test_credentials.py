"""Where keys come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.stores.s3.http.credentials import key_source
from airflow_connect.stores.s3.http.signing import Keys
from airflow_connect.stores.s3.settings import S3Credentials, S3Settings
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, error, times

EXPIRES = "2099-01-01T00:00:00Z"


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials anywhere on this machine."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def keys_of(**given: str) -> Keys:
    return key_source(S3Settings(bucket="b", region="eu-west-1", credentials=S3Credentials(**given)))()


@pytest.mark.usefixtures("bare_environment")
def test_key_source_static_keys_are_taken_as_they_are() -> None:
    assert keys_of(access_key_id="id", secret_access_key="s", session_token="t") == Keys("id", "s", "t")


@pytest.mark.usefixtures("bare_environment")
def test_key_source_default_chain_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "env-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
    assert keys_of() == Keys("env-id", "env-secret")


@pytest.mark.usefixtures("bare_environment")
def test_key_source_profile_reads_the_shared_file(tmp_path: Path) -> None:
    text = "[work]\naws_access_key_id=p-id\naws_secret_access_key=p-secret\n"
    (tmp_path / "credentials").write_text(text)
    assert keys_of(profile="work") == Keys("p-id", "p-secret")


@pytest.mark.usefixtures("bare_environment")
def test_key_source_nothing_found_lists_the_ways() -> None:
    with pytest.raises(AccessError, match=r"No AWS credentials were found.*aws\.access\.key\.id.*AWS_\*"):
        keys_of()


@pytest.mark.usefixtures("bare_environment")
def test_key_source_missing_profile_is_named() -> None:
    with pytest.raises(AccessError, match="absent"):
        keys_of(profile="absent")


def assumed(key: str, expires: str) -> Answer:
    document = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
      <Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey>
      <SessionToken>role-token</SessionToken><Expiration>{expires}</Expiration></Credentials>
      </AssumeRoleResult></AssumeRoleResponse>"""
    return Answer(200, document.encode(), {"content-type": "text/xml"})


def role(sts: S3Interceptor) -> S3Settings:
    given = S3Credentials(
        "id",
        "s",
        role_arn="arn:aws:iam::123456789012:role/copy",
        role_session_name="nightly",
        role_external_id="ext-1",
        sts_endpoint=sts.url,
    )
    return S3Settings(bucket="b", region="eu-west-1", credentials=given)


def test_key_source_role_is_assumed_once_with_session_and_external_id() -> None:
    with S3Interceptor(times(9, assumed("role-id", EXPIRES))) as sts:
        keys = key_source(role(sts))
        assert sts.seen == []
        assert keys() == keys() == Keys("role-id", "role-secret", "role-token")
    body = sts.seen[0].body.decode()
    assert len(sts.seen) == 1
    assert "RoleSessionName=nightly" in body and "ExternalId=ext-1" in body
    assert "/eu-west-1/sts/" in sts.seen[0].headers["authorization"]


def test_key_source_role_about_to_expire_is_renewed() -> None:
    with S3Interceptor(times(1, assumed("first", "2026-01-01T00:00:00Z")), times(9, assumed("second", EXPIRES))) as sts:
        keys = key_source(role(sts))
        with pytest.raises(AccessError, match="could not be assumed"):
            keys()  # expired on arrival: botocore says so instead of using it
        assert keys().access_key_id == "second"


def test_key_source_role_refused_names_role_and_key() -> None:
    refused = error(403, "AccessDenied", content_type="text/xml")
    with S3Interceptor(times(9, refused)) as sts, pytest.raises(AccessError) as caught:
        key_source(role(sts))()
    assert caught.value.config_path == "s3.credentials.provider.sts.role.arn"
    assert "arn:aws:iam::123456789012:role/copy" in str(caught.value)
    assert "ext-1" not in str(caught.value)


def test_key_source_sts_away_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with S3Interceptor(times(9, error(503, "ServiceUnavailable", content_type="text/xml"))) as sts:
        keys = key_source(role(sts))
        with pytest.raises(UnavailableError, match="could not be fetched"):
            keys()
    with pytest.raises(UnavailableError, match="connect"):
        keys()
