"""Definitions of the keys that Confluent's storage sinks share: names, types, defaults, validation.

Source: Confluent's kafka-connect-storage-common (StorageSinkConnectorConfig, StorageCommonConfig,
PartitionerConfig). Documentation texts are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Problem, Type
from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.api.config.validators import (
    CaseInsensitiveValidString,
    EnumString,
    Lambda,
    NonEmptyString,
    Range,
    ValidString,
)
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys.sink import FLUSH_ON_END
from airflow_connect.connectors.files.shared.settings.complete_keys import complete_keys
from airflow_connect.connectors.files.shared.settings.visibility import OfPartitioner, is_time_based
from airflow_connect.errors import ConfigError
from airflow_connect.layout.names.escaping import check_delimiter

FORMAT_CLASS = "format.class"
FLUSH_SIZE = "flush.size"
ROTATE_INTERVAL_MS = "rotate.interval.ms"
ROTATE_SCHEDULE_INTERVAL_MS = "rotate.schedule.interval.ms"
ROTATE_ON_PARTITION_CHANGE = "rotate.file.on.partition.change"
MAX_OPEN_FILES = "partitioner.max.open.files"
FILES_PER_PARTITION = "files.per.partition"
SCHEMA_COMPATIBILITY = "schema.compatibility"
SCHEMAS_CACHE = "schemas.cache.config"
ENHANCED_AVRO_SCHEMA_SUPPORT = "enhanced.avro.schema.support"
CONNECT_META_DATA = "connect.meta.data"
RETRY_BACKOFF_MS = "retry.backoff.ms"
SHUTDOWN_TIMEOUT_MS = "shutdown.timeout.ms"
OFFSET_PAD_WIDTH = "filename.offset.zero.pad.width"
AVRO_CODEC = "avro.codec"
PARQUET_CODEC = "parquet.codec"
ALLOW_OPTIONAL_MAP_KEYS = "allow.optional.map.keys"
STORAGE_CLASS = "storage.class"
TOPICS_DIR = "topics.dir"
DIRECTORY_DELIM = "directory.delim"
FILE_DELIM = "file.delim"
PARTITIONER_CLASS = "partitioner.class"
PARTITION_FIELD_NAME = "partition.field.name"
PARTITION_DURATION_MS = "partition.duration.ms"
PATH_FORMAT = "path.format"
LOCALE = "locale"
TIMEZONE = "timezone"
TIMESTAMP_EXTRACTOR = "timestamp.extractor"
TIMESTAMP_FIELD = "timestamp.field"
SCHEMA_AFFIX = "s3.schema.partition.affix.type"

PARTITIONERS = "airflow_connect.layout.partitioners"
CLASSIC, COMPACT = "classic", "compact"
DEFAULT_PARTITIONER = "io.confluent.connect.storage.partitioner.DefaultPartitioner"
PARQUET_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "lz4_raw", "zstd", "uncompressed")
_CONNECTOR, _STORAGE, _PARTITIONER = "Connector", "Storage", "Partitioner"


def storage_keys() -> ConfigDef:
    """Keys of Confluent's groups Connector, Storage and Partitioner, and the rules between them."""
    definition = ConfigDef().define(*_file_keys()).define(*_codec_keys()).define(*_unused_keys())
    definition.define(*_storage_keys()).define(*_partitioner_keys()).include(complete_keys())
    definition.define_rule((ROTATE_SCHEDULE_INTERVAL_MS, TIMEZONE), _schedule_needs_timezone)
    definition.define_rule((FILES_PER_PARTITION, FLUSH_ON_END), _compact_leaves_nothing)
    definition.define_unused(
        (ROTATE_INTERVAL_MS, ROTATE_SCHEDULE_INTERVAL_MS, ROTATE_ON_PARTITION_CHANGE, MAX_OPEN_FILES),
        beside=(FILES_PER_PARTITION, COMPACT),
        reason=f"With {FILES_PER_PARTITION}={COMPACT} only {FLUSH_SIZE} and the end of the run end a file.",
    )
    definition.define_rule((PARTITIONER_CLASS, PARTITION_FIELD_NAME), _field_partitioner_needs_fields)
    time_keys = (PARTITIONER_CLASS, PARTITION_DURATION_MS, PATH_FORMAT, LOCALE, TIMEZONE, DIRECTORY_DELIM)
    return definition.define_rule(time_keys, _time_based_partitioner_needs_time)


