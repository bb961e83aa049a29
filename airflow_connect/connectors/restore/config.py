"""Typed configurations of the restore sources, and where each finds its backup."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from airflow_connect.api.config.config_def import Problem
from airflow_connect.api.config.typed import Checks
from airflow_connect.connectors.files.s3.config import S3StoreConfig, credentials_are_ours, region_exists
from airflow_connect.connectors.files.s3.keys import S3StoreKeys
from airflow_connect.connectors.restore.keys import (
    S3_KEYS,
    HdfsSourceKeys,
    LocalSourceKeys,
    RestoreKeys,
    S3SourceKeys,
)
from airflow_connect.errors import ConfigError, InternalError
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.stores.file_systems import FileSystems
from airflow_connect.stores.local.store import local_path
from airflow_connect.stores.s3.settings import S3Settings

TRANSFORMS = "transforms"
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_BYTES = "ByteArrayConverter"
_OF_SOURCE = {
    S3StoreKeys.path_style.name: S3SourceKeys.path_style.name,
    S3StoreKeys.proxy_user.name: S3SourceKeys.proxy_user.name,
}
"""Keys of the S3 sink whose names are others in the source."""


class RestoreConfig(RestoreKeys):
    """What all restore sources take from their configuration."""

    @property
    @abstractmethod
    def store(self) -> str:
        """Address of the bucket, file system or directory, without a slash at its end."""

    @abstractmethod
    def file_systems(self, aws: Mapping[str, str]) -> FileSystems:
        """Opens the store; `aws`: see `SourceConnectorContext`."""

    @property
    def root(self) -> str:
        """The directory of the backup: a name of its file system, without a slash at its end."""
        directory = "/".join(part for part in self.topics_dir.strip().split("/") if part)
        return f"{self.store}/{directory}" if directory else self.store

    @cached_property
    def selects(self) -> Callable[[str], bool]:
        """Whether a topic is restored."""
        if self.topics_regex:
            pattern = compile_java_pattern(self.topics_regex)
            return lambda topic: pattern.fullmatch(topic) is not None
        named = frozenset(self.topics)
        return lambda topic: not named or topic in named

    def target_of(self, topic: str) -> str:
        """The topic that records of a topic of the backup go to."""
        return self.rename.get(topic, topic)

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.topics, cls.topics_regex), _chosen_once
        yield (cls.from_offsets, cls.until_offsets, cls.from_ms, cls.until_ms), _begin_before_ends

    def refuse_changes(self) -> None:
        """Refuse what would change records on their way.

        Raises:
            ConfigError: a transformation, or a converter that does not keep bytes.
        """
        if self.raw.get(TRANSFORMS, "").strip():
            raise ConfigError(
                "A restored record is the one of the backup, so nothing can transform it.",
                code="restore.transforms",
                config_path=TRANSFORMS,
                suggestion=f"Remove {TRANSFORMS}. To give topics other names, use {RestoreKeys.rename}.",
            )
        for key in _CONVERTERS:
            name = self.raw.get(key, "").strip()
            if name and name.rpartition(".")[2] != _BYTES:
                raise ConfigError(
                    f"{key}={name} would change the bytes of the backup.",
                    code="restore.converter",
                    config_path=key,
                    suggestion=f"Remove {key}.",
                )


class S3RestoreConfig(S3SourceKeys, RestoreConfig):
    """A backup in a bucket."""

    @property
    def store(self) -> str:
        """See `RestoreConfig`."""
        return f"s3://{self.bucket}"

    def file_systems(self, aws: Mapping[str, str]) -> FileSystems:
        """See `RestoreConfig`."""
        return FileSystems(lambda _: self.settings(aws))

    def settings(self, aws: Mapping[str, str]) -> S3Settings:
        """How to reach the bucket.

        Raises:
            ConfigError: keys contradict each other.
        """
        given = {S3StoreKeys.region.name: aws.get("region"), S3StoreKeys.endpoint.name: aws.get("endpoint_url")}
        connection = {name: value for name, value in given.items() if value and name not in self.raw}
        return _s3_settings({**self.parsed, **connection}, aws)

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (S3StoreKeys.region, S3StoreKeys.endpoint), region_exists
        yield (S3StoreKeys.provider, S3StoreKeys.role_arn), credentials_are_ours
        reach = (cls.bucket, cls.path_style, cls.sink_path_style, cls.proxy_user, *S3_KEYS)
        yield reach, _settings_are_consistent


class HdfsRestoreConfig(HdfsSourceKeys, RestoreConfig):
    """A backup in HDFS."""

    @property
    def store(self) -> str:
        """See `RestoreConfig`."""
        return self.url.rstrip("/")

    def file_systems(self, aws: Mapping[str, str]) -> FileSystems:
        """See `RestoreConfig`."""
        return FileSystems(_no_bucket, self.conf_dir)


class LocalRestoreConfig(LocalSourceKeys, RestoreConfig):
    """A backup in a directory."""

    @property
    def store(self) -> str:
        """See `RestoreConfig`."""
        return local_path(self.url).rstrip("/")

    def file_systems(self, aws: Mapping[str, str]) -> FileSystems:
        """See `RestoreConfig`."""
        return FileSystems(_no_bucket)


def _no_bucket(name: str) -> S3Settings:
    raise InternalError(f"A backup in files was looked for in the bucket {name}.")


def _s3_settings(parsed: Mapping[str, Any], aws: Mapping[str, str]) -> S3Settings:
    """Settings of the S3 store, whose keys have other names in the sink."""
    of_sink = S3StoreConfig.config_def().parse({S3StoreKeys.bucket.name: S3SourceKeys.bucket.of(parsed)})
    of_sink |= {key.name: parsed[key.name] for key in S3_KEYS}
    is_path_style = S3SourceKeys.path_style.of(parsed) and S3SourceKeys.sink_path_style.of(parsed)
    if S3StoreKeys.sse_customer_key.of(parsed):
        of_sink[S3StoreKeys.sse_name.name] = "AES256"
    of_sink |= {S3StoreKeys.path_style.name: is_path_style, S3StoreKeys.proxy_user.name: parsed["s3.proxy.username"]}
    return S3StoreConfig({}, of_sink, aws).store


def _settings_are_consistent(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if list(credentials_are_ours(parsed)):
        return
    try:
        _s3_settings(parsed, {})
    except ConfigError as error:
        key = error.config_path or S3SourceKeys.bucket.name
        yield Problem(_OF_SOURCE.get(key, key), error.message, error.suggestion)


def _chosen_once(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if RestoreKeys.topics.of(parsed) and RestoreKeys.topics_regex.of(parsed):
        yield Problem(
            RestoreKeys.topics_regex.name,
            f"{RestoreKeys.topics} and {RestoreKeys.topics_regex} are both set, but only one can choose the topics",
            f"Remove {RestoreKeys.topics}, or {RestoreKeys.topics_regex}.",
        )


def _begin_before_ends(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """A range that cannot have a record is a mistake: it would restore nothing, and the run would be green."""
    advice = "The beginning is included, and the end is not."
    ends = RestoreKeys.until_offsets.of(parsed)
    for tp, begin in RestoreKeys.from_offsets.of(parsed).items():
        if tp in ends and ends[tp] <= begin:
            text = f"{tp} would begin at offset {begin} and end at {ends[tp]}"
            yield Problem(RestoreKeys.until_offsets.name, text, advice)
    begin_ms, end_ms = RestoreKeys.from_ms.of(parsed), RestoreKeys.until_ms.of(parsed)
    if begin_ms is not None and end_ms is not None and end_ms <= begin_ms:
        text = f"{RestoreKeys.until_ms} is not later than {RestoreKeys.from_ms}"
        yield Problem(RestoreKeys.until_ms.name, text, advice)
