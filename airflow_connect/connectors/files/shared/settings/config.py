"""Typed configuration that all sinks that write files share: layout, rotation, formats, null values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.config.plugins import PluginKind, PluginRef, resolve
from airflow_connect.connectors.files.shared.settings import keys
from airflow_connect.connectors.files.shared.settings.complete_keys import CompleteConfig
from airflow_connect.connectors.files.shared.settings.visibility import is_time_based
from airflow_connect.errors import ConfigError
from airflow_connect.layout.file_system_names import NameRules


@dataclass(frozen=True, slots=True)
class LayoutConfig:
    """Where a record's file goes.

    Attributes:
        topics_dir: first directory, or "".
        directory_delim, file_delim: separators of directories and of the parts of a file name.
        offset_pad_width: number of digits of the start offset in a file name.
        partitioner: class that determines directories.
        partition_fields: for FieldPartitioner: dotted field names.
        partition_duration_ms: for TimeBasedPartitioner: > 0.
        path_format: for TimeBasedPartitioner: Joda-Time pattern.
        locale, timezone: for time based partitioners and scheduled rotation; "" when not set.
        timestamp_extractor: class that determines the time of a record.
        timestamp_field: for RecordField: dotted field name.
        schema_affix: `NONE`, `PREFIX` or `SUFFIX`.
        tombstone_directory: directory of records with null values.
        complete: which directories are announced as complete, and what happens to late records.
        in_file_system: whether names are those of a file system, as Confluent's HDFS sink writes them: with the last
            offset, `+` between their parts and `/` between directories.
        topic_pattern: in a file system: `topic.capture.groups.regex`, "" when it is not set.
        names: additional rules of the file system for names, beyond what is always escaped; None: none.
    """

    topics_dir: str
    directory_delim: str
    file_delim: str
    offset_pad_width: int
    partitioner: PluginRef
    partition_fields: tuple[str, ...]
    partition_duration_ms: int
    path_format: str
    locale: str
    timezone: str
    timestamp_extractor: PluginRef
    timestamp_field: str
    schema_affix: str = "NONE"
    tombstone_directory: str = "tombstone"
    complete: CompleteConfig = field(default_factory=CompleteConfig)
    in_file_system: bool = False
    topic_pattern: str = ""
    names: NameRules | None = None

    @property
    def is_time_based(self) -> bool:
        """Whether the partitioner is TimeBased, Daily or Hourly: only then does rotate.interval.ms count."""
        return is_time_based(self.partitioner.name)

    @classmethod
    def from_parsed(
        cls,
        parsed: Mapping[str, Any],
        *,
        tombstone_directory: str,
        in_file_system: bool = False,
        topic_pattern: str = "",
        names: NameRules | None = None,
    ) -> LayoutConfig:
        """From the typed values of `storage_keys()`; for the others see the attributes."""
        topics_dir = parsed[keys.TOPICS_DIR]
        return cls(
            topics_dir=_plain_directory(topics_dir) if in_file_system else topics_dir,
            directory_delim=parsed[keys.DIRECTORY_DELIM],
            file_delim="+" if in_file_system else parsed[keys.FILE_DELIM],
            offset_pad_width=parsed[keys.OFFSET_PAD_WIDTH],
            partitioner=resolve(PluginKind.PARTITIONER, parsed[keys.PARTITIONER_CLASS]),
            partition_fields=tuple(parsed[keys.PARTITION_FIELD_NAME]),
            partition_duration_ms=parsed[keys.PARTITION_DURATION_MS],
            path_format=_plain_directory(parsed[keys.PATH_FORMAT]) if in_file_system else parsed[keys.PATH_FORMAT],
            locale=parsed[keys.LOCALE],
            timezone=parsed[keys.TIMEZONE],
            timestamp_extractor=resolve(PluginKind.TIMESTAMP_EXTRACTOR, parsed[keys.TIMESTAMP_EXTRACTOR]),
            timestamp_field=parsed[keys.TIMESTAMP_FIELD],
            schema_affix=parsed[keys.SCHEMA_AFFIX].upper(),
            tombstone_directory=_tombstone_directory(tombstone_directory, in_file_system=in_file_system),
            complete=CompleteConfig.from_parsed(parsed),
            in_file_system=in_file_system,
            topic_pattern=topic_pattern,
            names=names,
        )


def _plain_directory(path: str) -> str:
    """A directory without leading, trailing and doubled slashes, which have no meaning in a file system."""
    return "/".join(part for part in path.strip().split("/") if part)


def _tombstone_directory(path: str, *, in_file_system: bool) -> str:
    """The directory of null values, "" if the sink has none.

    Raises:
        ConfigError: it leads elsewhere, or is nothing but slashes in a file system.
    """
    plain = _plain_directory(path) if in_file_system else path
    if {".", ".."} & set(path.split("/")) or (path and not plain):
        raise ConfigError(
            f"tombstone.encoded.partition={path!r} does not name a directory.",
            code="layout.bad_tombstone_directory",
            config_path="tombstone.encoded.partition",
            suggestion="Write a name, such as tombstone, without '.' or '..' as a part.",
        )
    return plain


@dataclass(frozen=True, slots=True)
class RotationConfig:
    """Where a file ends.

    Attributes:
        flush_size: records of a topic-partition in all open files; values below 1 act like 1, as in
            Confluent's.
        rotate_interval_ms: span of record time; 0: off.
        rotate_schedule_interval_ms: wall-clock period counted from local midnight; 0: off.
        on_partition_change: a change of directory ends files; only with rotate_interval_ms and a time based
            partitioner.
        max_open_files: directories with an open file per topic-partition; 0: no limit.
        schema_compatibility: `NONE`, `BACKWARD`, `FORWARD` or `FULL`.
        is_compact: each directory has its own files, which only flush_size ends.
        keeps_schema: whether a topic-partition has one schema for all its files, as in Confluent's HDFS sink.
        remembers_schema: whether the next run begins with the schema of the last file.
    """

    flush_size: int
    rotate_interval_ms: int
    rotate_schedule_interval_ms: int
    on_partition_change: bool
    max_open_files: int
    schema_compatibility: str
    is_compact: bool = False
    keeps_schema: bool = False
    remembers_schema: bool = False

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any]) -> RotationConfig:
        """From the typed values of `storage_keys()`."""
        return cls(
            flush_size=max(1, parsed[keys.FLUSH_SIZE]),
            rotate_interval_ms=max(0, parsed[keys.ROTATE_INTERVAL_MS]),
            rotate_schedule_interval_ms=max(0, parsed[keys.ROTATE_SCHEDULE_INTERVAL_MS]),
            on_partition_change=parsed[keys.ROTATE_ON_PARTITION_CHANGE],
            max_open_files=max(0, parsed[keys.MAX_OPEN_FILES]),
            schema_compatibility=parsed[keys.SCHEMA_COMPATIBILITY].upper(),
            is_compact=parsed[keys.FILES_PER_PARTITION] == keys.COMPACT,
        )


@dataclass(frozen=True, slots=True)
class FormatConfig:
    """How records become bytes.

    Attributes:
        value: class of the format of values.
        key, header: classes of the formats of key and header files; None: no such files.
        avro_codec: `null`, `deflate`, `snappy` or `bzip2`.
        parquet_codec: `none` or a codec's lower-case name.
        compression_type: `none` or `gzip`, around JSON and raw bytes files.
        compression_level: -1 (the codec's default) or 0 to 9.
        json_decimal_format: `BASE64` or `NUMERIC`.
        bytes_extension: extension of raw bytes files, with dot.
        bytes_separator: bytes after every record of a raw bytes file.
        enhanced_avro_schemas, connect_meta_data, allow_optional_map_keys: see their keys' documentation.
        codec_in_extension: whether names of Parquet files contain the codec: `.snappy.parquet`.
        tells_schemas: whether tasks report the schemas of the values to the driver, for tables over the files.
    """

    value: PluginRef
    key: PluginRef | None
    header: PluginRef | None
    avro_codec: str = "null"
    parquet_codec: str = "snappy"
    compression_type: str = "none"
    compression_level: int = -1
    json_decimal_format: str = "BASE64"
    bytes_extension: str = ".bin"
    bytes_separator: bytes = b"\n"
    enhanced_avro_schemas: bool = True
    connect_meta_data: bool = True
    allow_optional_map_keys: bool = False
    codec_in_extension: bool = True
    tells_schemas: bool = False


@dataclass(frozen=True, slots=True)
class NullConfig:
    """What happens to records whose value is null.

    Attributes:
        behavior: `fail`, `ignore` or `write`.
        report_to_dlq: whether ignored ones go to the dead letter queue, if there is one.
    """

    behavior: str
    report_to_dlq: bool


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """The parts of a storage sink's configuration that do not depend on the store."""

    layout: LayoutConfig
    rotation: RotationConfig
    formats: FormatConfig
    nulls: NullConfig
