"""All settings of the S3 store, validated once, safe to print and to pickle to executors."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from airflow_connect.errors import ConfigError
from airflow_connect.stores.s3.partitions import partition_of_region

MIN_PART_BYTES = 5 * 1024 * 1024
"""Smallest part that S3 accepts, except for the last one (S3 API: EntityTooSmall)."""

DEFAULT_PART_BYTES = 26_214_400
SSE_CUSTOMER_KEY_BYTES = 32
CANNED_ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "log-delivery-write",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "aws-exec-read",
)
SSE_NAMES = ("AES256", "aws:kms", "aws:kms:dsse")


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """Where signatures come from. All empty: the default chain (environment, profile, container, machine).

    With `role_arn` the keys (or the default chain) only call STS, and the role's short-lived keys sign; they
    are renewed before they expire. The fields are also what an Airflow `aws` connection holds.

    Attributes:
        access_key_id, secret_access_key: static keys; both or none.
        session_token: token of temporary keys; such keys cannot be renewed and expire.
        profile: profile of the shared credentials file, for the default chain.
        role_arn: role to assume, or "".
        role_session_name: name of the session in CloudTrail.
        role_external_id: external id that the role's trust policy requires, or "".
        sts_endpoint: STS address, or "" for the region's.
        sts_region: region of STS, or "" for the bucket's.
    """

    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    profile: str = ""
    role_arn: str = ""
    role_session_name: str = "airflow-connect"
    role_external_id: str = field(default="", repr=False)
    sts_endpoint: str = ""
    sts_region: str = ""

    def __post_init__(self) -> None:
        """Reject half a pair of keys, a mistake that the default chain would hide."""
        if bool(self.access_key_id) != bool(self.secret_access_key):
            given, missing = "aws.access.key.id", "aws.secret.access.key"
            if self.secret_access_key:
                given, missing = missing, given
            raise ConfigError(
                f"{given} is set but {missing} is not.",
                code="s3.credentials",
                config_path=missing,
                suggestion="Set both, or neither to use the default credentials chain.",
            )


@dataclass(frozen=True, slots=True)
class S3Settings:
    """One bucket, how to reach it, and the attributes of every object in it.

    Attributes:
        bucket: `s3.bucket.name`.
        region: `s3.region`; the region that requests are signed for.
        endpoint: `store.url` of an S3-compatible store, or "" for Amazon's; `https://` is added if the scheme is
            missing.
        path_style: `s3.path.style.access.enabled`: the bucket is the first path segment instead of a host
            name.
        wan_mode: `s3.wan.mode`: transfer acceleration; excludes `path_style`.
        part_size_bytes: `s3.part.size`.
        part_retries: `s3.part.retries`: tries after the first one.
        retry_backoff_ms: `s3.retry.backoff.ms`: first pause; doubles, with full jitter.
        sse_name: `s3.ssea.name`: `AES256`, `aws:kms`, `aws:kms:dsse` or "".
        sse_customer_key: `s3.sse.customer.key`: 32 bytes in base64; used only with `AES256`.
        sse_kms_key_id: `s3.sse.kms.key.id`.
        acl: `s3.acl.canned`.
        object_tagging: `s3.object.tagging`: tags startOffset, endOffset and recordCount on every object.
        extra_tags: `s3.object.tagging.key.value.pairs`.
        fail_on_tagging_error: `s3.object.behavior.on.tagging.error` is `fail`.
        proxy_url, proxy_user, proxy_password: `s3.proxy.*`; "" follows the environment (`HTTPS_PROXY`,
            `NO_PROXY`).
        send_digest: `s3.send.digest`: Content-MD5 with every part.
        conditional_writes: `enable.conditional.writes`: never replace an existing object.
        replace_foreign: `behavior.on.foreign.objects` is `replace`: an object not written by a connector of this
            package may be replaced.
        credentials: who signs.
        connect_timeout_ms, read_timeout_ms: of one try of one request.
        upload_threads: requests in flight for one stager.
        upload_buffer_bytes: bytes of full parts and closed files that may wait for upload in one stager.
        publish_threads: requests in flight for one publisher.
    """

    bucket: str
    region: str = "us-west-2"
    endpoint: str = ""
    path_style: bool = True
    wan_mode: bool = False
    part_size_bytes: int = DEFAULT_PART_BYTES
    part_retries: int = 3
    retry_backoff_ms: int = 200
    sse_name: str = ""
    sse_customer_key: str = field(default="", repr=False)
    sse_kms_key_id: str = ""
    acl: str = ""
    object_tagging: bool = False
    extra_tags: tuple[tuple[str, str], ...] = ()
    fail_on_tagging_error: bool = False
    proxy_url: str = field(default="", repr=False)
    proxy_user: str = ""
    proxy_password: str = field(default="", repr=False)
    send_digest: bool = False
    conditional_writes: bool = True
    replace_foreign: bool = False
    credentials: S3Credentials = field(default_factory=S3Credentials)
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 60_000
    upload_threads: int = 8
    upload_buffer_bytes: int = 64 * 1024 * 1024
    publish_threads: int = 16

    def __post_init__(self) -> None:
        """Reject settings that would otherwise fail later, in the middle of a copy."""
        self._check_address()
        self._check_encryption()
        if self.part_size_bytes < MIN_PART_BYTES:
            message = f"s3.part.size is {self.part_size_bytes} bytes; S3 does not accept parts below {MIN_PART_BYTES}."
            raise ConfigError(message, code="s3.part_size", config_path="s3.part.size")
        for key, value in (
            ("s3.part.retries", self.part_retries),
            ("s3.retry.backoff.ms", self.retry_backoff_ms),
        ):
            if value < 0:
                raise ConfigError(f"{key} is {value}, but must be 0 or more.", code="s3.retries", config_path=key)
        if self.acl and self.acl not in CANNED_ACLS:
            message = f"s3.acl.canned is {self.acl!r}, which is not a canned ACL of S3."
            accepts = f"Use one of {', '.join(CANNED_ACLS)}."
            raise ConfigError(message, code="s3.acl", config_path="s3.acl.canned", suggestion=accepts)

    @property
    def base_url(self) -> str:
        """Scheme and host of every request, followed by the bucket where it is addressed by path."""
        if self.endpoint:
            address = self.endpoint if "://" in self.endpoint else f"https://{self.endpoint}"
            parts = urlsplit(address.rstrip("/"))
            if self.path_style:
                return f"{parts.scheme}://{parts.netloc}{parts.path}/{self.bucket}"
            return f"{parts.scheme}://{self.bucket}.{parts.netloc}{parts.path}"
        domain = partition_of_region(self.region).dns_suffixes[0]
        if self.wan_mode:
            return f"https://{self.bucket}.s3-accelerate.{domain}"
        # The certificate of *.s3.<region> covers one label; AWS's clients also fall back to the path.
        if self.path_style or "." in self.bucket:
            return f"https://s3.{self.region}.{domain}/{self.bucket}"
        return f"https://{self.bucket}.s3.{self.region}.{domain}"

    @property
    def is_encrypted_by_customer_key(self) -> bool:
        """Whether every request must carry the customer's key (SSE-C)."""
        return bool(self.sse_customer_key) and self.sse_name == "AES256"

    def customer_key_bytes(self) -> bytes:
        """The SSE-C key: base64 as in Confluent's connector, or 32 characters verbatim."""
        try:
            raw = base64.b64decode(self.sse_customer_key, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != SSE_CUSTOMER_KEY_BYTES:
            raw = self.sse_customer_key.encode()
        if len(raw) != SSE_CUSTOMER_KEY_BYTES:
            raise ConfigError(
                "s3.sse.customer.key is neither 32 bytes in base64 nor 32 characters.",
                code="s3.sse",
                config_path="s3.sse.customer.key",
                suggestion="Create one with `openssl rand -base64 32`.",
            )
        return raw

    def _check_address(self) -> None:
        if not self.bucket or "/" in self.bucket:
            message = f"s3.bucket.name is {self.bucket!r}, which is not a valid bucket name."
            raise ConfigError(message, code="s3.bucket", config_path="s3.bucket.name")
        if self.wan_mode and self.path_style:
            raise ConfigError(
                "s3.wan.mode needs the bucket in the host name, but s3.path.style.access.enabled is true.",
                code="s3.wan_mode",
                config_path="s3.wan.mode",
                suggestion="Set s3.path.style.access.enabled=false.",
            )
        if self.wan_mode and not self.endpoint:
            self._check_acceleration()
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = "store.url is not an http or https address."
            raise ConfigError(message, code="s3.endpoint", config_path="store.url")
        if parts.username or parts.password:
            raise ConfigError(
                "store.url contains a user or a password.",
                code="s3.endpoint",
                config_path="store.url",
                suggestion="Give credentials as aws.access.key.id and aws.secret.access.key.",
            )

    def _check_acceleration(self) -> None:
        """Check transfer acceleration. Source: botocore's rules for endpoints of S3."""
        why = ""
        if "." in self.bucket:
            why = f"buckets without dots in their names, and this one is called {self.bucket}"
        elif partition_of_region(self.region).name == "aws-cn":
            why = f"regions outside China, and s3.region is {self.region}"
        if why:
            raise ConfigError(
                f"s3.wan.mode works for {why}.",
                code="s3.wan_mode",
                config_path="s3.wan.mode",
                suggestion="Set s3.wan.mode=false.",
            )

    def _check_encryption(self) -> None:
        if self.sse_name and self.sse_name not in SSE_NAMES:
            message = f"s3.ssea.name is {self.sse_name!r}; S3 knows {', '.join(SSE_NAMES)}."
            raise ConfigError(message, code="s3.sse", config_path="s3.ssea.name")
        if self.is_encrypted_by_customer_key:
            self.customer_key_bytes()
