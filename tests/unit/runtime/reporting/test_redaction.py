"""Finding and hiding secrets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.runtime.reporting.redaction import Redactor, secret_values


@pytest.mark.parametrize(
    ("key", "value", "secrets"),
    [
        ("sasl.password", "hunter22", ["hunter22"]),
        ("producer.ssl.key.password", "hunter22", ["hunter22"]),
        ("aws.secret.access.key", "abc", ["abc"]),
        ("basic.auth.user.info", "me:pw123", ["me:pw123"]),
        ("sasl.jaas.config", 'X required password="pw123";', ['X required password="pw123";', "pw123"]),
        ("sasl.jaas.config", "X required password='pw123';", ["X required password='pw123';", "pw123"]),
        ("connection.url", "jdbc:postgresql://me:pw123@db/x", ["pw123"]),
        ("http.proxy", "http://me:pw123@proxy:80", ["pw123"]),
        ("nested", {"inner.token": "pw123"}, ["pw123"]),
        ("hosts", ["http://a:pw123@b", "http://c"], ["pw123"]),
        ("spark.remote", "sc://host:15002/;user_id=me;token=pw123;use_ssl=true", ["pw123"]),
        ("spark.driver.extraJavaOptions", "-Xmx1g -Dssl.keyStorePassword='pw 123' -Da=b", ["pw 123"]),
        ("connection.properties", "password=pw123;user=x", ["pw123"]),
        ("connection.properties", "user=x,password=pw123", ["pw123"]),
        ("http.headers", "Accept: a/b, Authorization: Bearer abc.def", ["abc.def"]),
        ("http.headers", "authorization:Basic eDp5", ["eDp5"]),
        ("connection.pwd", "pw123", ["pw123"]),
        ("sasl.password", "${env:PASSWORD}", []),
        ("connection.url", "jdbc:postgresql://me:${env:PW}@db/x", []),
        ("topics", "password", []),
        ("flush.size", 3, []),
    ],
)
def test_secret_values_finds_what_is_secret_and_nothing_else(key: str, value: Any, secrets: list[str]) -> None:
    assert sorted(secret_values({key: value})) == sorted(secrets)


def test_secret_values_takes_names_of_password_keys() -> None:
    assert secret_values({"s3.sse.thing": "pw123"}, secret_names=["s3.sse.thing"]) == ["pw123"]


def test_redactor_hides_longest_secret_first() -> None:
    assert Redactor(["secret", "secret-and-more"])("a secret-and-more, a secret") == "a [hidden], a [hidden]"


def test_redactor_leaves_short_secrets_alone() -> None:
    assert Redactor(["a", ""])("a banana") == "a banana"


@given(st.lists(st.text(min_size=5, max_size=20), max_size=5), st.lists(st.text(max_size=20), max_size=5))
def test_no_long_secret_survives_the_redactor(secrets: list[str], between: list[str]) -> None:
    redact = Redactor(secrets)
    text = redact("".join(part for pair in zip(secrets, between, strict=False) for part in pair))
    # A secret may reappear only as a part of the word that replaces secrets.
    assert [s for s in secrets if s in text.replace("[hidden]", "\0") and "hidden" not in s] == []


def test_redactor_hides_a_secret_as_json_and_urls_write_it() -> None:
    shown = Redactor(['pa"s w\u00fc'])('a=pa\\"s w\u00fc b=pa\\"s w\\u00fc c=pa%22s%20w%C3%BC d=pa%22s+w%C3%BC')
    assert shown == "a=[hidden] b=[hidden] c=[hidden] d=[hidden]"
