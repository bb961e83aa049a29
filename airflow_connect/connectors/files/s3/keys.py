"""Definitions of the S3 sink's own keys, with Confluent's names, types, defaults, validation and messages.

Source: Confluent's kafka-connect-storage-cloud (S3SinkConnectorConfig). Documentation texts are ours.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, KeyFamily, Type
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.config.validators import (
    CaseInsensitiveValidString,
    EnumString,
    Lambda,
    NonEmptyString,
    OneOf,
    Range,
    ValidString,
)
from airflow_connect.api.config.values import InvalidValueError, invalid
from airflow_connect.stores.s3.settings import CANNED_ACLS, MIN_PART_BYTES, SSE_NAMES

BUCKET = "s3.bucket.name"
REGION = "s3.region"
PART_SIZE = "s3.part.size"
PART_RETRIES = "s3.part.retries"
RETRY_BACKOFF_MS = "s3.retry.backoff.ms"
COMPRESSION_TYPE = "s3.compression.type"
COMPRESSION_LEVEL = "s3.compression.level"
SSE_NAME = "s3.ssea.name"
SSE_CUSTOMER_KEY = "s3.sse.customer.key"
SSE_KMS_KEY_ID = "s3.sse.kms.key.id"
ACL = "s3.acl.canned"
WAN_MODE = "s3.wan.mode"
PATH_STYLE = "s3.path.style.access.enabled"
STORE_URL = "store.url"
CREDENTIALS_CLASS = "s3.credentials.provider.class"
ROLE_ARN = "s3.credentials.provider.sts.role.arn"
ROLE_SESSION_NAME = "s3.credentials.provider.sts.role.session.name"
ROLE_EXTERNAL_ID = "s3.credentials.provider.sts.role.external.id"
BASE_ROLE_ARN = "s3.credentials.provider.sts.base.role.arn"
ACCESS_KEY_ID = "aws.access.key.id"
SECRET_ACCESS_KEY = "aws.secret.access.key"
TAGGING = "s3.object.tagging"
EXTRA_TAGS = "s3.object.tagging.key.value.pairs"
ON_TAGGING_ERROR = "s3.object.behavior.on.tagging.error"
PROXY_URL, PROXY_USER, PROXY_PASSWORD = "s3.proxy.url", "s3.proxy.user", "s3.proxy.password"
EXPECT_CONTINUE = "s3.http.send.expect.continue"
SEND_DIGEST = "s3.send.digest"
CONDITIONAL_WRITES = "enable.conditional.writes"
FOREIGN_OBJECTS = "behavior.on.foreign.objects"
MAX_FILES_SCAN = "max.files.scan.limit"
ELASTIC_BUFFER, ELASTIC_BUFFER_CAPACITY = "s3.elastic.buffer.enable", "s3.elastic.buffer.init.capacity"
MAX_WRITE_DURATION_MS = "max.write.duration.ms"
NULL_BEHAVIOR = "behavior.on.null.values"
REPORT_NULLS = "report.null.values.to.dlq"
TOMBSTONE_DIRECTORY = "tombstone.encoded.partition"
JSON_DECIMAL_FORMAT = "json.decimal.format"
BYTES_EXTENSION, BYTES_SEPARATOR = "format.bytearray.extension", "format.bytearray.separator"
STORE_KEYS, STORE_HEADERS = "store.kafka.keys", "store.kafka.headers"
KEYS_FORMAT, HEADERS_FORMAT = "keys.format.class", "headers.format.class"

DEFAULT_REGION = "us-west-2"
AVRO_FORMAT = "io.confluent.connect.s3.format.avro.AvroFormat"
DEFAULT_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
_MAX_INT, _MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
_MAX_TAGS = 10
_S3, _FILES = "S3", "Keys and headers"


def s3_keys() -> ConfigDef:
    """Every key of Confluent's group S3, and those that store keys and headers."""
    return (
        ConfigDef()
        .define(*_bucket_keys(), *_upload_keys(), *_encryption_keys(), *_credentials_keys(), *_tagging_keys())
        .define(*_proxy_keys(), *_content_keys(), *_null_keys(), *_side_file_keys(), *_unused_keys())
        .define_family(
            KeyFamily(
                "hive.",
                "Hive integration of other sinks.",
                "The S3 sink does not register tables; neither does Confluent's.",
            )
        )
    )


def _bucket_keys() -> list[ConfigKey]:
    high, medium = Importance.HIGH, Importance.MEDIUM
    return [
        ConfigKey(BUCKET, Type.STRING, REQUIRED, "Bucket to write to.", NonEmptyString(), high, _S3),
        ConfigKey(
            REGION, Type.STRING, DEFAULT_REGION,
            "AWS region of the bucket. With store.url any name is accepted; requests are signed"
            " for.",
            NonEmptyString(), medium, _S3,
        ),
        ConfigKey(
            STORE_URL, Type.STRING, None,
            "Address of an S3-compatible store, instead of Amazon's; https:// is added if the scheme is"
            " missing.",
            None, medium, _S3,
        ),
        ConfigKey(
            PATH_STYLE, Type.BOOLEAN, True,
            "Whether the bucket is the first part of the path (true) or of the host name (false).", None,
            medium, _S3,
        ),
        ConfigKey(
            WAN_MODE, Type.BOOLEAN, False,
            "Whether to use S3 transfer acceleration; needs s3.path.style.access.enabled=false.", None,
            medium, _S3,
        ),
    ]  # fmt: skip


