"""Typed configuration of the HDFS sink."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, Problem
from airflow_connect.api.config.plugins import PluginKind, built_in
from airflow_connect.api.config.typed import Checks
from airflow_connect.api.config.values import shortened
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.files.hdfs.keys import HdfsKeys
from airflow_connect.connectors.files.shared.settings.config import FileSystemConfig, StorageConfig
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

HDFS_STORAGE = "io.confluent.connect.hdfs.storage.HdfsStorage"
AVRO_FORMAT = "io.confluent.connect.hdfs.avro.AvroFormat"
_WALLCLOCK = "airflow_connect.layout.timestamp_extractors:WallclockTimestampExtractor"
_WITH_SCHEMA = {
    built_in(PluginKind.FORMAT)[f"io.confluent.connect.hdfs.{name}"]
    for name in ("avro.AvroFormat", "parquet.ParquetFormat", "orc.OrcFormat")
}
"""Formats whose files contain a schema. Source: the SchemaFileReader of JsonFormat and StringFormat finds none."""
_NAMES = (StorageConfig.topics_dir, HdfsKeys.logs_dir, StorageConfig.marker, StorageConfig.late_directory)
_WITHOUT_PATH_FORMAT = {
    built_in(PluginKind.PARTITIONER)[f"io.confluent.connect.storage.partitioner.{name}Partitioner"]
    for name in ("Default", "Field", "Daily", "Hourly")
}
_WINTER_AND_SUMMER_MS = (1_705_320_000_000, 1_721_044_800_000)
_ANY_SUBSTITUTION = re.compile(r"\$\{(?:(?!\$\{).)*\}")


class HdfsSinkConfig(HdfsKeys, FileSystemConfig):
    """Everything the HDFS sink takes from a connector configuration.

    Attributes:
        store: HDFS, or a directory if `store.url` is `file://`.
    """

    on_partition_change = FileSystemConfig.on_partition_change.to(lambda _: False)
    max_open_files = FileSystemConfig.max_open_files.to(lambda _: 0)
    names = HDFS
    codec_in_extension = False
    keeps_schema = True

    def __init__(self, raw: Mapping[str, Any], parsed: Mapping[str, Any]) -> None:
        """Read each key's value."""
        super().__init__(raw, parsed)
        self.store = self._store()

    def _store(self) -> Store:
        url = _address(self.parsed)
        if is_local(url):
            return LocalStore(url)
        settings = HdfsSettings(
            url=url,
            conf_dir=self.conf_dir,
            principal=self.principal if self.kerberos else "",
            keytab=self.keytab if self.kerberos else "",
            publisher=self.publisher,
            namenode_principal=self.namenode_principal if self.kerberos else "",
        )
        return HdfsStore(settings)

    @property
    def topic_pattern(self) -> str:
        """`topic.capture.groups.regex`."""
        return self.topic_groups

    @property
    def remembers_schema(self) -> bool:
        """Whether the next run begins with the schema of the last file."""
        has_mode = StorageSchemaCompatibility.of(self.schema_compatibility) is not StorageSchemaCompatibility.NONE
        return has_mode and not self.is_compact and self.value_format.path in _WITH_SCHEMA

    @property
    def tells_schemas(self) -> bool:
        """Tables need the schemas of values."""
        return self.hive_integration

    @property
    def rotates_by_clock(self) -> bool:
        """Whether `rotate.interval.ms` uses the wall clock."""
        return not self.is_time_based or self.timestamp_extractor.path == _WALLCLOCK

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys of every sink, those of the HDFS sink, and those of storage sinks with its defaults."""
        definition.include(sink_keys.sink_keys())
        super().define(definition)
        definition.redefine(cls.storage_class.name, default=HDFS_STORAGE)
        definition.redefine(cls.value_format.name, default=AVRO_FORMAT)
        definition.redefine(
            cls.topics_dir.name,
            documentation="First directories of every file name; blank: none. `${topic}` stands for the topic,"
            f" `${{0}}`, `${{1}}` ... for the groups of {cls.topic_groups}.",
        )
        definition.redefine(
            cls.rotate_interval_ms.name,
            documentation="Time span in milliseconds after which the files of a topic-partition are complete. With a"
            " time-based partitioner it is record time according to timestamp.extractor, measured from the first"
            " record in them. Otherwise it is the wall clock, checked at the end of a run: if that much time has"
            " passed since the last run, files that are not full are published even with flush.on.end=false. -1: off.",
        )
        definition.redefine(
            cls.offset_pad_width.name,
            documentation="Digits to which start and end offset in a file name are padded with zeros.",
        )
        definition.redefine(
            cls.file_delim.name,
            ignored="File names in HDFS always have `+` between their parts, as in Confluent's HDFS sink.",
        )
        definition.redefine(
            cls.on_partition_change.name, ignored="In the HDFS sink a change of directory does not complete files."
        )
        definition.redefine(
            cls.max_open_files.name,
            ignored="The HDFS sink has no such limit: open files beyond the memory budget spill to disk.",
        )
        definition.redefine(
            cls.retry_backoff_ms.name,
            ignored="Requests are retried automatically; a run that still fails is started again by its scheduler.",
        )

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.url, cls.old_url, cls.conf_dir), _address_is_given
        yield (cls.storage_class,), _storage_is_hdfs
        directories = (cls.topics_dir, cls.logs_dir, cls.topic_groups)
        yield (*directories, sink_keys.TOPICS), _directories_fit_the_topics
        yield (*_NAMES, cls.partition_fields), _names_are_allowed
        yield (cls.path_format, cls.partitioner, cls.locale, cls.timezone), _path_format_is_allowed
        yield (cls.kerberos, cls.principal, cls.keytab), _kerberos_needs_a_keytab
        yield (cls.hive_integration, cls.schema_compatibility), _hive_needs_compatible_schemas
        yield (cls.hive_table_name,), _table_name_holds_the_topic


Keys = HdfsKeys


def _address(parsed: Mapping[str, Any]) -> str:
    """`store.url`, else `hdfs.url`, else ""; blank means not set. Source: HdfsSinkConnectorConfig.extractUrl."""
    return Keys.url.of(parsed).strip() or Keys.old_url.of(parsed).strip()


def _address_is_given(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    url = _address(parsed)
    if not url:
        yield Problem(
            Keys.url.name,
            f"Configuration {Keys.url} cannot be empty.",
            f"Set {Keys.url} to hdfs://host:port, or to hdfs://<name service> with {Keys.conf_dir}.",
        )
        return
    try:
        if is_local(url):
            LocalStore(url)
        else:
            HdfsSettings(url=url, conf_dir=Keys.conf_dir.of(parsed))
    except ConfigError as error:
        yield Problem(error.config_path or Keys.url.name, error.message, error.suggestion)


def _storage_is_hdfs(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    key = StorageConfig.storage_class
    if key.of(parsed).path != built_in(PluginKind.STORAGE)[HDFS_STORAGE]:
        yield Problem(
            key.name,
            f"{key}={parsed[key.name]} is not a store of the HDFS sink",
            f"Leave it out, or set {key} to {HDFS_STORAGE}.",
        )


def _directories_fit_the_topics(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    pattern = Keys.topic_groups.of(parsed)
    try:
        if pattern:
            check_pattern(pattern)
        for key in (StorageConfig.topics_dir, Keys.logs_dir):
            check_template(key.of(parsed), key.name, pattern)
            for topic in parsed[sink_keys.TOPICS] or ():
                directory_of(key.of(parsed), pattern, topic)
    except ConfigError as error:
        yield Problem(error.config_path or Keys.topic_groups.name, error.message, error.suggestion)


def _names_are_allowed(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    names = {key.name: key.of(parsed) for key in _NAMES}
    names[StorageConfig.partition_fields.name] = ",".join(StorageConfig.partition_fields.of(parsed))
    for key, text in names.items():
        # An address before the path has a meaning in Confluent's sink; the check of addresses handles it.
        if text and "://" not in text and (broken := HDFS.broken_by(text.replace(",", "/"))):
            why = f"{key}={shortened(text)} cannot name anything in HDFS: {broken}"
            yield Problem(key, why, "Choose other names.")


def _path_format_is_allowed(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Both `HH:mm` and `ZZ` produce a colon, so the resulting directories are checked."""
    storage = StorageConfig
    key, path = storage.path_format, storage.path_format.of(parsed)
    if not path or storage.partitioner.of(parsed).path in _WITHOUT_PATH_FORMAT:
        return
    try:
        zone = Zone.of(storage.timezone.of(parsed) or "UTC")
        pattern = compile_pattern(path, storage.locale.of(parsed) or "en", zone)
        broken = next(filter(None, (HDFS.broken_by(pattern(moment)) for moment in _WINTER_AND_SUMMER_MS)), "")
    except ConfigError:
        return  # The partitioner reports an invalid pattern.
    if broken:
        yield Problem(
            key.name,
            f"{key}={shortened(path)} produces directory names that HDFS refuses: {broken}",
            "Use another separator, as in 'hour'=HH/'minute'=mm; for zones use Z, which prints +0100, instead of ZZ,"
            " which prints +01:00.",
        )


