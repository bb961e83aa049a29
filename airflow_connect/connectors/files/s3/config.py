"""Typed configuration of the S3 sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_connect.api.config.config_def import ConfigDef, Problem
from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.api.config.plugins import PluginKind, built_in, load_class, resolve
from airflow_connect.api.config.values import coerce_config, invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.files.s3 import keys
from airflow_connect.connectors.files.s3.credentials import CredentialsProvider, clear_text
from airflow_connect.connectors.files.shared.settings import keys as storage
from airflow_connect.connectors.files.shared.settings.config import (
    FormatConfig,
    LayoutConfig,
    NullConfig,
    RotationConfig,
    StorageConfig,
)
from airflow_connect.errors import ConfigError
from airflow_connect.stores.s3.partitions import known_regions
from airflow_connect.stores.s3.settings import S3Settings

_S3_STORAGE = "io.confluent.connect.s3.storage.S3Storage"
_RAW_BYTES = "airflow_connect.formats.raw_bytes:ByteArrayFormat"
_UNCOMPRESSED_ELSEWHERE = (
    "airflow_connect.formats.avro:AvroFormat",
    "airflow_connect.formats.parquet:ParquetFormat",
)
_STORE_KEYS = (
    keys.BUCKET, keys.REGION, keys.STORE_URL, keys.PATH_STYLE, keys.WAN_MODE, keys.PART_SIZE, keys.SSE_NAME,
    keys.SSE_CUSTOMER_KEY, keys.ACL, keys.CREDENTIALS_CLASS, keys.EXTRA_TAGS, keys.PROXY_URL, keys.PROXY_USER,
    keys.PROXY_PASSWORD, keys.PART_RETRIES, keys.RETRY_BACKOFF_MS, keys.SSE_KMS_KEY_ID, keys.TAGGING,
    keys.ON_TAGGING_ERROR, keys.SEND_DIGEST, keys.CONDITIONAL_WRITES, keys.FOREIGN_OBJECTS,
)  # fmt: skip


@cache
def config_def() -> ConfigDef:
    """Every key of an S3 sink: Connect's and ours, the shared ones of storage sinks, and its own."""
    definition = sink_keys.sink_keys().include(keys.s3_keys()).include(storage.storage_keys())
    define_content_rules(definition)
    definition.define_rule((storage.STORAGE_CLASS,), _storage_is_s3)
    definition.define_rule((keys.REGION, keys.STORE_URL), _region_exists)
    definition.define_rule((keys.CREDENTIALS_CLASS, keys.ROLE_ARN), _credentials_are_ours)
    return definition.define_rule(_STORE_KEYS, _store_settings_are_consistent)


def define_content_rules(definition: ConfigDef) -> ConfigDef:
    """Rules between keys about the contents of files, which do not depend on where the files are."""
    definition.define_rule((keys.COMPRESSION_TYPE, storage.FORMAT_CLASS), _compression_needs_a_plain_format)
    definition.define_rule((keys.NULL_BEHAVIOR, keys.STORE_KEYS), _writing_nulls_needs_keys)
    return definition.define_rule((keys.HEADERS_FORMAT, keys.STORE_HEADERS), _headers_are_no_raw_bytes)


@dataclass(frozen=True, slots=True)
class S3SinkConfig:
    """Everything the S3 sink takes from a connector configuration.

    Attributes:
        store: bucket, request settings, encryption, credentials.
        format: classes and options of value, key and header files.
        layout: names of directories and files.
        rotation: where files end.
        nulls: records whose value is null.
        raw: the whole configuration as text, for third-party partitioners and formats.
    """

    store: S3Settings
    format: FormatConfig
    layout: LayoutConfig
    rotation: RotationConfig
    nulls: NullConfig
    raw: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def storage(self) -> StorageConfig:
        """What does not depend on S3."""
        return StorageConfig(self.layout, self.rotation, self.format, self.nulls)

    @classmethod
    def from_config(cls, raw: Mapping[str, Any], aws: Mapping[str, str] | None = None) -> S3SinkConfig:
        """Check and type a connector configuration.

        Args:
            raw: the whole connector configuration, config providers resolved; JSON numbers and booleans are
                taken as their text.
            aws: credentials of an Airflow `aws` connection (see runtime.spec.RunSpec), used if `raw` has none; its
                region and endpoint are used if `s3.region` and `store.url` are not set.

        Raises:
            ConfigError: names every wrong key.
        """
        given = dict(raw)
        connection = aws or {}
        for key, name in ((keys.REGION, "region"), (keys.STORE_URL, "endpoint_url")):
            if key not in given and connection.get(name):
                given[key] = connection[name]
        parsed = config_def().parse(given)
        text = {name: value for name, value in coerce_config(raw).items() if value is not None}
        return cls(
            store=_store_settings(parsed, connection),
            format=formats_of(parsed, text),
            layout=LayoutConfig.from_parsed(parsed, tombstone_directory=parsed[keys.TOMBSTONE_DIRECTORY]),
            rotation=RotationConfig.from_parsed(parsed),
            nulls=NullConfig(parsed[keys.NULL_BEHAVIOR].lower(), parsed[keys.REPORT_NULLS]),
            raw=text,
        )


