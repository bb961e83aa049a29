"""Typed configuration of the HDFS sink."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, Problem
from airflow_connect.api.config.plugins import PluginKind, built_in, resolve
from airflow_connect.api.config.values import shortened
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.files.hdfs import keys
from airflow_connect.connectors.files.shared.settings import keys as storage
from airflow_connect.connectors.files.shared.settings.complete_keys import COMPLETE_MARKER, LATE_DIRECTORY
from airflow_connect.connectors.files.shared.settings.config import (
    FormatConfig,
    LayoutConfig,
    NullConfig,
    RotationConfig,
    StorageConfig,
)
from airflow_connect.errors import ConfigError
from airflow_connect.layout.file_system_names import HDFS
from airflow_connect.layout.names.topic_directories import check_pattern, check_template, directory_of
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from airflow_connect.layout.time.date_patterns import compile_pattern
from airflow_connect.layout.time.time_zones import Zone
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.local.store import LocalStore, is_local
from airflow_connect.stores.store import Store

_WALLCLOCK = "airflow_connect.layout.timestamp_extractors:WallclockTimestampExtractor"
_WITH_SCHEMA = {
    built_in(PluginKind.FORMAT)[f"io.confluent.connect.hdfs.{name}"]
    for name in ("avro.AvroFormat", "parquet.ParquetFormat", "orc.OrcFormat")
}
"""Formats whose files contain a schema. Source: the SchemaFileReader of JsonFormat and StringFormat finds none."""
_NAMES = (storage.TOPICS_DIR, keys.LOGS_DIR, COMPLETE_MARKER, LATE_DIRECTORY)
_WITHOUT_PATH_FORMAT = {
    built_in(PluginKind.PARTITIONER)[f"io.confluent.connect.storage.partitioner.{name}Partitioner"]
    for name in ("Default", "Field", "Daily", "Hourly")
}
_WINTER_AND_SUMMER_MS = (1_705_320_000_000, 1_721_044_800_000)
_ANY_SUBSTITUTION = re.compile(r"\$\{(?:(?!\$\{).)*\}")


@cache
def config_def() -> ConfigDef:
    """Every key of an HDFS sink: Connect's and ours, the shared ones of storage sinks, and its own."""
    definition = sink_keys.sink_keys().include(keys.hdfs_keys()).include(keys.shared_keys())
    definition.define_rule((keys.STORE_URL, keys.HDFS_URL, keys.HADOOP_CONF_DIR), _address_is_given)
    definition.define_rule((storage.STORAGE_CLASS,), _storage_is_hdfs)
    directories = (storage.TOPICS_DIR, keys.LOGS_DIR, keys.TOPIC_PATTERN, sink_keys.TOPICS)
    definition.define_rule(directories, _directories_fit_the_topics)
    definition.define_rule((*_NAMES, storage.PARTITION_FIELD_NAME), _names_are_allowed)
    path_keys = (storage.PATH_FORMAT, storage.PARTITIONER_CLASS, storage.LOCALE, storage.TIMEZONE)
    definition.define_rule(path_keys, _path_format_is_allowed)
    definition.define_rule((keys.KERBEROS, keys.PRINCIPAL, keys.KEYTAB), _kerberos_needs_a_keytab)
    definition.define_rule((keys.HIVE_INTEGRATION, storage.SCHEMA_COMPATIBILITY), _hive_needs_compatible_schemas)
    return definition.define_rule((keys.HIVE_TABLE_NAME,), _table_name_holds_the_topic)


@dataclass(frozen=True, slots=True)
class HiveConfig:
    """Where Hive tables are registered.

    Attributes:
        metastore_uris: `hive.metastore.uris`, or "".
        conf_dir: `hive.conf.dir`, or "".
        database: `hive.database`.
        table_name: `hive.table.name`, which contains `${topic}`.
    """

    metastore_uris: str
    conf_dir: str
    database: str
    table_name: str


