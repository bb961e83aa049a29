"""S3's replies: safe XML parsing, which errors are worth a retry, and messages for refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError
from airflow_connect.stores.s3.http import redirects as s3_redirects

NO_SUCH_BUCKET, NO_SUCH_KEY, NO_SUCH_UPLOAD = "NoSuchBucket", "NoSuchKey", "NoSuchUpload"
PRECONDITION_FAILED = "PreconditionFailed"
NOT_IMPLEMENTED = "NotImplemented"

RETRIABLE_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 509})
# The server computed a different digest of the body than the one in the request.
DAMAGE_CODES = frozenset({"BadDigest", "XAmzContentSHA256Mismatch"})
# 400s for requests damaged or truncated in transit, and throttling under its several names.
RETRIABLE_CODES = DAMAGE_CODES | frozenset(
    {
        "IncompleteBody",
        "InternalError",
        "InternalFailure",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"})
_WRONG_REGION = frozenset(
    {
        "PermanentRedirect",
        "IllegalLocationConstraintException",
        "TemporaryRedirect",
    }
)
_WRONG_KEYS = frozenset({"AuthorizationHeaderMalformed", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
_NAMESPACE = re.compile(r"^\{[^}]*\}")


class UnreadableReplyError(ValueError):
    """A body that should be S3's XML and is not; treated like a truncated reply."""