def _upload_keys() -> list[ConfigKey]:
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            PART_SIZE, Type.INT, 26214400,
            "Size of the parts of an upload in bytes. One object has at most 10,000 parts.",
            Lambda(_check_part_size, f"[{MIN_PART_BYTES},...,{_MAX_INT}]"), high, _S3,
        ),
        ConfigKey(
            PART_RETRIES, Type.INT, 3, "How often a failed request is retried. 0: never.", Range(0),
            medium, _S3,
        ),
        ConfigKey(
            RETRY_BACKOFF_MS, Type.LONG, 200,
            "Pause in milliseconds before the first retry of a request; each further pause may be twice as"
            " long.",
            Range(0), low, _S3,
        ),
        ConfigKey(
            SEND_DIGEST, Type.BOOLEAN, False,
            "Whether every part is also sent with its MD5 digest, which buckets with Object Lock require. The SHA-256"
            " digest of a part is always sent, and the store verifies it.",
            None, low, _S3,
        ),
        ConfigKey(
            CONDITIONAL_WRITES, Type.BOOLEAN, True,
            "Whether an object is published only if none exists under its key. If another object has the key, the run"
            " fails, unless behavior.on.foreign.objects says otherwise; with false, any object is overwritten.",
            None, medium, _S3,
        ),
        ConfigKey(
            FOREIGN_OBJECTS, Type.STRING, "fail",
            "What happens to an object under one of our keys that another program wrote, for example a Kafka Connect"
            " worker that was killed after an upload and before it committed the offsets: `fail` fails the run,"
            " `replace` overwrites it. Objects that this sink wrote are never replaced. Set it for the run that takes"
            " over, and remove it afterwards.",
            EnumString("fail", "replace"), low, _S3,
        ),
    ]  # fmt: skip


def _encryption_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            SSE_NAME, Type.STRING, "", "Server-side encryption of objects; blank: as the bucket is configured.",
            ValidString("", *SSE_NAMES), low, _S3,
        ),
        ConfigKey(
            SSE_CUSTOMER_KEY, Type.PASSWORD, None,
            "Your own key for server-side encryption, 32 bytes in base64; used with s3.ssea.name=AES256.",
            None, low, _S3,
        ),
        ConfigKey(
            SSE_KMS_KEY_ID, Type.STRING, "", "Key in AWS KMS for server-side encryption; used with aws:kms.",
            None, low, _S3,
        ),
        ConfigKey(
            ACL, Type.STRING, None, "Canned access control list that every object gets.",
            OneOf(*CANNED_ACLS, nullable=True), low, _S3,
        ),
    ]  # fmt: skip


def _credentials_keys() -> list[ConfigKey]:
    low = Importance.LOW
    role = "Of the role that AwsAssumeRoleCredentialsProvider assumes: "
    return [
        ConfigKey(
            CREDENTIALS_CLASS, Type.CLASS, DEFAULT_CREDENTIALS,
            "Where credentials come from if no keys are set here: `DefaultCredentialsProvider` uses the Airflow"
            " connection, the environment, profiles, or the machine's role; `AwsAssumeRoleCredentialsProvider` uses"
            " those credentials to assume a role.",
            None, low, _S3, PluginKind.CREDENTIALS_PROVIDER,
        ),
        ConfigKey(ROLE_ARN, Type.STRING, "", f"{role}its ARN.", None, low, _S3),
        ConfigKey(ROLE_SESSION_NAME, Type.STRING, "", f"{role}name of the session.", None, low, _S3),
        ConfigKey(
            ROLE_EXTERNAL_ID, Type.STRING, "", f"{role}external id, if its policy requires one.", None, low,
            _S3,
        ),
        ConfigKey(
            BASE_ROLE_ARN, Type.STRING, "", "A role to assume first. Not supported: it must not be set.",
            Lambda(_refuse_base_role, "blank"), low, _S3,
        ),
        ConfigKey(ACCESS_KEY_ID, Type.STRING, "", "AWS access key id.", None, low, _S3),
        ConfigKey(SECRET_ACCESS_KEY, Type.PASSWORD, None, "AWS secret access key.", None, low, _S3),
    ]  # fmt: skip