@dataclass(frozen=True, slots=True)
class HdfsSinkConfig:
    """Everything the HDFS sink takes from a connector configuration.

    Attributes:
        store: HDFS, or a directory if `store.url` is `file://`.
        storage: layout, rotation, formats, null values.
        logs_dir: `logs.dir`, with its substitutions.
        rotates_by_clock: whether `rotate.interval.ms` uses the wall clock.
        hive: None without `hive.integration`.
    """

    store: Store
    storage: StorageConfig
    logs_dir: str
    rotates_by_clock: bool
    hive: HiveConfig | None

    @classmethod
    def from_config(cls, raw: Mapping[str, Any]) -> HdfsSinkConfig:
        """Check and type a connector configuration, config providers resolved.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = config_def().parse(raw)
        layout = LayoutConfig.from_parsed(
            parsed,
            tombstone_directory="",
            in_file_system=True,
            topic_pattern=parsed[keys.TOPIC_PATTERN] or "",
            names=HDFS,
        )
        formats = _formats(parsed)
        return cls(
            store=_store(parsed),
            storage=StorageConfig(layout, _rotation(parsed, formats), formats, _nulls(parsed)),
            logs_dir=parsed[keys.LOGS_DIR],
            rotates_by_clock=not layout.is_time_based or layout.timestamp_extractor.path == _WALLCLOCK,
            hive=_hive(parsed),
        )


def _rotation(parsed: Mapping[str, Any], formats: FormatConfig) -> RotationConfig:
    given = RotationConfig.from_parsed(parsed)
    has_mode = StorageSchemaCompatibility.of(given.schema_compatibility) is not StorageSchemaCompatibility.NONE
    return replace(
        given,
        on_partition_change=False,
        max_open_files=0,
        keeps_schema=True,
        remembers_schema=has_mode and not given.is_compact and formats.value.path in _WITH_SCHEMA,
    )


def _nulls(parsed: Mapping[str, Any]) -> NullConfig:
    return NullConfig(parsed[keys.NULL_BEHAVIOR].lower(), parsed[keys.REPORT_NULLS])


def _formats(parsed: Mapping[str, Any]) -> FormatConfig:
    codec = parsed[storage.PARQUET_CODEC]
    return FormatConfig(
        value=resolve(PluginKind.FORMAT, parsed[storage.FORMAT_CLASS]),
        key=None,
        header=None,
        avro_codec=parsed[storage.AVRO_CODEC],
        parquet_codec="none" if codec == "uncompressed" else codec,
        enhanced_avro_schemas=parsed[storage.ENHANCED_AVRO_SCHEMA_SUPPORT],
        connect_meta_data=parsed[storage.CONNECT_META_DATA],
        allow_optional_map_keys=parsed[storage.ALLOW_OPTIONAL_MAP_KEYS],
        codec_in_extension=False,
        tells_schemas=parsed[keys.HIVE_INTEGRATION],
    )


def _store(parsed: Mapping[str, Any]) -> Store:
    url = _address(parsed)
    if is_local(url):
        return LocalStore(url)
    has_kerberos = parsed[keys.KERBEROS]
    return HdfsStore(
        HdfsSettings(
            url=url,
            conf_dir=parsed[keys.HADOOP_CONF_DIR],
            principal=parsed[keys.PRINCIPAL] if has_kerberos else "",
            keytab=parsed[keys.KEYTAB] if has_kerberos else "",
            publisher=parsed[keys.PUBLISHER].lower(),
            namenode_principal=parsed[keys.NAMENODE_PRINCIPAL] if has_kerberos else "",
        )
    )


def _hive(parsed: Mapping[str, Any]) -> HiveConfig | None:
    if not parsed[keys.HIVE_INTEGRATION]:
        return None
    return HiveConfig(
        metastore_uris=parsed[keys.HIVE_METASTORE_URIS],
        conf_dir=parsed[keys.HIVE_CONF_DIR],
        database=parsed[keys.HIVE_DATABASE],
        table_name=parsed[keys.HIVE_TABLE_NAME],
    )


def _address(parsed: Mapping[str, Any]) -> str:
    """`store.url`, else `hdfs.url`, else ""; blank means not set. Source: HdfsSinkConnectorConfig.extractUrl."""
    given = ((parsed[key] or "").strip() for key in (keys.STORE_URL, keys.HDFS_URL))
    return next((url for url in given if url), "")


def _address_is_given(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    url = _address(parsed)
    if not url:
        yield Problem(
            keys.STORE_URL,
            f"Configuration {keys.STORE_URL} cannot be empty.",
            f"Set {keys.STORE_URL} to hdfs://host:port, or to hdfs://<name service> with {keys.HADOOP_CONF_DIR}.",
        )
        return
    try:
        if is_local(url):
            LocalStore(url)
        else:
            HdfsSettings(url=url, conf_dir=parsed[keys.HADOOP_CONF_DIR])
    except ConfigError as error:
        yield Problem(error.config_path or keys.STORE_URL, error.message, error.suggestion)


def _storage_is_hdfs(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    name = parsed[storage.STORAGE_CLASS]
    if resolve(PluginKind.STORAGE, name).path != built_in(PluginKind.STORAGE)[keys.HDFS_STORAGE]:
        yield Problem(
            storage.STORAGE_CLASS,
            f"{storage.STORAGE_CLASS}={name} is not a store of the HDFS sink",
            f"Leave it out, or set {storage.STORAGE_CLASS} to {keys.HDFS_STORAGE}.",
        )


def _directories_fit_the_topics(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    pattern = parsed[keys.TOPIC_PATTERN] or ""
    try:
        if pattern:
            check_pattern(pattern)
        for key in (storage.TOPICS_DIR, keys.LOGS_DIR):
            check_template(parsed[key], key, pattern)
            for topic in parsed[sink_keys.TOPICS] or ():
                directory_of(parsed[key], pattern, topic)
    except ConfigError as error:
        yield Problem(error.config_path or keys.TOPIC_PATTERN, error.message, error.suggestion)


def _names_are_allowed(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    names = {key: parsed[key] for key in _NAMES} | {
        storage.PARTITION_FIELD_NAME: ",".join(parsed[storage.PARTITION_FIELD_NAME] or ())
    }
    for key, text in names.items():
        # An address before the path has a meaning in Confluent's sink; the check of addresses handles it.
        if text and "://" not in text and (broken := HDFS.broken_by(text.replace(",", "/"))):
            yield Problem(key, f"{key}={shortened(text)} cannot name anything in HDFS: {broken}", "Choose other names.")


def _path_format_is_allowed(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Both `HH:mm` and `ZZ` produce a colon, so the resulting directories are checked."""
    key, path = storage.PATH_FORMAT, parsed[storage.PATH_FORMAT]
    partitioner = resolve(PluginKind.PARTITIONER, parsed[storage.PARTITIONER_CLASS]).path
    if not path or partitioner in _WITHOUT_PATH_FORMAT:
        return
    try:
        pattern = compile_pattern(path, parsed[storage.LOCALE] or "en", Zone.of(parsed[storage.TIMEZONE] or "UTC"))
        broken = next(filter(None, (HDFS.broken_by(pattern(moment)) for moment in _WINTER_AND_SUMMER_MS)), "")
    except ConfigError:
        return  # The partitioner reports an invalid pattern.
    if broken:
        yield Problem(
            key,
            f"{key}={shortened(path)} produces directory names that HDFS refuses: {broken}",
            "Use another separator, as in 'hour'=HH/'minute'=mm; for zones use Z, which prints +0100, instead of ZZ,"
            " which prints +01:00.",
        )