def _file_keys() -> list[ConfigKey]:
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            FORMAT_CLASS, Type.CLASS, REQUIRED, "Format of the files that hold the record values.",
            None, high, _CONNECTOR, PluginKind.FORMAT,
        ),
        ConfigKey(
            FLUSH_SIZE, Type.INT, REQUIRED,
            "Number of records of one topic-partition, over all its open files, after which its files are"
            " complete; with files.per.partition=compact the number of records in each file.",
            None, high, _CONNECTOR,
        ),
        ConfigKey(
            ROTATE_INTERVAL_MS, Type.LONG, -1,
            "Span of record time in milliseconds after which the files of a topic-partition are complete:"
            " measured from the first record in them by timestamp.extractor. Only time based partitioners"
            " use it; -1 is off.",
            None, high, _CONNECTOR,
        ),
        ConfigKey(
            ROTATE_SCHEDULE_INTERVAL_MS, Type.LONG, -1,
            "Wall-clock period in milliseconds, counted from local midnight in `timezone`, after which"
            " files are complete. A run applies it at its end: when a period has passed since the last run,"
            " files that are not full are published even with flush.on.end=false. -1 is off.",
            None, medium, _CONNECTOR,
        ),
        ConfigKey(
            ROTATE_ON_PARTITION_CHANGE, Type.BOOLEAN, True,
            "Whether a record that belongs in another directory than the one before it completes the files"
            " of its topic-partition. Only with rotate.interval.ms and a time based partitioner.",
            None, low, _CONNECTOR,
        ),
        ConfigKey(
            MAX_OPEN_FILES, Type.INT, -1,
            "Number of directories of one topic-partition that may have an open file; one more completes"
            " the files. -1 is no limit: open files beyond the memory budget spill to disk.",
            None, low, _CONNECTOR,
        ),
        ConfigKey(
            FILES_PER_PARTITION, Type.STRING, CLASSIC,
            "`classic`: all open files of a topic-partition end together, as Confluent's do. `compact`: each"
            " directory has its own files, which end only at flush.size records or at the end of the run."
            " So late records and alternating schemas do not cause small files. flush.size then counts"
            " the records of a file. It needs flush.on.end=true.",
            ValidString(CLASSIC, COMPACT), medium, _CONNECTOR,
        ),
        ConfigKey(
            SCHEMA_COMPATIBILITY, Type.STRING, "NONE",
            "How records whose schema differs from that of the open file are written: `NONE` completes the"
            " file; `BACKWARD`, `FULL` and `FORWARD` project the record to the file's schema if that is"
            " possible.",
            CaseInsensitiveValidString("NONE", "BACKWARD", "FORWARD", "FULL"), high, _CONNECTOR,
        ),
        ConfigKey(
            OFFSET_PAD_WIDTH, Type.INT, 10,
            "Digits to which the start offset in a file name is padded with zeros.",
            Range(0), low, _CONNECTOR,
        ),
    ]  # fmt: skip


def _codec_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            AVRO_CODEC, Type.STRING, "null", "Compression of blocks in Avro files; `null` is none.",
            ValidString("null", "deflate", "snappy", "bzip2"), low, _CONNECTOR,
        ),
        ConfigKey(
            PARQUET_CODEC, Type.STRING, "snappy", "Compression of pages in Parquet files.",
            ValidString(*PARQUET_CODECS), low, _CONNECTOR,
        ),
        ConfigKey(
            ENHANCED_AVRO_SCHEMA_SUPPORT, Type.BOOLEAN, True,
            "Whether names and enum symbols that a converter kept in the schema's parameters are written as"
            " Avro's own.",
            None, low, _CONNECTOR,
        ),
        ConfigKey(
            CONNECT_META_DATA, Type.BOOLEAN, True,
            "Whether Avro and Parquet files carry Connect's own schema attributes (connect.name,"
            " connect.version, ...).",
            None, low, _CONNECTOR,
        ),
        ConfigKey(
            ALLOW_OPTIONAL_MAP_KEYS, Type.BOOLEAN, False,
            "Whether maps whose key is an optional string are written to Avro and Parquet as maps instead of"
            " lists of entries.",
            None, low, _CONNECTOR,
        ),
    ]  # fmt: skip


