"""The configuration that all sinks that write files share: layout, rotation, formats, null values.

Source: Confluent's kafka-connect-storage-common (StorageSinkConnectorConfig, StorageCommonConfig,
PartitionerConfig). Documentation texts are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, Problem
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.api.config.typed import Checks, KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import (
    CaseInsensitiveValidString,
    EnumString,
    Lambda,
    NonEmptyString,
    Range,
    ValidString,
)
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.connectors.files.shared.settings.complete_keys import CompleteConfig
from airflow_connect.connectors.files.shared.settings.visibility import OfPartitioner, is_time_based
from airflow_connect.connectors.files.shared.settings.whole_records import (
    TRANSFORMS,
    WholeRecordConfig,
    needs_a_format_with_fields,
    needs_no_transformations,
    needs_whole_records,
)
from airflow_connect.errors import ConfigError
from airflow_connect.layout.file_system_names import NameRules
from airflow_connect.layout.names.escaping import check_delimiter

PARTITIONERS = "airflow_connect.layout.partitioners"
COMPACT = "compact"
DEFAULT_PARTITIONER = "io.confluent.connect.storage.partitioner.DefaultPartitioner"
PARQUET_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd", "uncompressed")
_CONNECTOR, _STORAGE, _PARTITIONER = KeyGroup("Connector"), KeyGroup("Storage"), KeyGroup("Partitioner")


def _check_delimiter(name: str, value: Any) -> None:
    try:
        check_delimiter(value or "", name)
    except ConfigError as error:
        raise invalid(name, value, "Value must be punctuation without letters, digits or %") from error


def _check_fields(name: str, value: Any) -> None:
    for field in value or []:
        if not field or not all(field.split(".")):
            raise invalid(name, value, "Field names and the parts between their dots may not be empty")


def _check_timezone(name: str, value: Any) -> None:
    if not value:
        return
    from airflow_connect.layout.time.time_zones import Zone  # zoneinfo costs milliseconds, and most layouts need none

    try:
        Zone.of(value)
    except ConfigError:
        raise invalid(name, value, f"The datetime zone id '{value}' is not recognised") from None


def _parquet_codec(name: str) -> str:
    return "none" if name == "uncompressed" else name


def plain_directory(path: str) -> str:
    """A directory without leading, trailing and doubled slashes."""
    return "/".join(part for part in path.strip().split("/") if part)


class _StorageKeys(TypedConfig):
    """Keys of Confluent's groups Connector, Storage and Partitioner."""

    value_format = _CONNECTOR.high.plugin(
        "format.class", REQUIRED, "Format of the files that hold the record values.", PluginKind.FORMAT
    )
    flush_size = _CONNECTOR.high.integer(
        "flush.size",
        REQUIRED,
        "Number of records of one topic-partition, over all its open files, after which its files are"
        " complete; with files.per.partition=compact the number of records in each file.",
    ).at_least(1)
    rotate_interval_ms = _CONNECTOR.high.long(
        "rotate.interval.ms",
        -1,
        "Span of record time in milliseconds after which the files of a topic-partition are complete:"
        " measured from the first record in them by timestamp.extractor. Only time based partitioners"
        " use it; -1 is off.",
    ).at_least(0)
    rotate_schedule_interval_ms = _CONNECTOR.medium.long(
        "rotate.schedule.interval.ms",
        -1,
        "Wall-clock period in milliseconds, counted from local midnight in `timezone`, after which"
        " files are complete. A run applies it at its end: when a period has passed since the last run,"
        " files that are not full are published even with flush.on.end=false. -1 is off.",
    ).at_least(0)
    on_partition_change = _CONNECTOR.low.boolean(
        "rotate.file.on.partition.change",
        True,
        "Whether a record that belongs in another directory than the one before it completes the files"
        " of its topic-partition. Only with rotate.interval.ms and a time based partitioner.",
    )
    max_open_files = _CONNECTOR.low.integer(
        "partitioner.max.open.files",
        -1,
        "Number of directories of one topic-partition that may have an open file; one more completes"
        " the files. -1 is no limit: open files beyond the memory budget spill to disk.",
    ).at_least(0)
    is_compact = _CONNECTOR.medium.text(
        "files.per.partition",
        "classic",
        "`classic`: all open files of a topic-partition end together, as Confluent's do. `compact`: each"
        " directory has its own files, which end only at flush.size records or at the end of the run."
        " So late records and alternating schemas do not cause small files. flush.size then counts"
        " the records of a file. It needs flush.on.end=true.",
        ValidString("classic", COMPACT),
    ).equals(COMPACT)
    schema_compatibility = _CONNECTOR.high.text(
        "schema.compatibility",
        "NONE",
        "How records whose schema differs from that of the open file are written: `NONE` completes the"
        " file; `BACKWARD`, `FULL` and `FORWARD` project the record to the file's schema if that is"
        " possible.",
        CaseInsensitiveValidString("NONE", "BACKWARD", "FORWARD", "FULL"),
    ).to(str.upper)
    offset_pad_width = _CONNECTOR.low.integer(
        "filename.offset.zero.pad.width",
        10,
        "Digits to which the start offset in a file name is padded with zeros.",
        Range(0),
    )
    avro_codec = _CONNECTOR.low.text(
        "avro.codec",
        "null",
        "Compression of blocks in Avro files; `null` is none.",
        ValidString("null", "deflate", "snappy", "bzip2"),
    )
    parquet_codec = _CONNECTOR.low.text(
        "parquet.codec", "snappy", "Compression of pages in Parquet files.", ValidString(*PARQUET_CODECS)
    ).to(_parquet_codec)
    enhanced_avro_schemas = _CONNECTOR.low.boolean(
        "enhanced.avro.schema.support",
        True,
        "Whether names and enum symbols that a converter kept in the schema's parameters are written as Avro's own.",
    )
    connect_meta_data = _CONNECTOR.low.boolean(
        "connect.meta.data",
        True,
        "Whether Avro and Parquet files carry Connect's own schema attributes (connect.name, connect.version, ...).",
    )
    allow_optional_map_keys = _CONNECTOR.low.boolean(
        "allow.optional.map.keys",
        False,
        "Whether maps whose key is an optional string are written to Avro and Parquet as maps instead of"
        " lists of entries.",
    )
    _schemas_cache = _CONNECTOR.low.integer(
        "schemas.cache.config",
        1000,
        "Number of converted schemas that a live connector caches.",
        ignored="A run converts each schema once and discards all of them at its end.",
    )
    retry_backoff_ms = _CONNECTOR.low.long(
        "retry.backoff.ms",
        5000,
        "Pause of a live task before it reads records again after a failure.",
        ignored="Requests are retried according to s3.part.retries and s3.retry.backoff.ms; a run that still"
        " fails is started again by its scheduler.",
    )
    _shutdown_timeout_ms = _CONNECTOR.low.long(
        "shutdown.timeout.ms",
        3000,
        "Time that a live task gets for closing.",
        ignored="A run ends when its work is done; there is nothing to shut down.",
    )
    storage_class = _STORAGE.high.plugin(
        "storage.class", REQUIRED, "Kind of store that the files are written to.", PluginKind.STORAGE
    )
    topics_dir = _STORAGE.high.text(
        "topics.dir",
        "topics",
        "First directory of every file name; blank leaves it out. Without leading, trailing or doubled slashes,"
        " unless the store keeps such names, as Amazon S3 does. File systems ignore them.",
    )
    directory_delim = _STORAGE.medium.text(
        "directory.delim", "/", "Text between directories.", Lambda(_check_delimiter, "punctuation")
    )
    file_delim = _STORAGE.medium.text(
        "file.delim",
        "+",
        "Text between topic, Kafka partition and start offset in a file name.",
        Lambda(_check_delimiter, "punctuation"),
    )
    partitioner = _PARTITIONER.high.plugin(
        "partitioner.class",
        DEFAULT_PARTITIONER,
        "Class that determines the directory of a record.",
        PluginKind.PARTITIONER,
        dependents=("partition.field.name", "partition.duration.ms", "path.format", "locale", "timezone"),
    )
    partition_fields = _PARTITIONER.medium.words(
        "partition.field.name",
        "",
        "Fields of the value from which FieldPartitioner creates directories, in this order; dots lead into"
        " nested structures.",
        Lambda(_check_fields, "field names"),
        recommender=OfPartitioner(),
    )
    partition_duration_ms = _PARTITIONER.medium.long(
        "partition.duration.ms",
        -1,
        "Span of record time in milliseconds that one directory covers, for TimeBasedPartitioner.",
        recommender=OfPartitioner(),
    )
    path_format = _PARTITIONER.medium.text(
        "path.format",
        "",
        "Directory name as a Joda-Time pattern, for TimeBasedPartitioner, such as"
        " 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH.",
        recommender=OfPartitioner(),
    )
    locale = _PARTITIONER.medium.text(
        "locale",
        "",
        "Language of the names of months and days in directories, such as en-US.",
        recommender=OfPartitioner(),
    )
    timezone = _PARTITIONER.medium.text(
        "timezone",
        "",
        "Time zone of directories and of rotate.schedule.interval.ms: an id such as Europe/Zurich, or"
        " an offset such as +01:00.",
        Lambda(_check_timezone, "time zone id or [+-]hh:mm"),
        recommender=OfPartitioner(also_for=rotate_schedule_interval_ms.name),
    )
    timestamp_extractor = _PARTITIONER.medium.plugin(
        "timestamp.extractor",
        "Wallclock",
        "Where the time of a record comes from: `Wallclock` is the time of the run, `Record` the"
        " record's timestamp, `RecordField` the field timestamp.field of the value.",
        PluginKind.TIMESTAMP_EXTRACTOR,
    )
    timestamp_field = _PARTITIONER.medium.text(
        "timestamp.field",
        "timestamp",
        "Field that RecordField reads; dots lead into nested structures.",
        NonEmptyString(),
    )
    schema_affix = _PARTITIONER.low.text(
        "s3.schema.partition.affix.type",
        "NONE",
        "Whether the name of the value's schema is an additional directory, `schema_name=<name>`:"
        " `PREFIX` puts it before the partitioner's directories, `SUFFIX` after them.",
        EnumString("none", "prefix", "suffix"),
    ).to(str.upper)