def _tagging_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            TAGGING, Type.BOOLEAN, False,
            "Whether objects get the tags startOffset, endOffset and recordCount.",
            None, low, _S3,
        ),
        ConfigKey(
            EXTRA_TAGS, Type.LIST, "",
            "More tags for every object, name:value, comma separated; needs s3.object.tagging.",
            Lambda(_check_tags, "name:value pairs"), low, _S3,
        ),
        ConfigKey(
            ON_TAGGING_ERROR, Type.STRING, "ignore",
            "Whether a run continues (`ignore`) if objects cannot be tagged.",
            EnumString("ignore", "fail"), low, _S3,
        ),
    ]  # fmt: skip


def _proxy_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            PROXY_URL, Type.STRING, "", "Proxy for requests to S3; blank follows HTTPS_PROXY and NO_PROXY.",
            None, low, _S3,
        ),
        ConfigKey(PROXY_USER, Type.STRING, None, "User name at the proxy.", None, low, _S3),
        ConfigKey(PROXY_PASSWORD, Type.PASSWORD, None, "Password at the proxy.", None, low, _S3),
    ]  # fmt: skip


def _content_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            COMPRESSION_TYPE, Type.STRING, "none",
            "Compression of whole files, for JsonFormat and ByteArrayFormat.",
            OneOf("none", "gzip"), low, _S3,
        ),
        ConfigKey(
            COMPRESSION_LEVEL, Type.INT, -1, "Level of that compression: 0 to 9, or -1 for its default.",
            Range(-1, 9), low, _S3,
        ),
        ConfigKey(
            JSON_DECIMAL_FORMAT, Type.STRING, "BASE64",
            "How JsonFormat writes Decimal values: `BASE64` or `NUMERIC`.",
            CaseInsensitiveValidString("BASE64", "NUMERIC"), low, _S3,
        ),
        ConfigKey(
            BYTES_EXTENSION, Type.STRING, ".bin", "Extension of the files of ByteArrayFormat, with dot.",
            None, low, _S3,
        ),
        ConfigKey(
            BYTES_SEPARATOR, Type.STRING, None,
            "Text after every record in files of ByteArrayFormat, blanks included; a newline if it is not"
            " set.",
            None, low, _S3,
        ),
    ]  # fmt: skip


def _null_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            NULL_BEHAVIOR, Type.STRING, "fail",
            "Records whose value is null: `fail` fails the run, `ignore` skips them, `write` writes their keys and"
            " headers below tombstone.encoded.partition.",
            EnumString("ignore", "fail", "write"), low, _S3,
        ),
        ConfigKey(
            REPORT_NULLS, Type.BOOLEAN, True,
            "Whether records skipped by `ignore` go to the dead letter queue.",
            None, low, _S3,
        ),
        ConfigKey(
            TOMBSTONE_DIRECTORY, Type.STRING, "tombstone",
            "Directory of records with null values for `write`.",
            NonEmptyString(), low, _S3,
        ),
    ]  # fmt: skip


def _side_file_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            STORE_KEYS, Type.BOOLEAN, False, "Whether keys are written, to separate files.", None, low,
            _FILES,
        ),
        ConfigKey(
            STORE_HEADERS, Type.BOOLEAN, False, "Whether headers are written, to separate files.", None,
            low, _FILES,
        ),
        ConfigKey(
            KEYS_FORMAT, Type.CLASS, AVRO_FORMAT, "Format of key files.", None, low, _FILES,
            PluginKind.FORMAT,
        ),
        ConfigKey(
            HEADERS_FORMAT, Type.CLASS, AVRO_FORMAT,
            "Format of header files; ByteArrayFormat cannot hold headers.",
            None, low, _FILES, PluginKind.FORMAT,
        ),
    ]  # fmt: skip


def _unused_keys() -> list[ConfigKey]:
    low, flag, number = Importance.LOW, Type.BOOLEAN, Type.INT
    buffers = "Part buffers grow with their data, and spill to disk beyond a memory budget."
    return [
        ConfigKey(
            EXPECT_CONTINUE, flag, True, "Whether uploads wait for `100 Continue`.", None, low, _S3,
            ignored="Parts are sent immediately: they can be sent again from memory or disk.",
        ),
        ConfigKey(
            MAX_FILES_SCAN, number, 100, "How many names are tried if an object already exists.",
            Range(0), low, _S3,
            ignored="An object that already exists fails the run: skipping its offsets could lose records.",
        ),
        ConfigKey(
            ELASTIC_BUFFER, flag, False, "Whether buffers of parts start small.", None, low, _S3,
            ignored=buffers,
        ),
        ConfigKey(
            ELASTIC_BUFFER_CAPACITY, number, 131072, "Initial size of such buffers, in bytes.", Range(4096),
            low, _S3,
            ignored=buffers,
        ),
        ConfigKey(
            MAX_WRITE_DURATION_MS, Type.LONG, _MAX_LONG,
            "Maximum time for one call of a running task, in milliseconds.",
            Range(0), low, _S3, ignored="A run does not join a consumer group, so there is no such limit.",
        ),
    ]  # fmt: skip


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
