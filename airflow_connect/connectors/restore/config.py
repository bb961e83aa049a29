"""Typed configurations of the restore sources, and where each finds its backup."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.config_def import ConfigValue, Problem
from airflow_connect.api.config.typed import Checks
from airflow_connect.connectors.files.s3.config import S3StoreConfig, credentials_are_ours, region_exists
from airflow_connect.connectors.files.s3.keys import S3StoreKeys
from airflow_connect.connectors.restore.keys import (
    GENERIC,
    ORDER,
    S3_KEYS,
    TRANSFORMS,
    WHOLE_FORMATS,
    HdfsSourceKeys,
    LocalSourceKeys,
    RestoreKeys,
    S3SourceKeys,
    format_name,
)
from airflow_connect.connectors.restore.options import (
    AIVEN,
    BYTES,
    CSV,
    GZIP,
    JSON,
    LENSES,
    NO_ENVELOPE,
    PARQUET,
    TEXT,
    ZSTD,
    ReadOptions,
)
from airflow_connect.connectors.restore.value_keys import FAIL
from airflow_connect.errors import ConfigError, InternalError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.stores.file_systems import FileSystems
from airflow_connect.stores.local.store import local_path
from airflow_connect.stores.s3.settings import S3Settings

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.values.envelopes import Envelope

_OF_RESTORES = (
    RestoreKeys.topics, RestoreKeys.topics_regex, RestoreKeys.rename, RestoreKeys.until_ms, RestoreKeys.from_ms,
    RestoreKeys.until_offsets, RestoreKeys.from_offsets, RestoreKeys.file_pattern,
)  # fmt: skip
"""Keys that mode=GENERIC does not have."""
NAMES_OF_ENVELOPES = {
    LENSES: (
        r"(?:.*/)?(?<topic>[^/]+)/(?<partition>\d+)/(?<offset>\d+)(?:_-?\d+_-?\d+)?\.[^/]+",
        r"(?:.*/)?(?<topic>[^/(]+)\((?<partition>\d+)_(?<offset>\d+)\)\.[^/]+",
    ),
    AIVEN: (r"(?:.*/)?(?<topic>[^/]+)-(?<partition>\d+)-(?<offset>\d+)(?:\.[^/]+)?",),
}
"""How the sinks name files, unless their configuration says otherwise."""
CONVERTERS = ("key.converter", "value.converter", "header.converter")
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

    def key_of(self, name: str) -> str:
        """The key of an object, or the path below `store.url`, by the name of the file."""
        return name.removeprefix(f"{self.store}/")

    @cached_property
    def selects(self) -> Callable[[str], bool]:
        """Whether a topic is restored."""
        if self.topics_regex:
            pattern = compile_java_pattern(self.topics_regex)
            return lambda topic: pattern.fullmatch(topic) is not None
        named = frozenset(self.topics)
        return lambda topic: not named or topic in named

    @cached_property
    def holds_values(self) -> bool:
        """Whether the files hold values, not whole records."""
        return holds_values(self.raw)

    @property
    def is_import(self) -> bool:
        """Whether the files have any names (mode=GENERIC)."""
        return self.mode == GENERIC

    @property
    def read_options(self) -> ReadOptions:
        """How files of values are read."""
        return ReadOptions(self.json_schemas, self.bytes_separator, self.timestamps, self.csv)

    @cached_property
    def unpacking(self) -> Envelope | None:
        """What takes records out of values; None: values are what they are."""
        from airflow_connect.connectors.restore.values.envelopes import envelope_of

        return envelope_of(self.envelope, self.accepted)

    @cached_property
    def name_patterns(self) -> tuple[JavaPattern, ...]:
        """The names of files of other sinks than Confluent's and ours; (): they are of those."""
        written = [self.file_pattern] if self.file_pattern else NAMES_OF_ENVELOPES.get(self.envelope, ())
        return tuple(compile_java_pattern(text) for text in written)

    @property
    def extensions(self) -> tuple[str, ...]:
        """Of the files, with the dot; text may be compressed."""
        if self.file_format in WHOLE_FORMATS:
            return (f".{self.file_format}",)
        plain = {JSON: ".json", BYTES: self.bytes_extension, TEXT: ".txt", CSV: ".csv"}[self.file_format]
        return tuple(f"{plain}{packed}" for packed in ("", GZIP, ZSTD))

    def target_of(self, topic: str) -> str:
        """The topic that records of a topic of the backup go to."""
        return self.rename.get(topic, topic)

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.topics, cls.topics_regex), _chosen_once
        yield (cls.mode, cls.topic_patterns, *_OF_RESTORES), _fits_the_mode
        whole = (cls.mode, cls.file_format, cls.stores_records, cls.on_error, cls.envelope, cls.file_pattern)
        yield whole, _can_hold_whole_records
        yield (cls.from_offsets, cls.until_offsets, cls.from_ms, cls.until_ms), _begin_before_ends
        yield (cls.split_bytes, cls.mode, cls.file_format, cls.accepted), _can_divide

    def refuse_what_does_not_fit(self) -> None:
        """Refuse what would change whole records on their way, and what files of values cannot have.

        Raises:
            ConfigError: names the key.
        """
        if self.holds_values:
            self._refuse_parts_of_values()
            return
        if self.on_error != FAIL:
            raise ConfigError(
                f"{RestoreKeys.on_error}={self.on_error} would leave a hole in a topic of whole records.",
                code="restore.on_error",
                config_path=RestoreKeys.on_error.name,
                suggestion=f"Use {FAIL}: other partitions are restored, and the run fails.",
            )
        if self.raw.get(TRANSFORMS, "").strip():
            raise ConfigError(
                "A restored record is the one of the backup, so nothing can transform it.",
                code="restore.transforms",
                config_path=TRANSFORMS,
                suggestion=f"Remove {TRANSFORMS}. To give topics other names, use {RestoreKeys.rename}.",
            )
        for key in CONVERTERS:
            name = self.raw.get(key, "").strip()
            if name and not _keeps_bytes(name):
                raise ConfigError(
                    f"{key}={name} would change the bytes of the backup.",
                    code="restore.converter",
                    config_path=key,
                    suggestion=f"Remove {key}.",
                )

    def _refuse_parts_of_values(self) -> None:
        if self.lifts:
            raise ConfigError(
                f"{RestoreKeys.lifts} is for whole records: records of files of values get the time of the run, so"
                " Kafka does not delete them for their age.",
                code="restore.range",
                config_path=RestoreKeys.lifts.name,
                suggestion=f"Remove {RestoreKeys.lifts}.",
            )
        for key in (RestoreKeys.from_ms, RestoreKeys.until_ms, RestoreKeys.from_offsets, RestoreKeys.until_offsets):
            if self.raw.get(key.name, "").strip():
                raise ConfigError(
                    f"{key} needs files of whole records: files of values have no timestamps and no offsets.",
                    code="restore.range",
                    config_path=key.name,
                    suggestion=f"Remove {key}.",
                )


