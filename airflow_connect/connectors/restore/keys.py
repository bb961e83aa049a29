"""The keys of the restore sources: those of Confluent's S3 source, and ours.

Source: the definition that Confluent's S3 source publishes, for names, types and defaults. Documentation is ours.
Keys that only matter to files that are not whole records are refused, or have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, KeyFamily
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda, NonEmptyString, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.connectors.files.s3.keys import S3StoreKeys
from airflow_connect.connectors.restore.options import (
    AVRO,
    FORMATS,
    ORC,
    PARQUET,
)
from airflow_connect.connectors.restore.value_keys import ValueKeys
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError
from airflow_connect.layout.names.escaping import check_delimiter
from airflow_connect.layout.names.object_names import is_legal_topic
from airflow_connect.registry.settings import families_to_reach
from airflow_connect.stores.local.store import local_path

RESTORE_BACKUP, GENERIC, FULL_RECORD = "RESTORE_BACKUP", "GENERIC", "RESTORE_BACKUP_FULL_RECORD"
EMPTY, RESUME, ANY = "empty", "resume", "any"
TIMESTAMP, RETENTION = "timestamp", "retention"
KEY, HEADERS, HEADER_TYPES, ORDER = "key", "headers", "header_types", "order"
LOSSES = (TIMESTAMP, RETENTION, KEY, HEADERS, HEADER_TYPES, ORDER)
TARGET, TRANSFORMS = "target.", "transforms"
"""Before each setting of the registry of the restored topics, with the names that converters have."""
WHOLE_FORMATS = (AVRO, PARQUET, ORC)
"""Formats that can hold whole records."""
_LISTED_FORMATS = ", ".join(classes[0] for classes in FORMATS.values())
DEFAULT_FILE_NAME = r"(.+)\+(\d+)\+.+$"
_OFFSET = re.compile(r"(.+):(\d{1,10}):(\d{1,18})", re.ASCII)
_BACKUP, _TARGET, _ERRORS = KeyGroup("Backup"), KeyGroup("Target"), KeyGroup("Errors")
_S3, _HDFS, _LOCAL = KeyGroup("S3"), KeyGroup("HDFS"), KeyGroup("Local")
_LISTED_ONCE = "A run lists the backup once, when it starts. Schedule runs instead."
_ANY_DIRECTORY = "Files are found in any directory below the topic's, whatever the sink's partitioner was."

S3_KEYS = (
    S3StoreKeys.region, S3StoreKeys.endpoint, S3StoreKeys.wan_mode, S3StoreKeys.part_retries,
    S3StoreKeys.s3_retry_backoff_ms, S3StoreKeys.sse_name, S3StoreKeys.sse_customer_key, S3StoreKeys.provider,
    S3StoreKeys.role_arn, S3StoreKeys.role_session_name, S3StoreKeys.role_external_id, S3StoreKeys.access_key_id,
    S3StoreKeys.secret_access_key, S3StoreKeys.proxy_url, S3StoreKeys.proxy_password,
)  # fmt: skip
"""Keys of the S3 sink that the S3 source has, too."""


def format_name(class_name: Any) -> str:
    """The format of a class, by its name without the package, which differs between connectors; "": none."""
    short = str(class_name or "").rpartition(".")[2]
    return next((name for name, classes in FORMATS.items() if short in classes), "")


def renames(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """`topic.rename` as a map."""
    return {old.strip(): new.strip() for old, _, new in (pair.partition(":") for pair in pairs)}


def _check_format(name: str, value: Any) -> None:
    if not format_name(value):
        raise invalid(name, value, f"Formats are {_LISTED_FORMATS}")


def _check_mode(name: str, value: Any) -> None:
    if value == FULL_RECORD:
        raise invalid(
            name,
            value,
            "Files of Confluent's mode=BACKUP_FULL_RECORD are not supported; files that this package's sinks wrote"
            f" with store.kafka.records=true are restored with {RESTORE_BACKUP}",
        )
    if value not in (RESTORE_BACKUP, GENERIC):
        raise invalid(name, value, f"String must be one of: {RESTORE_BACKUP}, {GENERIC}")


def _check_regex(name: str, value: Any) -> None:
    try:
        compile_java_pattern(value or "")
    except PatternError as error:
        raise invalid(name, value, f"It is not a valid regular expression: {error}") from error


def _check_timestamp(name: str, value: Any) -> None:
    try:
        parse_timestamp_ms(value or "0")
    except ValueError as error:
        raise invalid(name, value, str(error)) from error


def offsets_by_partition(texts: tuple[str, ...]) -> Mapping[TopicPartition, int]:
    """`restore.from.offsets` and `restore.until.offsets` as a map.

    Raises:
        ValueError: one has another form, or a partition has two offsets; the message is a sentence without its end.
    """
    found: dict[TopicPartition, int] = {}
    for text in texts:
        parts = _OFFSET.fullmatch(text.strip())
        if parts is None or not is_legal_topic(parts[1]):
            raise ValueError(f"{text} is not topic:partition:offset, such as orders:0:1200")
        tp = TopicPartition(parts[1], int(parts[2]))
        if tp in found:
            raise ValueError(f"{tp} has two offsets")
        found[tp] = int(parts[3])
    return found


def _check_offsets(name: str, value: Any) -> None:
    try:
        offsets_by_partition(tuple(value or ()))
    except ValueError as error:
        raise invalid(name, value, str(error)) from error


def _check_renames(name: str, value: Any) -> None:
    seen: dict[str, str] = {}
    for pair in value or ():
        old, colon, new = (part.strip() for part in pair.partition(":"))
        if not colon or not is_legal_topic(old) or not is_legal_topic(new):
            raise invalid(name, value, "Write pairs of topics as old:new, comma separated")
        if old in seen:
            raise invalid(name, value, f"Topic {old} has two new names")
        if new in seen.values():
            raise invalid(name, value, f"Two topics would become {new}")
        seen[old] = new


def _check_losses(name: str, value: Any) -> None:
    for loss in value or ():
        if loss not in LOSSES:
            raise invalid(name, value, f"Losses that can be accepted are {', '.join(LOSSES)}")


def _check_delimiter(name: str, value: Any) -> None:
    try:
        check_delimiter(value or "", name)
    except ConfigError as error:
        raise invalid(name, value, "Value must be punctuation without letters, digits or %") from error


def _check_local(name: str, value: Any) -> None:
    try:
        local_path(str(value or ""), name)
    except ConfigError as error:
        raise invalid(name, value, error.suggestion.rstrip(".")) from error


def _check_hdfs(name: str, value: Any) -> None:
    if not str(value or "").startswith("hdfs://") or len(str(value)) <= len("hdfs://"):
        raise invalid(name, value, "Write hdfs://host:port or hdfs://<name service>")


def only(default: Any, instead: str) -> Callable[[str, Any], None]:
    """A check that refuses every value but the default; `instead`: a sentence without its full stop."""

    def check(name: str, value: Any) -> None:
        if (value or None) != (default or None):
            raise invalid(name, value, instead)

    return check


class RestoreKeys(ValueKeys):
    """Keys of every restore source."""

    mode = _BACKUP.high.text(
        "mode",
        RESTORE_BACKUP,
        "RESTORE_BACKUP restores files of sinks, to the topics and partitions in their names. GENERIC imports files"
        " with any names to the topics of topic.regex.list.",
        Lambda(_check_mode, f"{RESTORE_BACKUP}, {GENERIC}"),
    )
    file_format = _BACKUP.high.text(
        "format.class",
        REQUIRED,
        f"Format of the files, as in the sink: {_LISTED_FORMATS}; the package does not matter. Whole records are in"
        " AvroFormat, ParquetFormat or OrcFormat.",
        Lambda(_check_format, _LISTED_FORMATS),
    ).to(format_name)
    topics_dir = _BACKUP.high.text(
        "topics.dir", "topics", "Directory of the sink, topics.dir of its configuration; blank: none."
    ).or_blank()
    file_delim = _BACKUP.medium.text(
        "file.delim",
        "+",
        "What separates the parts of a file's name, as in the sink.",
        Lambda(_check_delimiter, "punctuation"),
    )
    topics = _BACKUP.high.words(
        "topics", "", "Topics of the backup to restore, comma separated. Blank, and no topics.regex: all of them."
    )
    topics_regex = _BACKUP.high.text(
        "topics.regex",
        "",
        "Java regular expression that must match the whole name of a topic of the backup.",
        Lambda(_check_regex, "regular expression"),
    ).or_blank()
    until_ms = _BACKUP.medium.text(
        "restore.until.timestamp",
        "",
        "Each partition is restored up to its first record that has this timestamp or a later one, which is not"
        " restored: epoch milliseconds, or ISO 8601 with a zone. Blank: to the end of the backup.",
        Lambda(_check_timestamp, "epoch milliseconds or ISO 8601"),
    ).to(lambda text: parse_timestamp_ms(text) if text else None)
    until_offsets = _BACKUP.medium.words(
        "restore.until.offsets",
        "",
        "Where partitions end, as topic:partition:offset of the backup, comma separated: the first record that is not"
        " restored. Other partitions are restored to their ends.",
        Lambda(_check_offsets, "topic:partition:offset"),
    ).to(offsets_by_partition)
    from_ms = _BACKUP.medium.text(
        "restore.from.timestamp",
        "",
        "Each partition is restored from its first record on that has this timestamp or a later one. It counts until"
        " something of the partition is restored. Blank: from the beginning of the backup.",
        Lambda(_check_timestamp, "epoch milliseconds or ISO 8601"),
    ).to(lambda text: parse_timestamp_ms(text) if text else None)
    from_offsets = _BACKUP.medium.words(
        "restore.from.offsets",
        "",
        "Where partitions begin, as topic:partition:offset of the backup, comma separated. It counts until something of"
        " the partition is restored. Other partitions are restored from their beginnings.",
        Lambda(_check_offsets, "topic:partition:offset"),
    ).to(offsets_by_partition)
    rename = _TARGET.high.words(
        "topic.rename",
        "",
        "New names of topics, as old:new, comma separated. Topics that are not named keep their names.",
        Lambda(_check_renames, "old:new"),
    ).to(renames)
    must_be = _TARGET.high.text(
        "target.must_be",
        EMPTY,
        "What a topic may hold before records are restored to it. `empty`: nothing, or what this connector has"
        " restored. `resume`: only what this connector has restored, so that a run never begins anew. `any`:"
        " anything; records are appended.",
        ValidString(EMPTY, RESUME, ANY),
    )
    replication = _TARGET.medium.short(
        "target.replication.factor",
        -1,
        "Replication factor of topics that are created; -1: that of the original, or the broker's default if no"
        " document of the backup has it.",
    )
    lifts = _TARGET.medium.boolean(
        "target.retention.lifted",
        False,
        "Whether nothing deletes records in topics that exist while they are restored: retention.ms and retention.bytes"
        " become -1, and cleanup.policy becomes delete. What they were is remembered, and `airflow-connect restore"
        " settings` sets it again.",
    )
    registry_urls = _TARGET.medium.words(
        "target.schema.registry.url",
        [],
        "Base URLs of the Schema Registry that readers of the restored topics use. The run is then refused if it does"
        " not have the schemas of the backup under their ids. Other settings of the registry have the same prefix:"
        " target.basic.auth.user.info.",
    )
    accepted = _TARGET.medium.words(
        "accept.loss",
        "",
        "Losses that do not refuse the run, comma separated. `timestamp`: records whose timestamp cannot be written"
        " get another one. `retention`: Kafka deletes restored records soon, because they are older than the topic"
        " keeps them. For files of values, what they do not have: `timestamp`, `key`, `headers`, `header_types` (values"
        " of headers become texts) and `order` (files of several directories, and files that `split.bytes` divides).",
        Lambda(_check_losses, ", ".join(LOSSES)),
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Its own keys, those of the registry, and families without effect."""
        super().define(definition)
        definition.define_family(*families_to_reach(TARGET, "of the restored topics"))
        reason = "No licence is needed."
        definition.define_family(KeyFamily("confluent.", "Licence of Confluent's connector.", reason))


