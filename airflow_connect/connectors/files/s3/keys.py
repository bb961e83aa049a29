"""Definitions of the S3 sink's own keys, with Confluent's names, types, defaults, validation and messages.

Source: Confluent's kafka-connect-storage-cloud (S3SinkConnectorConfig). Documentation texts are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import EnumString, Lambda, NonEmptyString, OneOf, Range, ValidString
from airflow_connect.api.config.values import InvalidValueError, invalid
from airflow_connect.stores.s3.settings import CANNED_ACLS, MIN_PART_BYTES, SSE_NAMES

DEFAULT_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_BUFFERS = "Part buffers grow with their data, and spill to disk beyond a memory budget."
_MAX_INT, _MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
_MAX_TAGS = 10
_S3 = KeyGroup("S3")


def _check_part_size(name: str, value: Any) -> None:
    if value is None:
        raise invalid(name, None, "Part size must be non-null")
    if value < MIN_PART_BYTES:
        raise invalid(name, value, f"Part size must be at least: {MIN_PART_BYTES} bytes (5MB)")


def _check_tags(name: str, value: Any) -> None:
    """Limits of S3: 10 tags, 3 of them ours; names up to 128 and values up to 256 characters."""
    tags = value or []
    if len(tags) > _MAX_TAGS - 3:
        raise InvalidValueError(f"Configuration '{name}' has {len(tags)} tags, but S3 allows only {_MAX_TAGS - 3}.")
    for tag in tags:
        tag_name, colon, tag_value = tag.partition(":")
        if not colon or not tag_name or len(tag_name) > 128 or len(tag_value) > 256:
            raise invalid(
                name, value, "Tags are written as name:value; the name has up to 128 characters, the value up to 256"
            )


def _refuse_base_role(name: str, value: Any) -> None:
    if value:
        raise invalid(name, value, "Assuming one role with another is not supported; assume the base role outside.")


def _tags(pairs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, _, value in (pair.partition(":") for pair in pairs))


class S3StoreKeys(TypedConfig):
    """Keys about the bucket, requests, encryption and credentials."""

    bucket = _S3.high.text("s3.bucket.name", REQUIRED, "Bucket to write to.", NonEmptyString())
    region = _S3.medium.text(
        "s3.region",
        "us-west-2",
        "AWS region of the bucket. With store.url any name is accepted: requests are signed for it.",
        NonEmptyString(),
    ).to(str.lower)
    endpoint = _S3.medium.text(
        "store.url",
        None,
        "Address of an S3-compatible store, instead of Amazon's; https:// is added if the scheme is missing.",
    ).or_blank()
    path_style = _S3.medium.boolean(
        "s3.path.style.access.enabled",
        True,
        "Whether the bucket is the first part of the path (true) or of the host name (false).",
    )
    wan_mode = _S3.medium.boolean(
        "s3.wan.mode", False, "Whether to use S3 transfer acceleration; needs s3.path.style.access.enabled=false."
    )
    part_size_bytes = _S3.high.integer(
        "s3.part.size",
        26214400,
        "Size of the parts of an upload in bytes. One object has at most 10,000 parts.",
        Lambda(_check_part_size, f"[{MIN_PART_BYTES},...,{_MAX_INT}]"),
    )
    part_retries = _S3.medium.integer(
        "s3.part.retries", 3, "How often a failed request is retried. 0: never.", Range(0)
    )
    s3_retry_backoff_ms = _S3.low.long(
        "s3.retry.backoff.ms",
        200,
        "Pause in milliseconds before the first retry of a request; each further pause may be twice as long.",
        Range(0),
    )
    send_digest = _S3.low.boolean(
        "s3.send.digest",
        False,
        "Whether every part is also sent with its MD5 digest, which buckets with Object Lock require. The SHA-256"
        " digest of a part is always sent, and the store verifies it.",
    )
    conditional_writes = _S3.medium.boolean(
        "enable.conditional.writes",
        True,
        "Whether an object is published only if none exists under its key. If another object has the key, the run"
        " fails, unless behavior.on.foreign.objects says otherwise; with false, any object is overwritten.",
    )
    replace_foreign = _S3.low.text(
        "behavior.on.foreign.objects",
        "fail",
        "What happens to an object under one of our keys that another program wrote, for example a Kafka Connect"
        " worker that was killed after an upload and before it committed the offsets: `fail` fails the run,"
        " `replace` overwrites it. Objects that this sink wrote are never replaced. Set it for the run that takes"
        " over, and remove it afterwards.",
        EnumString("fail", "replace"),
    ).to(lambda chosen: chosen.lower() == "replace")
    sse_name = _S3.low.text(
        "s3.ssea.name",
        "",
        "Server-side encryption of objects; blank: as the bucket is configured.",
        ValidString("", *SSE_NAMES),
    )
    sse_customer_key = _S3.low.secret(
        "s3.sse.customer.key",
        None,
        "Your own key for server-side encryption, 32 bytes in base64; used with s3.ssea.name=AES256.",
    )
    sse_kms_key_id = _S3.low.text(
        "s3.sse.kms.key.id", "", "Key in AWS KMS for server-side encryption; used with aws:kms."
    )
    acl = _S3.low.text(
        "s3.acl.canned", None, "Canned access control list that every object gets.", OneOf(*CANNED_ACLS, nullable=True)
    ).or_blank()
    provider = _S3.low.plugin(
        "s3.credentials.provider.class",
        DEFAULT_CREDENTIALS,
        "Where credentials come from if no keys are set here: `DefaultCredentialsProvider` uses the Airflow"
        " connection, the environment, profiles, or the machine's role; `AwsAssumeRoleCredentialsProvider` uses"
        " those credentials to assume a role.",
        PluginKind.CREDENTIALS_PROVIDER,
    )
    role_arn = _S3.low.text(
        "s3.credentials.provider.sts.role.arn",
        "",
        "Of the role that AwsAssumeRoleCredentialsProvider assumes: its ARN.",
    )
    role_session_name = _S3.low.text(
        "s3.credentials.provider.sts.role.session.name",
        "",
        "Of the role that AwsAssumeRoleCredentialsProvider assumes: name of the session.",
    )
    role_external_id = _S3.low.text(
        "s3.credentials.provider.sts.role.external.id",
        "",
        "Of the role that AwsAssumeRoleCredentialsProvider assumes: external id, if its policy requires one.",
    )
    access_key_id = _S3.low.text("aws.access.key.id", "", "AWS access key id.")
    secret_access_key = _S3.low.secret("aws.secret.access.key", None, "AWS secret access key.")
    object_tagging = _S3.low.boolean(
        "s3.object.tagging", False, "Whether objects get the tags startOffset, endOffset and recordCount."
    )
    extra_tags = _S3.low.words(
        "s3.object.tagging.key.value.pairs",
        "",
        "More tags for every object, name:value, comma separated; needs s3.object.tagging.",
        Lambda(_check_tags, "name:value pairs"),
    ).to(_tags)
    fail_on_tagging_error = _S3.low.text(
        "s3.object.behavior.on.tagging.error",
        "ignore",
        "Whether a run continues (`ignore`) if objects cannot be tagged.",
        EnumString("ignore", "fail"),
    ).to(lambda chosen: chosen.lower() == "fail")
    proxy_url = _S3.low.text("s3.proxy.url", "", "Proxy for requests to S3; blank follows HTTPS_PROXY and NO_PROXY.")
    proxy_user = _S3.low.text("s3.proxy.user", None, "User name at the proxy.").or_blank()
    proxy_password = _S3.low.secret("s3.proxy.password", None, "Password at the proxy.")


class S3KeysWithoutEffect(TypedConfig):
    """Keys of Confluent's group S3 that have no effect here, or must not be set."""

    _base_role_arn = _S3.low.text(
        "s3.credentials.provider.sts.base.role.arn",
        "",
        "A role to assume first. Not supported: it must not be set.",
        Lambda(_refuse_base_role, "blank"),
    )
    _expect_continue = _S3.low.boolean(
        "s3.http.send.expect.continue",
        True,
        "Whether uploads wait for `100 Continue`.",
        ignored="Parts are sent immediately: they can be sent again from memory or disk.",
    )
    _max_files_scan = _S3.low.integer(
        "max.files.scan.limit",
        100,
        "How many names are tried if an object already exists.",
        Range(0),
        ignored="An object that already exists fails the run: skipping its offsets could lose records.",
    )
    _elastic_buffer = _S3.low.boolean(
        "s3.elastic.buffer.enable", False, "Whether buffers of parts start small.", ignored=_BUFFERS
    )
    _elastic_buffer_capacity = _S3.low.integer(
        "s3.elastic.buffer.init.capacity",
        131072,
        "Initial size of such buffers, in bytes.",
        Range(4096),
        ignored=_BUFFERS,
    )
    _max_write_duration_ms = _S3.low.long(
        "max.write.duration.ms",
        _MAX_LONG,
        "Maximum time for one call of a running task, in milliseconds.",
        Range(0),
        ignored="A run does not join a consumer group, so there is no such limit.",
    )
