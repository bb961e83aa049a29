"""Our signatures equal botocore's, for every kind of key, query and header."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest import mock
from urllib.parse import quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.stores.s3.http.signing import Keys, Signer, Unsigned, encode_path, encode_query, payload_hash

HOST = "127.0.0.1:9000"
NOW = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)
KEYS = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "token/==")
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
values = st.text("abcXYZ019-_.~ /+=:%", max_size=12).map(str.strip)


def botocore_authorization(request: Unsigned, query: list[tuple[str, str]], keys: Keys) -> str:
    """What botocore puts into the Authorization header of the same request."""
    url = f"http://{HOST}{request.path}" + ("?" + "&".join(f"{quote(n)}={quote(v, safe='')}" for n, v in query))
    aws = AWSRequest(request.method, url, headers={**request.headers, "host": HOST}, data=b"")
    aws.context["client_config"] = mock.Mock(s3={"payload_signing_enabled": True})
    signer = S3SigV4Auth(
        Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token or None), "s3", "r1"
    )
    with mock.patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None)):
        signer.add_auth(aws)
    return str(aws.headers["Authorization"])


@given(
    st.lists(names, min_size=1, max_size=4).map("/".join),
    st.dictionaries(st.sampled_from(["uploadId", "uploads", "partNumber", "prefix"]), values),
    st.dictionaries(st.sampled_from(["x-amz-acl", "x-amz-meta-a", "content-md5", "if-none-match"]), values),
    st.sampled_from([KEYS, KEYS._replace(session_token="")]),
)
def test_headers_any_request_equals_botocore(
    key: str, query: dict[str, str], headers: dict[str, str], keys: Keys
) -> None:
    pairs = sorted(query.items())
    unsigned = Unsigned("PUT", HOST, f"/b/{encode_path(key)}", encode_query(pairs), headers, payload_hash(b""))
    ours = Signer("r1").headers(unsigned, keys, NOW)
    assert ours["authorization"] == botocore_authorization(unsigned, pairs, keys)


def test_headers_next_day_derives_a_new_key() -> None:
    signer = Signer("r1")
    unsigned = Unsigned("GET", HOST, "/b", "", {}, payload_hash(b""))
    first = signer.headers(unsigned, KEYS, NOW)["authorization"]
    later = datetime(2026, 11, 22, 1, 2, 3, tzinfo=UTC)
    second = signer.headers(unsigned, KEYS, later)["authorization"]
    assert second == Signer("r1").headers(unsigned, KEYS, later)["authorization"]
    assert first != second


def test_headers_other_keys_are_not_signed_with_cached_ones() -> None:
    signer = Signer("r1")
    unsigned = Unsigned("GET", HOST, "/b", "", {}, payload_hash(b""))
    signer.headers(unsigned, KEYS, NOW)
    renewed = KEYS._replace(secret_access_key="other")
    assert signer.headers(unsigned, renewed, NOW) == Signer("r1").headers(unsigned, renewed, NOW)


def test_keys_repr_hides_secrets() -> None:
    assert repr(KEYS) == "Keys(AKIDEXAMPLE)"
    assert KEYS.secret_access_key not in f"{KEYS} {KEYS!r}"