class S3SourceKeys(TypedConfig):
    """Keys of Confluent's S3 source about the bucket, and those without a meaning here."""

    bucket = _S3.high.text("s3.bucket.name", REQUIRED, "Bucket that holds the backup.", NonEmptyString())
    path_style = _S3.medium.boolean(
        "s3.path.style.access", True, "Whether the bucket is the first part of the path (true) or of the host name."
    )
    sink_path_style = _S3.low.boolean(
        "s3.path.style.access.enabled", True, "The S3 sink's name of s3.path.style.access: false in either is false."
    )
    proxy_user = _S3.low.text("s3.proxy.username", None, "User name at the proxy.").or_blank()
    _directory_delim = _BACKUP.medium.text(
        "directory.delim",
        "/",
        "What separates directories in keys. Only a slash is supported.",
        Lambda(only("/", "Only objects whose directories are separated by a slash can be restored"), "/"),
    )
    _file_name = _BACKUP.low.text(
        "filename.regex",
        DEFAULT_FILE_NAME,
        "How topic and partition are found in a name. Not supported: see file.delim.",
        Lambda(only(DEFAULT_FILE_NAME, "Names are those of the sink; if its file.delim is not +, set file.delim"), ""),
    )
    _folders = _BACKUP.low.words("folders", "", "Internal key of Confluent's connector.", ignored=_LISTED_ONCE)
    _schema_cache = _BACKUP.low.integer(
        "schema.cache.size", 50, "Schemas kept.", ignored="Each file has its own schema."
    )
    _batch = _BACKUP.low.integer(
        "record.batch.max.size",
        200,
        "Records for each poll.",
        ignored="A batch is what is read at once, and small batches are joined to a transaction.",
    )
    _poll_ms = _BACKUP.low.long("s3.poll.interval.ms", 60000, "Time between two listings.", ignored=_LISTED_ONCE)
    _error_prefix = _ERRORS.low.text(
        "parse.error.topic.prefix",
        "error",
        "Topic of records about errors.",
        ignored="Files that are left out are in the run's report.",
    )
    _partitioner = _BACKUP.low.text("partitioner.class", None, "The sink's partitioner.", ignored=_ANY_DIRECTORY)
    _field = _BACKUP.low.words("partition.field.name", "", "Fields of its directories.", ignored=_ANY_DIRECTORY)
    _path = _BACKUP.low.text("path.format", "", "Pattern of its directories.", ignored=_ANY_DIRECTORY)
    _task_batch = _BACKUP.low.integer(
        "task.batch.size", 10, "Files for a task.", ignored="Files are divided among tasks when a run starts."
    )
    _input_format = _BACKUP.low.text(
        "input.data.format",
        "",
        "Key of Confluent Cloud. Not supported.",
        Lambda(only("", "Set format.class instead, to the format of the sink"), ""),
    )
    _output_format = _BACKUP.low.text(
        "output.data.format",
        "",
        "Key of Confluent Cloud. Not supported.",
        Lambda(only("", "Set value.converter, which writes values to Kafka; whole records keep their bytes"), ""),
    )
    _csfle = _BACKUP.low.boolean("csfle.enabled", False, "Encryption of fields.", ignored="Fields are not decrypted.")
    _expect_continue = _S3.low.boolean(
        "s3.http.send.expect.continue", True, "Whether uploads wait.", ignored="Nothing is uploaded."
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Its own keys, and those of the S3 sink that describe how to reach a bucket."""
        super().define(definition)
        definition.define(*(key.key for key in S3_KEYS))


class HdfsSourceKeys(TypedConfig):
    """Where in HDFS the backup is."""

    url = _HDFS.high.text(
        "store.url",
        REQUIRED,
        "Address of the file system, as in the HDFS sink; a path after the address comes before topics.dir.",
        Lambda(_check_hdfs, "hdfs://host:port"),
    )
    conf_dir = _HDFS.high.text(
        "hadoop.conf.dir", "", "Folder with core-site.xml and hdfs-site.xml; blank: the folder in HADOOP_CONF_DIR."
    ).or_blank()


class LocalSourceKeys(TypedConfig):
    """Which directory the backup is in."""

    url = _LOCAL.high.text(
        "store.url",
        REQUIRED,
        "Directory of the sink, such as file:///data/out. The driver and all executors must see it under this path.",
        Lambda(_check_local, "file:///directory"),
    )