def parse_xml(body: bytes) -> ElementTree.Element:
    """Parse an S3 reply; namespaces are removed from tag names.

    A document type is refused: S3 never sends one, and entities are how XML bombs and file disclosure work.
    The text is decoded here, so a declared encoding cannot hide one.

    Raises:
        UnreadableReplyError: not UTF-8, not well-formed (a reply cut off), or with a document type.
    """
    try:
        text = body.decode("utf-8").lstrip()
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise UnreadableReplyError("The reply declares a document type.")
        root = ElementTree.fromstring(text)
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        raise UnreadableReplyError(f"The reply is not XML: {error}") from error
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
    return root


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete HTTP reply; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def etag(self) -> str:
        """ETag without quotes, or ""."""
        return self.headers.get("etag", "").strip('"')


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error reply of S3.

    Attributes:
        status: HTTP status; 200 is possible (CompleteMultipartUpload reports late failures in the body).
        code: S3's error code; "" if the reply has no body (HEAD) or does not come from S3.
        message: S3's text.
        region: the bucket's actual region, if the reply contains it, or "".
        request_id: lets the store's operator look up the request.
        location: scheme and host that a redirect leads to, or "".
    """

    status: int
    code: str
    message: str = ""
    region: str = ""
    request_id: str = ""
    location: str = ""

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in RETRIABLE_STATUSES or self.code in RETRIABLE_CODES

    @property
    def is_damage(self) -> bool:
        """Whether the body was changed in transit."""
        return self.code in DAMAGE_CODES

    @property
    def is_absence(self) -> bool:
        """Whether S3 says that it has no such object or upload; a 404 without S3's own code may be a proxy's."""
        return self.status == 404 and self.code in (NO_SUCH_KEY, NO_SUCH_UPLOAD)

    def __str__(self) -> str:
        """`403 AccessDenied: text (request id x)`."""
        text = f"{self.status} {self.code}".rstrip()
        if self.message:
            text += f": {self.message.rstrip('.')}"
        return f"{text} (request id {self.request_id})" if self.request_id else text


def read_refusal(reply: HttpResponse) -> Refusal | None:
    """The error in `reply`, or None for a success.

    A 200 whose body is an `<Error>` is an error (S3 API, CompleteMultipartUpload: the status is sent before
    the work is done).
    """
    ok = reply.status < 300
    if ok and b"<Error" not in reply.body.lstrip()[:1024]:
        return None
    code = message = region = request_id = ""
    try:
        root = parse_xml(reply.body)
    except UnreadableReplyError:
        # A proxy's HTML page, or nothing (HEAD): only the status is known.
        pass
    else:
        if ok and root.tag != "Error":
            return None
        code, message = root.findtext("Code", ""), root.findtext("Message", "")
        region, request_id = root.findtext("Region", ""), root.findtext("RequestId", "")
    return Refusal(
        reply.status,
        code,
        message,
        reply.headers.get("x-amz-bucket-region", region),
        reply.headers.get("x-amz-request-id", request_id),
        s3_redirects.shown(reply.headers["location"]) if _is_redirect(reply) else "",
    )


def _is_redirect(reply: HttpResponse) -> bool:
    return reply.status in s3_redirects.STATUSES and "location" in reply.headers


@dataclass(frozen=True, slots=True)
class Attempted:
    """The attempted request, for messages.

    Attributes:
        operation: S3's name, such as `CompleteMultipartUpload`.
        bucket, key: its target; `key` may be "".
        permissions: IAM actions that it requires.
        region: the region that was signed for.
    """

    operation: str
    bucket: str
    key: str
    permissions: tuple[str, ...]
    region: str

    @property
    def place(self) -> str:
        """`s3://bucket/key`."""
        return f"s3://{self.bucket}/{self.key}"


def error_for(refusal: Refusal, tried: Attempted) -> ConnectError:
    """The typed error for a refusal, with what to do."""
    head = f"{tried.operation} of {tried.place} was refused with {refusal}."
    if refusal.is_retriable:
        return UnavailableError(f"{tried.operation} of {tried.place} failed with {refusal}.", code="s3.unavailable")
    if refusal.location and refusal.region in ("", tried.region):
        return ConfigError(
            f"{tried.operation} of {tried.place} was redirected to {refusal.location}, which is not followed: signed "
            "requests go to the configured endpoint only, and to Amazon S3's own hosts where that is one of them.",
            code="s3.redirect",
            config_path="store.url",
            suggestion=f"If the bucket is served at {refusal.location}, set store.url to it.",
        )
    if _is_region_wrong(refusal, tried.region):
        actual = refusal.region or "another region"
        return ConfigError(
            f"Bucket {tried.bucket} is in {actual}, but s3.region is {tried.region}.",
            code="s3.region",
            config_path="s3.region",
            suggestion=f"Set s3.region={refusal.region}."
            if refusal.region
            else "Set s3.region to the bucket's region.",
        )
    if refusal.status == 404 and not refusal.code:
        return UnavailableError(
            f"{tried.operation} of {tried.place} was answered with status 404 without an error code of S3, so "
            "something other than the store has answered, such as a proxy in front of it.",
            code="s3.answer",
            config_path="store.url",
            suggestion=f"Check that store.url is the store's own address, and that bucket {tried.bucket} exists.",
        )
    code, suggestion, config_path = _explain(refusal, tried)
    return AccessError(head, code=code, suggestion=suggestion, config_path=config_path)


def _is_region_wrong(refusal: Refusal, region: str) -> bool:
    if refusal.status in (301, 307) or refusal.code in _WRONG_REGION:
        return True
    # A malformed access key has the same code; only a region in the reply distinguishes them. HEAD has no code at all.
    return (
        refusal.status == 400
        and refusal.code in ("", "AuthorizationHeaderMalformed")
        and (refusal.region not in ("", region))
    )


def _explain(refusal: Refusal, tried: Attempted) -> tuple[str, str, str]:
    """Stable code, suggestion and configuration key of a refusal."""
    if refusal.code == NO_SUCH_BUCKET:
        return "s3.no_bucket", f"Create bucket {tried.bucket}, or correct s3.bucket.name.", "s3.bucket.name"
    if refusal.code in _EXPIRED:
        advice = "The temporary credentials have expired; use longer-lived keys, or a role, which is renewed."
        return "s3.credentials_expired", advice, "aws.access.key.id"
    if refusal.code in _WRONG_KEYS:
        return "s3.credentials_wrong", "Correct the access key and its secret.", "aws.access.key.id"
    if refusal.code == "RequestTimeTooSkewed":
        return "s3.clock", "Set this machine's clock: S3 accepts signatures of the last 15 minutes.", ""
    if refusal.code == "InvalidObjectState":
        return "s3.archived", "Restore the object from its archive (RestoreObject), then run again.", ""
    if refusal.status == 403:
        needed = " and ".join(tried.permissions)
        return "s3.forbidden", f"Grant {needed} on this bucket to the credentials in use.", ""
    if refusal.status == 501 or refusal.code == NOT_IMPLEMENTED:
        advice = "This store does not support it: unset the keys for encryption, ACL or tags that use it."
        return "s3.not_offered", advice, ""
    return "s3.refused", "Look the request up in the store's log, or ask its operator.", ""