def _kerberos_needs_a_keytab(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not parsed[keys.KERBEROS]:
        return
    for key, what in ((keys.PRINCIPAL, "principal"), (keys.KEYTAB, "path of the keytab of the principal")):
        if not parsed[key].strip():
            yield Problem(
                key,
                f"{keys.KERBEROS}=true needs {key}, the {what}, which is empty",
                f"Set {keys.PRINCIPAL} and {keys.KEYTAB}, or {keys.KERBEROS}=false.",
            )


def _hive_needs_compatible_schemas(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[keys.HIVE_INTEGRATION] and parsed[storage.SCHEMA_COMPATIBILITY].upper() == "NONE":
        yield Problem(
            storage.SCHEMA_COMPATIBILITY,
            "Hive Integration requires schema compatibility to be BACKWARD, FORWARD or FULL",
            f"Set {storage.SCHEMA_COMPATIBILITY} to BACKWARD, or {keys.HIVE_INTEGRATION}=false.",
        )


def _table_name_holds_the_topic(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: HdfsSinkConnectorConfig.validateHiveTableNameReplacements."""
    key, name = keys.HIVE_TABLE_NAME, parsed[keys.HIVE_TABLE_NAME]
    invalid = _ANY_SUBSTITUTION.search(name.replace("${topic}", ""))
    if "${topic}" not in name:
        yield Problem(key, f"{key}: '{shortened(name)}' has to contain topic substitution '${{topic}}'.", "")
    elif invalid:
        yield Problem(
            key,
            f"{key}: '{shortened(name)}' contains an invalid ${{}} substitution '{invalid.group()}'. Valid substitution"
            " is '${topic}'",
            "",
        )