def _unused_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            SCHEMAS_CACHE, Type.INT, 1000, "Number of converted schemas that a live connector caches.",
            None, low, _CONNECTOR,
            ignored="A run converts each schema once and discards all of them at its end.",
        ),
        ConfigKey(
            RETRY_BACKOFF_MS, Type.LONG, 5000,
            "Pause of a live task before it reads records again after a failure.",
            None, low, _CONNECTOR,
            ignored="Requests are retried according to s3.part.retries and s3.retry.backoff.ms; a run that still"
            " fails is started again by its scheduler.",
        ),
        ConfigKey(
            SHUTDOWN_TIMEOUT_MS, Type.LONG, 3000, "Time that a live task gets for closing.",
            None, low, _CONNECTOR, ignored="A run ends when its work is done; there is nothing to shut down.",
        ),
    ]  # fmt: skip


def _storage_keys() -> list[ConfigKey]:
    high, medium = Importance.HIGH, Importance.MEDIUM
    return [
        ConfigKey(
            STORAGE_CLASS, Type.CLASS, REQUIRED, "Kind of store that the files are written to.",
            None, high, _STORAGE, PluginKind.STORAGE,
        ),
        ConfigKey(
            TOPICS_DIR, Type.STRING, "topics",
            "First directory of every file name; blank leaves it out. Without leading, trailing or doubled slashes,"
            " unless the store keeps such names, as Amazon S3 does. File systems ignore them.",
            None, high, _STORAGE,
        ),
        ConfigKey(
            DIRECTORY_DELIM, Type.STRING, "/", "Text between directories.",
            Lambda(_check_delimiter, "punctuation"), medium, _STORAGE,
        ),
        ConfigKey(
            FILE_DELIM, Type.STRING, "+",
            "Text between topic, Kafka partition and start offset in a file name.",
            Lambda(_check_delimiter, "punctuation"), medium, _STORAGE,
        ),
    ]  # fmt: skip


def _partitioner_keys() -> list[ConfigKey]:
    high, medium = Importance.HIGH, Importance.MEDIUM
    return [
        ConfigKey(
            PARTITIONER_CLASS, Type.CLASS, DEFAULT_PARTITIONER, "Class that determines the directory of a record.",
            None, high, _PARTITIONER, PluginKind.PARTITIONER,
            dependents=(PARTITION_FIELD_NAME, PARTITION_DURATION_MS, PATH_FORMAT, LOCALE, TIMEZONE),
        ),
        ConfigKey(
            PARTITION_FIELD_NAME, Type.LIST, "",
            "Fields of the value from which FieldPartitioner creates directories, in this order; dots lead into"
            " nested structures.",
            Lambda(_check_fields, "field names"), medium, _PARTITIONER, recommender=OfPartitioner(),
        ),
        ConfigKey(
            PARTITION_DURATION_MS, Type.LONG, -1,
            "Span of record time in milliseconds that one directory covers, for TimeBasedPartitioner.",
            None, medium, _PARTITIONER, recommender=OfPartitioner(),
        ),
        ConfigKey(
            PATH_FORMAT, Type.STRING, "",
            "Directory name as a Joda-Time pattern, for TimeBasedPartitioner, such as"
            " 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH.",
            None, medium, _PARTITIONER, recommender=OfPartitioner(),
        ),
        ConfigKey(
            LOCALE, Type.STRING, "", "Language of the names of months and days in directories, such as en-US.",
            None, medium, _PARTITIONER, recommender=OfPartitioner(),
        ),
        ConfigKey(
            TIMEZONE, Type.STRING, "",
            "Time zone of directories and of rotate.schedule.interval.ms: an id such as Europe/Zurich, or"
            " an offset such as +01:00.",
            Lambda(_check_timezone, "time zone id or [+-]hh:mm"), medium, _PARTITIONER,
            recommender=OfPartitioner(also_for=ROTATE_SCHEDULE_INTERVAL_MS),
        ),
        ConfigKey(
            TIMESTAMP_EXTRACTOR, Type.CLASS, "Wallclock",
            "Where the time of a record comes from: `Wallclock` is the time of the run, `Record` the"
            " record's timestamp, `RecordField` the field timestamp.field of the value.",
            None, medium, _PARTITIONER, PluginKind.TIMESTAMP_EXTRACTOR,
        ),
        ConfigKey(
            TIMESTAMP_FIELD, Type.STRING, "timestamp",
            "Field that RecordField reads; dots lead into nested structures.",
            NonEmptyString(), medium, _PARTITIONER,
        ),
        ConfigKey(
            SCHEMA_AFFIX, Type.STRING, "NONE",
            "Whether the name of the value's schema is an additional directory, `schema_name=<name>`:"
            " `PREFIX` puts it before the partitioner's directories, `SUFFIX` after them.",
            EnumString("none", "prefix", "suffix"), Importance.LOW, _PARTITIONER,
        ),
    ]  # fmt: skip


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


