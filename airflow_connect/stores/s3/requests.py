"""The S3 operations of a staged file: create, upload a part, complete, abort, inspect, tag, list.

A lean client: a multipart object costs three requests, and through boto3 those cost 7.5 ms of CPU. Here they
are built by hand; every header that an option demands is in one place (`_creation_headers`, `customer_key`).
Source of formats and headers: Amazon S3 API Reference.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from airflow_connect.errors import ConfigError, ConnectError, UnavailableError
from airflow_connect.stores.s3.http.errors import (
    Attempted,
    HttpResponse,
    Refusal,
    UnreadableReplyError,
    error_for,
    parse_xml,
    read_refusal,
)
from airflow_connect.stores.s3.http.transport import Body, S3Request, S3Transport
from airflow_connect.stores.store import has_odd_directories

PUBLISH_RETRIES = 8
"""Minimum number of retries of Complete, HEAD and GET, about a minute with the default backoff."""

METADATA_PREFIX = "x-amz-meta-"
_PUT = ("s3:PutObject",)
_LIST = ("s3:ListBucket",)
_LOOK = ("s3:GetObject", *_LIST)


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """The result of HEAD for an object.

    Attributes:
        metadata: user metadata, names in lower case without prefix.
    """

    size_bytes: int
    etag: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An unfinished multipart upload."""

    key: str
    upload_id: str
    started_ms: int


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing."""

    key: str
    size_bytes: int
    modified_ms: int
    etag: str


class S3Requests:
    """Operations on one bucket.

    Methods raise AccessError, ConfigError or UnavailableError unless they say otherwise.

    Attributes:
        customer_key: headers with the customer's key (SSE-C), for requests that read or write content; or {}.
    """

    def __init__(self, transport: S3Transport) -> None:
        """`transport` is shared by all threads."""
        self.transport = transport
        self.settings = transport.settings
        self.customer_key = self._customer_key_headers()

    @property
    def possible_duplicates(self) -> bool:
        """Whether a CreateMultipartUpload was repeated: the server may hold an upload whose id is unknown."""
        return "CreateMultipartUpload" in self.transport.repeated

    def create_upload(self, key: str, headers: Mapping[str, str], metadata: Mapping[str, str]) -> str:
        """CreateMultipartUpload: start an invisible upload; returns its id.

        A try whose reply is lost leaves an upload that only a sweep finds.

        Args:
            key: object key.
            headers: content headers in lower case.
            metadata: user metadata, ASCII.
        """
        named = {METADATA_PREFIX + name: value for name, value in metadata.items()}
        request = S3Request(
            "CreateMultipartUpload",
            "POST",
            _PUT,
            key,
            (("uploads", ""),),
            {**headers, **named, **self._creation_headers()},
            incomplete=_without("UploadId"),
        )
        return parse_xml(self._ok(request).body).findtext("UploadId", "")

    def upload_part(self, key: str, upload_id: str, number: int, data: Body) -> str:
        """UploadPart; returns the part's ETag. Repeating replaces the part.

        Args:
            number: from 1 to 10,000.
            data: at least 5 MiB unless it is the last part.
        """
        headers = dict(self.customer_key)
        if self.settings.send_digest:
            headers["content-md5"] = _md5_base64(data)
        query = (("partNumber", str(number)), ("uploadId", upload_id))
        request = S3Request("UploadPart", "PUT", _PUT, key, query, headers, data, _without_etag)
        return self._ok(request).etag

    def complete_upload(
        self, key: str, upload_id: str, parts: Sequence[tuple[int, str]], *, replacing: str | None
    ) -> Refusal | None:
        """CompleteMultipartUpload: make the object visible; returns S3's refusal, or None.

        Args:
            parts: numbers and ETags, ascending.
            replacing: what the key may hold; with anything else S3 refuses atomically with 412. "" means nothing
                (`If-None-Match: *`), an ETag means the object with it (`If-Match`; 404 NoSuchKey if there is none),
                None means anything.
        """
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{escape(etag)}&quot;</ETag></Part>"
            for number, etag in parts
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        headers = {"content-type": "application/xml", **self.customer_key}
        if replacing:
            headers["if-match"] = f'"{replacing}"'
        elif replacing is not None:
            headers["if-none-match"] = "*"
        query = (("uploadId", upload_id),)
        lacking = _without("ETag")
        request = S3Request("CompleteMultipartUpload", "POST", _PUT, key, query, headers, body, lacking)
        _, refusal = self.transport.send(request, PUBLISH_RETRIES)
        return refusal

    def completing(self, key: str) -> Attempted:
        """CompleteMultipartUpload of `key`, for messages."""
        return self.transport.attempted(S3Request("CompleteMultipartUpload", "POST", _PUT, key))

    def abort_upload(self, key: str, upload_id: str) -> bool:
        """AbortMultipartUpload; returns whether it existed. A published object is not touched."""
        query = (("uploadId", upload_id),)
        request = S3Request("AbortMultipartUpload", "DELETE", ("s3:AbortMultipartUpload",), key, query)
        _, refusal = self.transport.send(request)
        if refusal is None:
            return True
        if refusal.is_absence:
            return False
        raise error_for(refusal, self.transport.attempted(request))

    def head_object(self, key: str) -> ObjectFacts | None:
        """HeadObject; None if the object does not exist."""
        request = S3Request("HeadObject", "HEAD", _LOOK, key, headers=self.customer_key, incomplete=_missing_headers)
        reply, refusal = self.transport.send(request, PUBLISH_RETRIES)
        if refusal is not None and refusal.status == 404:
            if self._is_absent(key):
                return None
            reply, refusal = self.transport.send(request, PUBLISH_RETRIES)
        if refusal is not None:
            raise error_for(refusal, self.transport.attempted(request))
        prefix = len(METADATA_PREFIX)
        metadata = {n[prefix:]: v for n, v in reply.headers.items() if n.startswith(METADATA_PREFIX)}
        return ObjectFacts(int(reply.headers["content-length"]), reply.etag, metadata)

    def check_key_is_kept(self, key: str, upload_id: str) -> None:
        """Fail unless the store keeps this key for an upload as it is; does nothing for keys that every store keeps.

        Amazon S3 keeps `raw//t/x`, `/raw/x` and `raw/./x`. Stores on top of a file system fold the slashes, MinIO
        refuses them. Where they are folded, the upload has another key, and can never be published under its own.

        Raises:
            ConfigError: the store has another key, refuses this one, or does not say.
        """
        if not self.settings.endpoint or not has_odd_directories(key):
            return
        try:
            # The whole key as prefix: MinIO lists no others.
            is_kept = any((found.key, found.upload_id) == (key, upload_id) for found in self.list_uploads(key))
            self.head_object(key)
        except ConnectError as error:
            if isinstance(error, UnavailableError):
                raise
            raise odd_key(key, str(error)) from error
        if not is_kept:
            raise odd_key(key, "The store does not list the upload under this name.")

    def _is_absent(self, key: str) -> bool:
        """Whether S3 itself says so: a 404 to HEAD has no body, so it may be a proxy's. False: it has just appeared."""
        headers = {**self.customer_key, "range": "bytes=0-0"}
        request = S3Request("GetObject", "GET", _LOOK, key, headers=headers)
        _, refusal = self.transport.send(request, PUBLISH_RETRIES)
        if refusal is not None and refusal.is_absence:
            return True
        # An empty object has no first byte: 416.
        if refusal is not None and refusal.status != 416:
            raise error_for(refusal, self.transport.attempted(request))
        return False

    def put_empty(self, key: str) -> None:
        """PutObject without content, if there is no object or an equal one; idempotent."""
        self._ok(S3Request("PutObject", "PUT", _PUT, key, headers=self._creation_headers()))

    def put(self, key: str, data: bytes) -> None:
        """PutObject, in place of another one."""
        headers = {**self._creation_headers(), "content-md5": _md5_base64(data)}
        self._ok(S3Request("PutObject", "PUT", _PUT, key, headers=headers, body=data))

    def put_tags(self, key: str, tags: Mapping[str, str]) -> None:
        """PutObjectTagging: replace the tags of a published object."""
        listed = "".join(
            f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>" for name, value in tags.items()
        )
        body = f"<Tagging><TagSet>{listed}</TagSet></Tagging>".encode()
        # S3 requires a digest for this operation even over TLS.
        headers = {"content-type": "application/xml", "content-md5": _md5_base64(body)}
        request = S3Request("PutObjectTagging", "PUT", ("s3:PutObjectTagging",), key, (("tagging", ""),), headers, body)
        self._ok(request)

    def list_uploads(self, prefix: str, page_size: int = 1000) -> Iterator[OpenUpload]:
        """ListMultipartUploads under a key prefix, page by page.

        MinIO lists only for a prefix that equals the key.
        """
        position: tuple[tuple[str, str], ...] = ()
        while True:
            query = (("uploads", ""), ("prefix", prefix), ("max-uploads", str(page_size)), *position)
            permissions = ("s3:ListBucketMultipartUploads",)
            lacking = _without("Bucket")
            request = S3Request("ListMultipartUploads", "GET", permissions, query=query, incomplete=lacking)
            page = parse_xml(self._ok(request).body)
            for upload in page.iter("Upload"):
                started = _epoch_ms(upload.findtext("Initiated", ""))
                yield OpenUpload(upload.findtext("Key", ""), upload.findtext("UploadId", ""), started)
            next_key = page.findtext("NextKeyMarker") or ""
            following = (
                ("key-marker", next_key),
                ("upload-id-marker", page.findtext("NextUploadIdMarker") or ""),
            )
            # A server that repeats a marker would cause an endless loop.
            if page.findtext("IsTruncated") != "true" or not next_key or following == position:
                return
            position = following

    def list_objects(self, prefix: str, delimiter: str = "") -> Iterator[ListedObject]:
        """ListObjectsV2 under a key prefix, page by page.

        With a delimiter, only keys that do not contain it after the prefix.
        """
        token = ""
        while True:
            query = [("list-type", "2"), ("prefix", prefix), ("encoding-type", "url")]
            query += [("delimiter", delimiter)] if delimiter else []
            query += [("continuation-token", token)] if token else []
            request = S3Request("ListObjectsV2", "GET", _LIST, query=tuple(query), incomplete=_no_listing)
            page = parse_xml(self._ok(request).body)
            is_encoded = page.findtext("EncodingType") == "url"
            for item in page.iter("Contents"):
                key = item.findtext("Key", "")
                yield ListedObject(
                    unquote_plus(key) if is_encoded else key,
                    int(item.findtext("Size", "0")),
                    _epoch_ms(item.findtext("LastModified", "")),
                    item.findtext("ETag", "").strip('"'),
                )
            if page.findtext("IsTruncated") != "true":
                return
            following = page.findtext("NextContinuationToken") or ""
            if following in ("", token):
                raise UnavailableError(
                    f"{self.settings.bucket} says that there are more objects below {prefix or '/'}, and not where they"
                    " begin, so the listing is not complete.",
                    code="s3.listing",
                    suggestion="Look at the S3 server, or at a proxy before it: it answers ListObjectsV2 wrongly.",
                )
            token = following

    def _ok(self, request: S3Request) -> HttpResponse:
        reply, refusal = self.transport.send(request)
        if refusal is not None:
            raise error_for(refusal, self.transport.attempted(request))
        return reply

    def _creation_headers(self) -> dict[str, str]:
        given = self.settings
        headers = dict(self.customer_key)
        if given.acl:
            headers["x-amz-acl"] = given.acl
        if given.sse_name and not given.is_encrypted_by_customer_key:
            headers["x-amz-server-side-encryption"] = given.sse_name
            if given.sse_kms_key_id and given.sse_name != "AES256":
                headers["x-amz-server-side-encryption-aws-kms-key-id"] = given.sse_kms_key_id
        return headers

    def _customer_key_headers(self) -> dict[str, str]:
        if not self.settings.is_encrypted_by_customer_key:
            return {}
        key, prefix = self.settings.customer_key_bytes(), "x-amz-server-side-encryption-customer-"
        return {
            f"{prefix}algorithm": "AES256",
            f"{prefix}key": base64.b64encode(key).decode(),
            f"{prefix}key-md5": _md5_base64(key),
        }