class StorageConfig(_StorageKeys, CompleteConfig, WholeRecordConfig):
    """What a storage sink takes from its configuration, without its store; see the documentation of each key.

    Attributes:
        on_null: `fail`, `ignore` or `write`: what happens to records whose value is null.
        reports_nulls: whether ignored ones go to the dead letter queue, if there is one.
        in_file_system: whether names are those of a file system, as Confluent's HDFS sink writes them: with the last
            offset, `+` between their parts and `/` between directories.
        names: additional rules of the file system for names, beyond what is always escaped; None: none.
        codec_in_extension: whether names of Parquet files contain the codec: `.snappy.parquet`.
        keeps_schema: whether a topic-partition has one schema for all its files, as in Confluent's HDFS sink.
    """

    on_null: TypedKey[str]
    reports_nulls: TypedKey[bool]
    in_file_system = False
    names: NameRules | None = None
    codec_in_extension = True
    keeps_schema = False

    @property
    def topic_pattern(self) -> str:
        """In a file system: `topic.capture.groups.regex`; "" when it is not set."""
        return ""

    @property
    def remembers_schema(self) -> bool:
        """Whether the next run begins with the schema of the last file."""
        return False

    @property
    def tells_schemas(self) -> bool:
        """Whether tasks report the schemas of the values to the driver, for tables over the files."""
        return False

    @property
    def is_time_based(self) -> bool:
        """Whether the partitioner is TimeBased, Daily or Hourly: only then does rotate.interval.ms count."""
        return is_time_based(self.partitioner.name)

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys, and those that have no effect if each directory has its own files."""
        super().define(definition)
        rotation = (cls.rotate_interval_ms, cls.rotate_schedule_interval_ms, cls.on_partition_change)
        definition.define_unused(
            map(str, (*rotation, cls.max_open_files)),
            beside=(cls.is_compact.name, COMPACT),
            reason=f"With {cls.is_compact}={COMPACT} only {cls.flush_size} and the end of the run end a file.",
        )

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.rotate_schedule_interval_ms, cls.timezone), _schedule_needs_timezone
        yield (cls.is_compact, SinkKeys.flush_on_end), _compact_leaves_nothing
        yield (cls.partitioner, cls.partition_fields), _field_partitioner_needs_fields
        time_keys = (cls.partitioner, cls.partition_duration_ms, cls.path_format, cls.locale, cls.timezone)
        yield (*time_keys, cls.directory_delim), _time_based_partitioner_needs_time
        yield (cls.stores_records, cls.value_format), needs_a_format_with_fields
        yield (cls.stores_records, TRANSFORMS), needs_no_transformations
        yield (cls.stores_records, cls.registry_urls), needs_whole_records


class FileSystemConfig(StorageConfig):
    """Of a sink whose store is a file system, in which leading, trailing and doubled slashes have no meaning."""

    in_file_system = True
    topics_dir = StorageConfig.topics_dir.to(plain_directory)
    path_format = StorageConfig.path_format.to(plain_directory)
    file_delim = StorageConfig.file_delim.to(lambda _: "+")


Keys = _StorageKeys


def _schedule_needs_timezone(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.rotate_schedule_interval_ms.of(parsed) > 0 and not Keys.timezone.of(parsed):
        yield Problem(
            Keys.timezone.name,
            f"{Keys.timezone} configuration must be set when using {Keys.rotate_schedule_interval_ms}",
            f"Set {Keys.timezone}, for example to UTC.",
        )


def _compact_leaves_nothing(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.is_compact.of(parsed) and parsed.get(SinkKeys.flush_on_end.name) is False:
        yield Problem(
            Keys.is_compact.name,
            f"{Keys.is_compact}={COMPACT} collects records of all offsets in the files of each directory, so"
            f" none can be left for the next run, as {SinkKeys.flush_on_end}=false requires",
            f"Set {SinkKeys.flush_on_end}=true, or {Keys.is_compact}=classic.",
        )


def _field_partitioner_needs_fields(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.partitioner.of(parsed).path == f"{PARTITIONERS}:FieldPartitioner" and not Keys.partition_fields.of(parsed):
        yield Problem(
            Keys.partition_fields.name,
            f"{Keys.partition_fields} is empty, but FieldPartitioner creates directories from the fields in it.",
            f"Set {Keys.partition_fields} to a comma separated list of fields of the value.",
        )


def _time_based_partitioner_needs_time(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: TimeBasedPartitioner.configure; Daily and Hourly have a fixed path format and duration."""
    partitioner = Keys.partitioner.of(parsed)
    if not is_time_based(partitioner.name):
        return
    if partitioner.path == f"{PARTITIONERS}:TimeBasedPartitioner":
        if Keys.partition_duration_ms.of(parsed) <= 0:
            # Confluent accepts 0 and divides by it at the first record.
            why = "Partition duration needs to be a positive."
            yield _wrong(Keys.partition_duration_ms, parsed, why, "3600000 for hourly directories")
        if Keys.path_format.of(parsed) in ("", Keys.directory_delim.of(parsed)):
            example = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
            yield _wrong(Keys.path_format, parsed, "Path format cannot be empty.", example)
    if not Keys.locale.of(parsed):
        yield _wrong(Keys.locale, parsed, "Locale cannot be empty.", "en-US")
    if not Keys.timezone.of(parsed):
        yield _wrong(Keys.timezone, parsed, "Timezone cannot be empty.", "UTC")


def _wrong(key: TypedKey[Any], parsed: Mapping[str, Any], why: str, example: str) -> Problem:
    return Problem(key.name, str(invalid(key.name, key.of(parsed), why)), f"Set {key}, for example to {example}.")