def _schedule_needs_timezone(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[ROTATE_SCHEDULE_INTERVAL_MS] > 0 and not parsed[TIMEZONE]:
        yield Problem(
            TIMEZONE,
            f"{TIMEZONE} configuration must be set when using {ROTATE_SCHEDULE_INTERVAL_MS}",
            f"Set {TIMEZONE}, for example to UTC.",
        )


def _compact_leaves_nothing(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[FILES_PER_PARTITION] == COMPACT and parsed.get(FLUSH_ON_END) is False:
        yield Problem(
            FILES_PER_PARTITION,
            f"{FILES_PER_PARTITION}={COMPACT} collects records of all offsets in the files of each directory, so"
            f" none can be left for the next run, as {FLUSH_ON_END}=false requires",
            f"Set {FLUSH_ON_END}=true, or {FILES_PER_PARTITION}={CLASSIC}.",
        )


def _field_partitioner_needs_fields(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    path = resolve(PluginKind.PARTITIONER, parsed[PARTITIONER_CLASS]).path
    if path == f"{PARTITIONERS}:FieldPartitioner" and not parsed[PARTITION_FIELD_NAME]:
        yield Problem(
            PARTITION_FIELD_NAME,
            f"{PARTITION_FIELD_NAME} is empty, but FieldPartitioner creates directories from the fields in it.",
            f"Set {PARTITION_FIELD_NAME} to a comma separated list of fields of the value.",
        )


def _time_based_partitioner_needs_time(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Source: TimeBasedPartitioner.configure; Daily and Hourly have a fixed path format and duration."""
    path = resolve(PluginKind.PARTITIONER, parsed[PARTITIONER_CLASS]).path
    if not is_time_based(parsed[PARTITIONER_CLASS]):
        return
    if path == f"{PARTITIONERS}:TimeBasedPartitioner":
        if parsed[PARTITION_DURATION_MS] <= 0:
            # Confluent accepts 0 and divides by it at the first record.
            why = "Partition duration needs to be a positive."
            yield _wrong(PARTITION_DURATION_MS, parsed, why, "3600000 for hourly directories")
        if parsed[PATH_FORMAT] in ("", parsed[DIRECTORY_DELIM]):
            example = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
            yield _wrong(PATH_FORMAT, parsed, "Path format cannot be empty.", example)
    if not parsed[LOCALE]:
        yield _wrong(LOCALE, parsed, "Locale cannot be empty.", "en-US")
    if not parsed[TIMEZONE]:
        yield _wrong(TIMEZONE, parsed, "Timezone cannot be empty.", "UTC")


def _wrong(key: str, parsed: Mapping[str, Any], why: str, example: str) -> Problem:
    return Problem(key, str(invalid(key, parsed[key], why)), f"Set {key}, for example to {example}.")
