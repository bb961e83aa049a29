"""Definitions of the file source's keys: those of Kafka Connect's FileStreamSource, and many of ours.

Source: org.apache.kafka.connect.file.FileStreamSourceConnector (Kafka 4.3) for `file`, `topic` and `batch.size`: names,
types, defaults, validators, importance. Every other key is optional; without them lines are read as Kafka Connect reads
them.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import Lambda, NonEmptyString, OneOf, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.file_source.read.content import AUTO, GZIP, NONE, ZSTD
from airflow_connect.connectors.file_source.read.lines import LineFormat
from airflow_connect.connectors.s3 import keys as s3_keys
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

FILE, TOPIC, BATCH_SIZE = "file", "topic", "batch.size"
DEFAULT_BATCH_SIZE = 2000
FILE_ROTATED = "file.rotated"
FILES, FILES_EXCLUDE, FILES_RECURSIVE = "files", "files.exclude", "files.recursive"
FILES_REGEX = "files.regex"
SPLIT_BYTES = "split.bytes"
FILE_CHANGED, FILE_REPLACED = "file.changed", "file.replaced"
MISSING_FILES, MISSING_DAYS = "offsets.of.missing.files", "offsets.of.missing.files.days"
TAKEOVER = "offset.takeover"
COMPRESSION = "compression"
ENCODING, LINE_TERMINATOR, LAST_LINE = "file.encoding", "line.terminator", "last.line"
INVALID_TEXT, LINE_MAX_BYTES, LINE_TOO_LONG = "invalid.text", "line.max.bytes", "line.too.long"
DEAD_LETTER_TOPIC = "dead.letter.topic"
MULTILINE_PATTERN, MULTILINE_NEGATE, MULTILINE_WHAT = "multiline.pattern", "multiline.negate", "multiline.what"
MULTILINE_MAX_LINES, MULTILINE_MAX_BYTES = "multiline.max.lines", "multiline.max.bytes"
REGEX, GROK, GROK_DEFINITIONS = "pattern.regex", "pattern.grok", "pattern.grok.definitions"
PATTERN_TYPES, PATTERN_MISMATCH, PATTERN_SCHEMA = "pattern.types", "pattern.mismatch", "pattern.schema.name"
RECORD_KEY = "record.key"
HADOOP_CONF_DIR = "hadoop.conf.dir"
S3_KEYS = (
    s3_keys.REGION, s3_keys.STORE_URL, s3_keys.PATH_STYLE, s3_keys.CREDENTIALS_CLASS, s3_keys.ROLE_ARN,
    s3_keys.ROLE_SESSION_NAME, s3_keys.ROLE_EXTERNAL_ID, s3_keys.ACCESS_KEY_ID, s3_keys.SECRET_ACCESS_KEY,
    s3_keys.SSE_CUSTOMER_KEY, s3_keys.PART_RETRIES, s3_keys.RETRY_BACKOFF_MS, s3_keys.PROXY_URL, s3_keys.PROXY_USER,
    s3_keys.PROXY_PASSWORD,
)  # fmt: skip
"""Keys of the S3 sink that describe how to reach a bucket."""

_WHICH, _CHANGES, _LINES, _PATTERN, _STORES = "Files", "Changes of files", "Lines", "Records", "Stores"


def file_source_keys() -> ConfigDef:
    """Every key of the file source."""
    s3 = s3_keys.s3_keys().keys
    return (
        ConfigDef()
        .define(*_connect_keys(), *_which_keys(), *_change_keys(), *_line_keys(), *_bad_line_keys())
        .define(*_multiline_keys(), *_pattern_keys(), *_place_keys(), *(s3[name] for name in S3_KEYS))
    )


def _connect_keys() -> list[ConfigKey]:
    high, low = Importance.HIGH, Importance.LOW
    return [
        ConfigKey(
            FILE, Type.STRING, None,
            "The file: a path, or a URL (file://, s3://, hdfs://). Taken literally, without wildcards. If neither this"
            " nor `files` is set, the command line's standard input is read.",
            None, high, _WHICH,
        ),
        ConfigKey(TOPIC, Type.STRING, REQUIRED, "Topic that the lines go to.", NonEmptyString(), high, _WHICH),
        ConfigKey(
            BATCH_SIZE, Type.INT, DEFAULT_BATCH_SIZE,
            "Largest number of lines that a task returns at once, which is one transaction with"
            f" transaction.boundary=poll. Where lines are processed in columns ({page_url('connectors/file-source')}),"
            " only values below the default limit a batch; otherwise a batch is what the task reads at once, up to 16"
            " MiB.",
            Range(1), low, _WHICH,
        ),
    ]  # fmt: skip


def _which_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            FILES, Type.LIST, "",
            "Several files instead of `file`: paths or URLs, comma separated. `*`, `?` and `[...]` match within one"
            " name, `**` matches any number of directories; a path that ends with a slash is a directory with all its"
            " files. Each run lists the files again.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            FILES_EXCLUDE, Type.STRING, "",
            "Java regular expression; files whose path contains a match are skipped.",
            Lambda(_check_regex, "regular expression"), low, _WHICH,
        ),
        ConfigKey(
            FILES_REGEX, Type.STRING, "",
            "Java regular expression that must match the whole path of a file selected by `files`, for selections that"
            " wildcards cannot express.",
            Lambda(_check_regex, "regular expression"), low, _WHICH,
        ),
        ConfigKey(
            FILE_ROTATED, Type.STRING, "",
            "Java regular expression that must match the whole name, without the directory, of a rotated file of"
            " `file`, such as `app\\.\\d+\\.log`. Names that add a number or a date to the end, as app.log.1 does, need"
            " not match. Blank: of all other names, a file is read if its inode or content is that of the file that was"
            " read, and so are later ones with such names; if it is unclear, the run fails.",
            Lambda(_check_regex, "regular expression"), low, _WHICH,
        ),
        ConfigKey(
            FILES_RECURSIVE, Type.BOOLEAN, True, "Whether a directory in `files` includes its subdirectories.",
            None, low, _WHICH,
        ),
        ConfigKey(
            SPLIT_BYTES, Type.LONG, 0,
            "Size in bytes of the ranges into which larger files are split, at line ends, so that several tasks can"
            " read one file in parallel. The order of lines in the topic is then kept only within each range. 0: files"
            " are not split.",
            Range(0), medium, _WHICH,
        ),
        ConfigKey(
            RECORD_KEY, Type.STRING, "none",
            "Key of the records: `none`, as in Kafka Connect, or `file`, the file's name, which keeps all lines of a"
            " file in order in one partition.",
            OneOf("none", "file"), low, _WHICH,
        ),
    ]  # fmt: skip


def _change_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            FILE_CHANGED, Type.STRING, "read",
            "What happens to a file whose content no longer matches what was read from it, when the old content is not"
            " found under another name: `read` reads the file from its beginning, `fail` fails the run.",
            OneOf("read", "fail"), low, _CHANGES,
        ),
        ConfigKey(
            FILE_REPLACED, Type.STRING, "fail",
            "What happens if another file has taken the name of one that was read (its inode differs), begins with"
            " all that was read, and was modified since: it may be the same file, rewritten, or a new one. `fail`"
            " fails the run; `continue` reads on after the position, for files that rsync or an editor writes;"
            " `read` reads it from its beginning, also if only its time has changed. Likewise it decides whether a"
            " short new rotated file that repeats the beginning of `file` is a copy of it (`continue`: not read) or a"
            " log of its own (`read`). Not for S3 and HDFS, which have no inodes: there, reading goes on.",
            OneOf("fail", "continue", "read"), low, _CHANGES,
        ),
        ConfigKey(
            MISSING_FILES, Type.STRING, "keep",
            "Offsets of files that no longer exist: `keep`, so that a file that comes back is not read twice, or"
            " `delete`.",
            OneOf("keep", "delete"), low, _CHANGES,
        ),
        ConfigKey(
            MISSING_DAYS, Type.INT, 365,
            "Days after which the kept offset of a missing file is deleted, counted from the first run that missed it;"
            " the report names the file. 0: never.",
            Range(0), low, _CHANGES,
        ),
        ConfigKey(
            TAKEOVER, Type.STRING, "bytes",
            "How to interpret a position left by a Kafka Connect worker when the text before it is not pure ASCII:"
            " `bytes` takes the earliest line that it can mean, so lines may be repeated but none are lost;"
            " `characters` is exact if the worker read the file from its beginning without a restart, and may lose"
            " lines otherwise.",
            OneOf("bytes", "characters"), low, _CHANGES,
        ),
    ]  # fmt: skip


def _line_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(ENCODING, Type.STRING, "UTF-8", "Encoding of the text.", Lambda(_check_encoding, "a text encoding"),
                  medium, _LINES),
        ConfigKey(
            LINE_TERMINATOR, Type.STRING, "any",
            "What ends a line: `any` is a line feed, a carriage return, or both together, as in Kafka Connect; `lf` is"
            " the line feed only.",
            OneOf("any", "lf"), low, _LINES,
        ),
        ConfigKey(
            LAST_LINE, Type.STRING, "wait",
            "Text at the end of a file without a line terminator: `wait` leaves it for a later run that finds the"
            " rest, as Kafka Connect does; `read` treats it as a line. In a compressed file it is always read.",
            OneOf("wait", "read"), medium, _LINES,
        ),
        ConfigKey(
            COMPRESSION, Type.STRING, AUTO,
            "How files are compressed; `auto` decides by the file extension (.gz, .zst).",
            OneOf(AUTO, NONE, GZIP, ZSTD), low, _LINES,
        ),
    ]  # fmt: skip


def _bad_line_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            INVALID_TEXT, Type.STRING, "replace",
            "Bytes that are not valid in file.encoding: `replace` substitutes U+FFFD, as Kafka Connect does; `fail`"
            " fails the run; `dead_letter` sends the line to dead.letter.topic.",
            OneOf("replace", "fail", "dead_letter"), low, _LINES,
        ),
        ConfigKey(
            LINE_MAX_BYTES, Type.INT, 1048576, "Longest line in bytes; it bounds the memory of a task.",
            Range(1, 1 << 28), low, _LINES,
        ),
        ConfigKey(
            LINE_TOO_LONG, Type.STRING, "fail",
            "What happens to longer lines: `fail`, `truncate`, or `dead_letter`, which sends the beginning of the line"
            " to dead.letter.topic.",
            OneOf("fail", "truncate", "dead_letter"), low, _LINES,
        ),
        ConfigKey(
            DEAD_LETTER_TOPIC, Type.STRING, "",
            "Topic for lines that cannot be read as configured; headers hold the reason and the position. They are"
            " written in the same transactions as all other records.",
            None, medium, _LINES,
        ),
    ]  # fmt: skip


def _multiline_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            MULTILINE_PATTERN, Type.STRING, "",
            "Java regular expression for events of several lines, such as stack traces: lines that contain a match are"
            " joined to a neighbouring line. Blank: every line is an event.",
            Lambda(_check_regex, "regular expression"), medium, _LINES,
        ),
        ConfigKey(
            MULTILINE_NEGATE, Type.BOOLEAN, False,
            "Whether to join the lines without a match of multiline.pattern instead.",
            None, low, _LINES,
        ),
        ConfigKey(
            MULTILINE_WHAT, Type.STRING, "previous", "Which neighbour: the `previous` line or the `next`.",
            OneOf("previous", "next"), low, _LINES,
        ),
        ConfigKey(
            MULTILINE_MAX_LINES, Type.INT, 500, "Maximum number of lines of an event; a longer event is split.",
            Range(1), low, _LINES,
        ),
        ConfigKey(
            MULTILINE_MAX_BYTES, Type.INT, 1048576, "Maximum size of an event in bytes; a longer event is split.",
            Range(1, 1 << 28), low, _LINES,
        ),
    ]  # fmt: skip


def _pattern_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            REGEX, Type.STRING, "",
            "Java regular expression that is searched for in each line; its named groups, `(?<name>...)`, become the"
            " fields of the record. Python's `(?P<name>...)` and underscores in names are allowed too.",
            Lambda(_check_regex, "regular expression"), medium, _PATTERN,
        ),
        ConfigKey(
            GROK, Type.STRING, "",
            "A grok pattern instead of pattern.regex: `%{NAME:field}` or `%{NAME:field:type}`, for example"
            " `%{COMMONAPACHELOG}`.",
            None, medium, _PATTERN,
        ),
        ConfigKey(
            GROK_DEFINITIONS, Type.STRING, "",
            "Your own grok patterns, one `NAME expression` per line; they take precedence over the built-in ones.",
            None, low, _PATTERN,
        ),
        ConfigKey(
            PATTERN_TYPES, Type.LIST, "",
            "Types of fields as name:type: string, int32, int64 (int, long), float32, float64 (float, double), boolean."
            " Fields without a type are strings.",
            None, medium, _PATTERN,
        ),
        ConfigKey(
            PATTERN_MISMATCH, Type.STRING, "fail",
            "What happens to lines that do not match the pattern, or in which a field does not have its type: `fail`;"
            " `dead_letter` sends the line to dead.letter.topic; `skip`; `raw` makes a record with a single field"
            " `message` that holds the line.",
            OneOf("fail", "dead_letter", "skip", "raw"), medium, _PATTERN,
        ),
        ConfigKey(
            PATTERN_SCHEMA, Type.STRING, "", "Name of the schema of the records; blank: the schema has no name.",
            None, low, _PATTERN,
        ),
    ]  # fmt: skip


def _place_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            HADOOP_CONF_DIR, Type.STRING, "",
            "Folder with core-site.xml and hdfs-site.xml for files in HDFS; blank: the folder in HADOOP_CONF_DIR.",
            None, Importance.LOW, _STORES,
        ),
    ]  # fmt: skip


def _check_regex(name: str, value: Any) -> None:
    if not value:
        return
    try:
        compile_java_pattern(value, python_names=True)
    except PatternError as error:
        raise invalid(name, value, f"It is not a valid regular expression: {error}") from error


def _check_encoding(name: str, value: Any) -> None:
    if value is None:
        raise invalid(name, None, "entry must be non null")
    try:
        LineFormat.of(value)
    except ConfigError as error:
        raise invalid(name, value, error.message) from error