def _store_settings(parsed: Mapping[str, Any], aws: Mapping[str, str]) -> S3Settings:
    proxy_url, proxy_user, proxy_password = _proxy(parsed)
    return S3Settings(
        bucket=parsed[keys.BUCKET],
        region=parsed[keys.REGION].lower(),
        endpoint=parsed[keys.STORE_URL] or "",
        path_style=parsed[keys.PATH_STYLE],
        wan_mode=parsed[keys.WAN_MODE],
        part_size_bytes=parsed[keys.PART_SIZE],
        part_retries=parsed[keys.PART_RETRIES],
        retry_backoff_ms=parsed[keys.RETRY_BACKOFF_MS],
        sse_name=parsed[keys.SSE_NAME],
        sse_customer_key=clear_text(parsed[keys.SSE_CUSTOMER_KEY]),
        sse_kms_key_id=parsed[keys.SSE_KMS_KEY_ID],
        acl=parsed[keys.ACL] or "",
        object_tagging=parsed[keys.TAGGING],
        extra_tags=tuple(_tag(pair) for pair in parsed[keys.EXTRA_TAGS]),
        fail_on_tagging_error=parsed[keys.ON_TAGGING_ERROR].lower() == "fail",
        proxy_url=proxy_url,
        proxy_user=proxy_user,
        proxy_password=proxy_password,
        send_digest=parsed[keys.SEND_DIGEST],
        conditional_writes=parsed[keys.CONDITIONAL_WRITES],
        replace_foreign=parsed[keys.FOREIGN_OBJECTS].lower() == "replace",
        credentials=_provider(parsed).credentials(parsed, aws),
    )


def formats_of(parsed: Mapping[str, Any], raw: Mapping[str, str]) -> FormatConfig:
    """Formats of value, key and header files; `raw`: the configuration as text."""
    kind = PluginKind.FORMAT
    # Blanks are significant in a separator, but parsing has trimmed them.
    separator = raw.get(keys.BYTES_SEPARATOR, "\n")
    return FormatConfig(
        value=resolve(kind, parsed[storage.FORMAT_CLASS]),
        key=resolve(kind, parsed[keys.KEYS_FORMAT]) if parsed[keys.STORE_KEYS] else None,
        header=resolve(kind, parsed[keys.HEADERS_FORMAT]) if parsed[keys.STORE_HEADERS] else None,
        avro_codec=parsed[storage.AVRO_CODEC],
        parquet_codec="none" if parsed[storage.PARQUET_CODEC] == "uncompressed" else parsed[storage.PARQUET_CODEC],
        compression_type=parsed[keys.COMPRESSION_TYPE],
        compression_level=parsed[keys.COMPRESSION_LEVEL],
        json_decimal_format=parsed[keys.JSON_DECIMAL_FORMAT].upper(),
        bytes_extension=parsed[keys.BYTES_EXTENSION],
        bytes_separator=separator.encode(),
        enhanced_avro_schemas=parsed[storage.ENHANCED_AVRO_SCHEMA_SUPPORT],
        connect_meta_data=parsed[storage.CONNECT_META_DATA],
        allow_optional_map_keys=parsed[storage.ALLOW_OPTIONAL_MAP_KEYS],
    )


def _proxy(parsed: Mapping[str, Any]) -> tuple[str, str, str]:
    """The URL without credentials, the user, the password; `s3.proxy.user` and `.password` override the URL's."""
    url, user = parsed[keys.PROXY_URL], parsed[keys.PROXY_USER] or ""
    password = clear_text(parsed[keys.PROXY_PASSWORD])
    if not url:
        return "", user, password
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        address = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    except ValueError:
        address = None
    if not address:
        # The URL may contain a password, so it is not shown.
        raise ConfigError(
            "s3.proxy.url is not an address.",
            config_path=keys.PROXY_URL,
            suggestion="Write it as http://host:port.",
        )
    clean = urlunsplit((parts.scheme, address, "", "", ""))
    return clean, user or unquote(parts.username or ""), password or unquote(parts.password or "")


