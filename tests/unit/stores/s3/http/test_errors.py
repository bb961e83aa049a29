"""Reading S3's answers and explaining refusals."""

from __future__ import annotations

import pytest

from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError, is_retriable
from airflow_connect.stores.s3.http.errors import (
    Attempted,
    HttpResponse,
    Refusal,
    UnreadableReplyError,
    error_for,
    parse_xml,
    read_refusal,
)

TRIED = Attempted("UploadPart", "b", "t/k", ("s3:PutObject",), "us-west-2")


@pytest.mark.parametrize(
    "body",
    [
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a><a/>'.encode("utf-16"),
        b"<a><b></a>",
        b"<a>",
        b"",
        b"\xff\xfe",
    ],
)
def test_parse_xml_of_hostile_or_broken_text_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableReplyError):
        parse_xml(body)


def test_parse_xml_drops_namespaces_and_leading_space() -> None:
    # S3 sends blanks while a long Complete is at work.
    root = parse_xml(b'  \n<?xml version="1.0"?><R xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><A>1</A></R>')
    assert (root.tag, root.findtext("A")) == ("R", "1")


def test_read_refusal_error_in_a_200_is_an_error() -> None:
    body = b" " * 3000 + b"<Error><Code>InternalError</Code><Message>again.</Message></Error>"
    refusal = read_refusal(HttpResponse(200, {}, body))
    assert refusal is not None
    assert (refusal.code, refusal.is_retriable) == ("InternalError", True)


def test_read_refusal_of_a_proxy_page_keeps_the_status() -> None:
    refusal = read_refusal(HttpResponse(502, {}, b"<html>Bad gateway"))
    assert refusal == Refusal(502, "")
    assert refusal.is_retriable


@pytest.mark.parametrize(
    "reply", [HttpResponse(204, {}, b""), HttpResponse(200, {}, b"<Result><ErrorCount>0</ErrorCount></Result>")]
)
def test_read_refusal_of_success_is_none(reply: HttpResponse) -> None:
    assert read_refusal(reply) is None


@pytest.mark.parametrize(
    ("refusal", "kind", "code", "words"),
    [
        (Refusal(403, "AccessDenied"), AccessError, "s3.forbidden", "Grant s3:PutObject"),
        (Refusal(403, ""), AccessError, "s3.forbidden", "s3:PutObject"),
        (Refusal(403, "SignatureDoesNotMatch"), AccessError, "s3.credentials_wrong", "secret"),
        (Refusal(403, "InvalidAccessKeyId"), AccessError, "s3.credentials_wrong", "access key"),
        (Refusal(400, "AuthorizationHeaderMalformed"), AccessError, "s3.credentials_wrong", "access key"),
        (Refusal(400, "ExpiredToken"), AccessError, "s3.credentials_expired", "expired"),
        (Refusal(403, "RequestTimeTooSkewed"), AccessError, "s3.clock", "clock"),
        (Refusal(404, "NoSuchBucket"), AccessError, "s3.no_bucket", "s3.bucket.name"),
        (Refusal(404, ""), UnavailableError, "s3.answer", "exists"),
        (Refusal(301, "PermanentRedirect", region="eu-west-1"), ConfigError, "s3.region", "s3.region=eu-west-1"),
        (Refusal(400, "AuthorizationHeaderMalformed", region="eu-west-1"), ConfigError, "s3.region", "eu-west-1"),
        (Refusal(400, "", region="eu-west-1"), ConfigError, "s3.region", "Bucket b is in eu-west-1"),
        (Refusal(301, ""), ConfigError, "s3.region", "another region"),
        (Refusal(503, "SlowDown"), UnavailableError, "s3.unavailable", "503 SlowDown"),
        (Refusal(400, "RequestTimeout"), UnavailableError, "s3.unavailable", "RequestTimeout"),
        (Refusal(400, "EntityTooSmall"), AccessError, "s3.refused", "400 EntityTooSmall"),
    ],
)
def test_error_for_says_what_is_missing(refusal: Refusal, kind: type[ConnectError], code: str, words: str) -> None:
    error = error_for(refusal, TRIED)
    assert (type(error), error.code) == (kind, code)
    assert words in str(error)
    assert is_retriable(error) is (kind is UnavailableError)