def with_what_does_not_fit(found: Sequence[ConfigValue], typed: RestoreConfig) -> list[ConfigValue]:
    """The values of keys, with the error of `refuse_what_does_not_fit` in that of its key."""
    try:
        typed.refuse_what_does_not_fit()
    except ConfigError as error:
        key = error.config_path or "connector.class"
        known = next((value for value in found if value.name == key), ConfigValue(key))
        wrong = replace(known, errors=[error.message], suggestions=[error.suggestion], code=error.code)
        return [*(value for value in found if value is not known), wrong]
    return list(found)


def holds_values(raw: Mapping[str, str]) -> bool:
    """Whether a configuration is about files of values, by the rule of `store.kafka.records`."""
    if raw.get(RestoreKeys.mode.name, "").strip() == GENERIC:
        return True
    if format_name(raw.get(RestoreKeys.file_format.name, "")) not in WHOLE_FORMATS:
        return True
    if raw.get(RestoreKeys.envelope.name, "").strip() not in ("", NO_ENVELOPE) or raw.get(
        RestoreKeys.file_pattern.name, ""
    ):
        return True
    chosen = raw.get(RestoreKeys.stores_records.name, "").strip().lower()
    return (
        chosen == "false" if chosen else bool(raw.get(TRANSFORMS, "").strip()) or not all(map(_keeps_bytes, _of(raw)))
    )


def _of(raw: Mapping[str, str]) -> list[str]:
    return [name for key in CONVERTERS if (name := raw.get(key, "").strip())]


def _keeps_bytes(converter: str) -> bool:
    return converter.rpartition(".")[2] == _BYTES


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


def _fits_the_mode(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """A key that has no effect in a mode would restore something else than what was meant."""
    patterns = RestoreKeys.topic_patterns
    if RestoreKeys.mode.of(parsed) != GENERIC:
        if patterns.of(parsed):
            text = f"{patterns} is for mode={GENERIC}: topics come from the names of files otherwise"
            yield Problem(patterns.name, text, f"Remove it, or set mode={GENERIC}.")
        return
    if not patterns.of(parsed):
        yield Problem(
            patterns.name, f"mode={GENERIC} needs {patterns}", "Write topic:regex, such as orders:.*/orders/.*.json."
        )
    for key in _OF_RESTORES:
        if key.of(parsed):
            text = f"{key} is not for mode={GENERIC}: {patterns} chooses files and topics there"
            yield Problem(key.name, text, f"Remove {key}.")


def _can_divide(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    key, accepted = RestoreKeys.split_bytes, RestoreKeys.accepted
    if not key.of(parsed):
        return
    if RestoreKeys.mode.of(parsed) != GENERIC or RestoreKeys.file_format.of(parsed) != PARQUET:
        text = f"{key} is for mode={GENERIC} and ParquetFormat: other files are each copied by one task"
        yield Problem(key.name, text, f"Remove {key}.")
    elif ORDER not in accepted.of(parsed):
        text = f"With {key}, several tasks copy one file at the same time, so its records do not keep their order"
        yield Problem(key.name, text, f"Add {ORDER} to {accepted}, or remove {key}.")


def _can_hold_whole_records(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    key, name = RestoreKeys.stores_records, RestoreKeys.file_format
    is_foreign = RestoreKeys.envelope.of(parsed) != NO_ENVELOPE or RestoreKeys.file_pattern.of(parsed)
    if key.of(parsed) == "true" and is_foreign:
        text = f"{RestoreKeys.envelope} and {RestoreKeys.file_pattern} are for files of values"
        yield Problem(key.name, text, f"Remove {key}, or the others.")
    policy = RestoreKeys.on_error
    if key.of(parsed) == "true" and policy.of(parsed) != FAIL:
        text = f"{policy}={policy.of(parsed)} would leave a hole in a topic of whole records"
        yield Problem(policy.name, text, f"Use {FAIL}: other partitions are restored, and the run fails.")
    is_import = RestoreKeys.mode.of(parsed) == GENERIC
    if key.of(parsed) == "true" and (is_import or name.of(parsed) not in WHOLE_FORMATS):
        yield Problem(
            key.name,
            f"Files of whole records have the format Avro, Parquet or ORC, and are not for mode={GENERIC}",
            f"Remove {key}, or set {name}.",
        )