def odd_key(key: str, reason: str) -> ConfigError:
    """The error for a key with an odd directory that the store does not keep; `reason`: a sentence."""
    return ConfigError(
        f"The object name {key!r} has a directory that is empty, '.' or '..', and the store does not keep such a name"
        f" as it is: {reason}",
        code="s3.odd_name",  # NAME_NOT_KEPT
        config_path="topics.dir",
        suggestion="Write topics.dir, path.format and tombstone.encoded.partition without leading, trailing or doubled"
        " slashes. Amazon S3 keeps such names; to check another store, the permission s3:ListBucketMultipartUploads is"
        " needed.",
    )


def _without(tag: str) -> Callable[[HttpResponse], str]:
    """Check that the reply is a whole XML document with this element in its root."""

    def lacking(reply: HttpResponse) -> str:
        try:
            return "" if parse_xml(reply.body).find(tag) is not None else f"without {tag}"
        except UnreadableReplyError as error:
            return f"that cannot be read: {error}"

    return lacking


def _no_listing(reply: HttpResponse) -> str:
    if read_refusal(reply) is not None:
        return ""
    try:
        return "" if parse_xml(reply.body).tag == "ListBucketResult" else "that is not a listing"
    except UnreadableReplyError as error:
        return f"that cannot be read: {error}"


def _without_etag(reply: HttpResponse) -> str:
    """Check the header that identifies the stored bytes; a reply truncated in its headers looks complete."""
    return "" if reply.etag else "without ETag"


def _missing_headers(reply: HttpResponse) -> str:
    return _without_etag(reply) or ("" if "content-length" in reply.headers else "without Content-Length")


def _md5_base64(data: Body) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _epoch_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 time; 0 if the server does not send one."""
    return int(datetime.fromisoformat(text).timestamp() * 1000) if text else 0