def _kerberos_needs_a_keytab(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not Keys.kerberos.of(parsed):
        return
    for key, what in ((Keys.principal, "principal"), (Keys.keytab, "path of the keytab of the principal")):
        if not key.of(parsed).strip():
            yield Problem(
                key.name,
                f"{Keys.kerberos}=true needs {key}, the {what}, which is empty",
                f"Set {Keys.principal} and {Keys.keytab}, or {Keys.kerberos}=false.",
            )


def _hive_needs_compatible_schemas(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.hive_integration.of(parsed) and StorageConfig.schema_compatibility.of(parsed) == "NONE":
        yield Problem(
            StorageConfig.schema_compatibility.name,
            "Hive Integration requires schema compatibility to be BACKWARD, FORWARD or FULL",
            f"Set {StorageConfig.schema_compatibility} to BACKWARD, or {Keys.hive_integration}=false.",
        )


def _table_name_holds_the_topic(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: HdfsSinkConnectorConfig.validateHiveTableNameReplacements."""
    key, name = Keys.hive_table_name, Keys.hive_table_name.of(parsed)
    invalid = _ANY_SUBSTITUTION.search(name.replace("${topic}", ""))
    if "${topic}" not in name:
        yield Problem(key.name, f"{key}: '{shortened(name)}' has to contain topic substitution '${{topic}}'.", "")
    elif invalid:
        yield Problem(
            key.name,
            f"{key}: '{shortened(name)}' contains an invalid ${{}} substitution '{invalid.group()}'. Valid substitution"
            " is '${topic}'",
            "",
        )
