"""Typed configuration of the S3 sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_connect.api.config.config_def import ConfigDef, KeyFamily, Problem
from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.api.config.plugins import PluginKind, built_in, load
from airflow_connect.api.config.typed import Checks
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.files.s3.credentials import CredentialsProvider
from airflow_connect.connectors.files.s3.keys import S3KeysWithoutEffect, S3StoreKeys
from airflow_connect.connectors.files.shared.settings.config import StorageConfig
from airflow_connect.connectors.files.shared.settings.content import ContentConfig
from airflow_connect.errors import ConfigError
from airflow_connect.stores.s3.partitions import known_regions
from airflow_connect.stores.s3.settings import S3Settings

_S3_STORAGE = "io.confluent.connect.s3.storage.S3Storage"


class S3StoreConfig(S3StoreKeys):
    """What the store takes from the configuration.

    Attributes:
        store: bucket, request settings, encryption, credentials.
    """

    def __init__(self, raw: Mapping[str, Any], parsed: Mapping[str, Any], aws: Mapping[str, str] | None = None) -> None:
        """`aws`: see `S3SinkConfig.from_config`.

        Raises:
            ConfigError: keys contradict each other.
        """
        super().__init__(raw, parsed)
        self.store = self._settings(aws or {})

    def _settings(self, aws: Mapping[str, str]) -> S3Settings:
        provider: CredentialsProvider = load(self.provider)()
        proxy_url, proxy_user, proxy_password = self._proxy()
        return S3Settings(
            bucket=self.bucket,
            region=self.region,
            endpoint=self.endpoint,
            path_style=self.path_style,
            wan_mode=self.wan_mode,
            part_size_bytes=self.part_size_bytes,
            part_retries=self.part_retries,
            retry_backoff_ms=self.s3_retry_backoff_ms,
            sse_name=self.sse_name,
            sse_customer_key=self.sse_customer_key,
            sse_kms_key_id=self.sse_kms_key_id,
            acl=self.acl,
            object_tagging=self.object_tagging,
            extra_tags=self.extra_tags,
            fail_on_tagging_error=self.fail_on_tagging_error,
            proxy_url=proxy_url,
            proxy_user=proxy_user,
            proxy_password=proxy_password,
            send_digest=self.send_digest,
            conditional_writes=self.conditional_writes,
            replace_foreign=self.replace_foreign,
            credentials=provider.credentials(self.parsed, aws),
        )

    def _proxy(self) -> tuple[str, str, str]:
        """The URL without credentials, the user, the password; `s3.proxy.user` and `.password` override the URL's."""
        url, user, password = self.proxy_url, self.proxy_user, self.proxy_password
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
                config_path=S3StoreKeys.proxy_url.name,
                suggestion="Write it as http://host:port.",
            )
        clean = urlunsplit((parts.scheme, address, "", "", ""))
        return clean, user or unquote(parts.username or ""), password or unquote(parts.password or "")


class S3SinkConfig(S3StoreConfig, ContentConfig, S3KeysWithoutEffect, StorageConfig):
    """Everything the S3 sink takes from a connector configuration."""

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
        connection = aws or {}
        given = {cls.region.name: connection.get("region"), cls.endpoint.name: connection.get("endpoint_url")}
        whole = {**{name: value for name, value in given.items() if value}, **raw}
        return cls(whole, cls.config_def().parse(whole), connection)

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys of every sink, then those of the S3 sink."""
        definition.include(sink_keys.sink_keys())
        super().define(definition)
        reason = "The S3 sink does not register tables; neither does Confluent's."
        definition.define_family(KeyFamily("hive.", "Hive integration of other sinks.", reason))

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.storage_class,), _storage_is_s3
        yield (cls.region, cls.endpoint), region_exists
        yield (cls.provider, cls.role_arn), credentials_are_ours
        yield S3StoreKeys.declared(), _store_settings_are_consistent


Keys = S3StoreKeys


def _storage_is_s3(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    key = StorageConfig.storage_class
    if key.of(parsed).path != built_in(PluginKind.STORAGE)[_S3_STORAGE]:
        yield Problem(
            key.name, f"{key}={parsed[key.name]} is not a store of the S3 sink", f"Set {key} to {_S3_STORAGE}."
        )


def region_exists(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Without `store.url` the region is part of Amazon's host name, so it must exist."""
    region, known = Keys.region.of(parsed), known_regions()
    if Keys.endpoint.of(parsed) or not known or region in known:
        return
    hint = did_you_mean(nearest(region, known))
    yield Problem(
        Keys.region.name,
        str(invalid(Keys.region.name, parsed[Keys.region.name], f"Value must be one of: {', '.join(known)}")),
        f"{hint} A newer region needs a newer botocore; your own store needs store.url.".strip(),
    )


def credentials_are_ours(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Credentials come from boto3, so Java's classes for them cannot be used."""
    provider = Keys.provider.of(parsed)
    if provider.path not in built_in(PluginKind.CREDENTIALS_PROVIDER).values():
        yield Problem(
            Keys.provider.name,
            f"{Keys.provider}={parsed[Keys.provider.name]} cannot be used: credentials come through boto3 here",
            "Use DefaultCredentialsProvider or AwsAssumeRoleCredentialsProvider.",
        )
    elif load(provider).needs_role and not Keys.role_arn.of(parsed):
        yield Problem(
            Keys.role_arn.name,
            f'Missing required configuration "{Keys.role_arn}" which has no default value.',
            "Set it to the ARN of the role that AwsAssumeRoleCredentialsProvider is to assume.",
        )


def _store_settings_are_consistent(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if list(credentials_are_ours(parsed)):
        return
    try:
        S3StoreConfig({}, parsed)
    except ConfigError as error:
        yield Problem(error.config_path or Keys.bucket.name, error.message, error.suggestion)