def _tag(pair: str) -> tuple[str, str]:
    name, _, value = pair.partition(":")
    return name, value


def _provider(parsed: Mapping[str, Any]) -> CredentialsProvider:
    provider: CredentialsProvider = load_class(PluginKind.CREDENTIALS_PROVIDER, parsed[keys.CREDENTIALS_CLASS])()
    return provider


def _compression_needs_a_plain_format(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    path = resolve(PluginKind.FORMAT, parsed[storage.FORMAT_CLASS]).path
    if parsed[keys.COMPRESSION_TYPE] != "none" and path in _UNCOMPRESSED_ELSEWHERE:
        yield Problem(
            keys.COMPRESSION_TYPE,
            f"{keys.COMPRESSION_TYPE}={parsed[keys.COMPRESSION_TYPE]} applies to JsonFormat and ByteArrayFormat only",
            f"Remove it; Avro files are compressed by {storage.AVRO_CODEC}, Parquet files by {storage.PARQUET_CODEC}.",
        )


def _writing_nulls_needs_keys(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[keys.NULL_BEHAVIOR].lower() == "write" and not parsed[keys.STORE_KEYS]:
        yield Problem(
            keys.NULL_BEHAVIOR,
            f"{keys.NULL_BEHAVIOR}=write writes the keys of records whose value is null, but {keys.STORE_KEYS} is"
            f" false",
            f"Set {keys.STORE_KEYS}=true, or {keys.NULL_BEHAVIOR} to ignore or fail.",
        )


def _headers_are_no_raw_bytes(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[keys.STORE_HEADERS] and resolve(PluginKind.FORMAT, parsed[keys.HEADERS_FORMAT]).path == _RAW_BYTES:
        yield Problem(
            keys.HEADERS_FORMAT,
            f"{keys.HEADERS_FORMAT} is ByteArrayFormat, which cannot hold the names and values of headers",
            "Use JsonFormat, AvroFormat or ParquetFormat for headers.",
        )


def _storage_is_s3(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    name = parsed[storage.STORAGE_CLASS]
    if resolve(PluginKind.STORAGE, name).path != built_in(PluginKind.STORAGE)[_S3_STORAGE]:
        yield Problem(
            storage.STORAGE_CLASS,
            f"{storage.STORAGE_CLASS}={name} is not a store of the S3 sink",
            f"Set {storage.STORAGE_CLASS} to {_S3_STORAGE}.",
        )


def _region_exists(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Without `store.url` the region is part of Amazon's host name, so it must exist."""
    region, known = parsed[keys.REGION].lower(), known_regions()
    if parsed[keys.STORE_URL] or not known or region in known:
        return
    hint = did_you_mean(nearest(region, known))
    yield Problem(
        keys.REGION,
        str(invalid(keys.REGION, parsed[keys.REGION], f"Value must be one of: {', '.join(known)}")),
        f"{hint} A newer region needs a newer botocore; your own store needs store.url.".strip(),
    )


def _credentials_are_ours(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    name = parsed[keys.CREDENTIALS_CLASS]
    if resolve(PluginKind.CREDENTIALS_PROVIDER, name).path not in built_in(PluginKind.CREDENTIALS_PROVIDER).values():
        yield Problem(
            keys.CREDENTIALS_CLASS,
            f"{keys.CREDENTIALS_CLASS}={name} cannot be used: credentials come through boto3 here",
            "Use DefaultCredentialsProvider or AwsAssumeRoleCredentialsProvider.",
        )
    elif _provider(parsed).needs_role and not parsed[keys.ROLE_ARN]:
        yield Problem(
            keys.ROLE_ARN,
            f'Missing required configuration "{keys.ROLE_ARN}" which has no default value.',
            "Set it to the ARN of the role that AwsAssumeRoleCredentialsProvider is to assume.",
        )


def _store_settings_are_consistent(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if list(_credentials_are_ours(parsed)):
        return
    try:
        _store_settings(parsed, {})
    except ConfigError as error:
        yield Problem(error.config_path or keys.BUCKET, error.message, error.suggestion)
