"""Definitions of the file source's keys: those of Kafka Connect's FileStreamSource, and many of ours.

Source: org.apache.kafka.connect.file.FileStreamSourceConnector (Kafka 4.3) for `file`, `topic` and `batch.size`: names,
types, defaults, validators, importance. Every other key is optional; without them lines come as they always did.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config_validators import Lambda, NonEmptyString, OneOf, Range
from airflow_connect.api.config_values import invalid
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.java_patterns.compiled import compile_java_pattern
from airflow_connect.api.java_patterns.nodes import PatternError
from airflow_connect.connectors.file_source.content import AUTO, GZIP, NONE, ZSTD
from airflow_connect.connectors.file_source.lines import LineFormat
from airflow_connect.connectors.s3 import keys as s3_keys

FILE, TOPIC, BATCH_SIZE = "file", "topic", "batch.size"
DEFAULT_BATCH_SIZE = 2000
FILES, FILES_EXCLUDE, FILES_RECURSIVE = "files", "files.exclude", "files.recursive"
FILES_REGEX = "files.regex"
SPLIT_BYTES = "split.bytes"
FILE_CHANGED, MISSING_FILES = "file.changed", "offsets.of.missing.files"
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
"""Keys of the S3 sink that say how a bucket is reached."""

_WHICH, _CHANGES, _LINES, _PATTERN, _STORES = "Files", "Changes of files", "Lines", "Records", "Places"


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
            "The file: a path, or a URL (file://, s3://, hdfs://). Taken as it is, without wildcards. Neither this nor"
            " `files`: the standard input of the command line.",
            None, high, _WHICH,
        ),
        ConfigKey(TOPIC, Type.STRING, REQUIRED, "Topic that the lines go to.", NonEmptyString(), high, _WHICH),
        ConfigKey(
            BATCH_SIZE, Type.INT, DEFAULT_BATCH_SIZE,
            "Largest number of lines that a task hands over at once, which is a transaction with"
            " transaction.boundary=poll. Where lines go in columns (see docs/connectors/file-source.md) the default and"
            " more do not limit: then it is what the task has read at once, up to 16 MiB.",
            Range(1), low, _WHICH,
        ),
    ]  # fmt: skip


def _which_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            FILES, Type.LIST, "",
            "Instead of `file`, several: paths or URLs, comma separated. `*` and `?` and `[...]` stand for parts of one"
            " name, `**` for any number of directories; what ends with a slash is a directory with all its files. Each"
            " run looks anew which files there are.",
            None, medium, _WHICH,
        ),
        ConfigKey(
            FILES_EXCLUDE, Type.STRING, "",
            "Java regular expression; files in whose path it is found are left out.",
            Lambda(_check_regex, "regular expression"), low, _WHICH,
        ),
        ConfigKey(
            FILES_REGEX, Type.STRING, "",
            "Java regular expression that the whole path of a file has to match, of those that `files` names: for what"
            " wildcards cannot say.",
            Lambda(_check_regex, "regular expression"), low, _WHICH,
        ),
        ConfigKey(
            FILES_RECURSIVE, Type.BOOLEAN, True, "Whether a directory in `files` means those below it too.",
            None, low, _WHICH,
        ),
        ConfigKey(
            SPLIT_BYTES, Type.LONG, 0,
            "Size in bytes of the ranges that a larger file is divided into at ends of lines, for several tasks to read"
            " at once. The order of its lines in the topic is then kept within each range only. 0: files are whole.",
            Range(0), medium, _WHICH,
        ),
        ConfigKey(
            RECORD_KEY, Type.STRING, "none",
            "Key of the records: `none`, as in Kafka Connect, or `file`: the file's name, so that all lines of a file"
            " are in order in one partition.",
            OneOf("none", "file"), low, _WHICH,
        ),
    ]  # fmt: skip


def _change_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            FILE_CHANGED, Type.STRING, "read",
            "A file that does not hold any more what was read of it, and is nowhere under another name: `read` reads it"
            " from its beginning, `fail` fails the run.",
            OneOf("read", "fail"), low, _CHANGES,
        ),
        ConfigKey(
            MISSING_FILES, Type.STRING, "keep",
            "Offsets of files that are gone: `keep`, so that a file that comes back is not read twice, or `delete`.",
            OneOf("keep", "delete"), low, _CHANGES,
        ),
        ConfigKey(
            TAKEOVER, Type.STRING, "bytes",
            "What the position means that a Kafka Connect worker has left, where the text before it is not only ASCII:"
            " `bytes` is the earliest line that it can mean: some may come again, none are lost; `characters` is"
            " exact if the worker has read the file from its beginning without a restart, and else may lose lines.",
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
            " the line feed alone.",
            OneOf("any", "lf"), low, _LINES,
        ),
        ConfigKey(
            LAST_LINE, Type.STRING, "wait",
            "The end of a file without end of line: `wait` leaves it for a run that finds the rest, as Kafka Connect"
            " does; `read` takes it as a line. That of a compressed file is always read.",
            OneOf("wait", "read"), medium, _LINES,
        ),
        ConfigKey(
            COMPRESSION, Type.STRING, AUTO,
            "How files are compressed; `auto` looks at the end of their names (.gz, .zst).",
            OneOf(AUTO, NONE, GZIP, ZSTD), low, _LINES,
        ),
    ]  # fmt: skip


def _bad_line_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            INVALID_TEXT, Type.STRING, "replace",
            "Bytes that are no text in file.encoding: `replace` puts U+FFFD in their place, as Kafka Connect does;"
            " `fail`; or `dead_letter`: the line goes to dead.letter.topic.",
            OneOf("replace", "fail", "dead_letter"), low, _LINES,
        ),
        ConfigKey(
            LINE_MAX_BYTES, Type.INT, 1048576, "Longest line in bytes; what bounds the memory of a task.",
            Range(1, 1 << 28), low, _LINES,
        ),
        ConfigKey(
            LINE_TOO_LONG, Type.STRING, "fail",
            "Longer lines: `fail`, `truncate`, or `dead_letter`: the beginning of the line goes to dead.letter.topic.",
            OneOf("fail", "truncate", "dead_letter"), low, _LINES,
        ),
        ConfigKey(
            DEAD_LETTER_TOPIC, Type.STRING, "",
            "Topic of lines that cannot be read as configured, with the reason and the place in headers; in the same"
            " transactions as all others.",
            None, medium, _LINES,
        ),
    ]  # fmt: skip


def _multiline_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            MULTILINE_PATTERN, Type.STRING, "",
            "Java regular expression for events of several lines, such as stack traces: lines in which it is found"
            " belong to a neighbour. Blank: every line is an event.",
            Lambda(_check_regex, "regular expression"), medium, _LINES,
        ),
        ConfigKey(
            MULTILINE_NEGATE, Type.BOOLEAN, False,
            "Whether instead the lines in which multiline.pattern is not found belong to a neighbour.",
            None, low, _LINES,
        ),
        ConfigKey(
            MULTILINE_WHAT, Type.STRING, "previous", "Which neighbour: the `previous` line or the `next`.",
            OneOf("previous", "next"), low, _LINES,
        ),
        ConfigKey(
            MULTILINE_MAX_LINES, Type.INT, 500, "Most lines of an event; one that is longer is divided.",
            Range(1), low, _LINES,
        ),
        ConfigKey(
            MULTILINE_MAX_BYTES, Type.INT, 1048576, "Most bytes of an event; one that is longer is divided.",
            Range(1, 1 << 28), low, _LINES,
        ),
    ]  # fmt: skip


def _pattern_keys() -> list[ConfigKey]:
    medium, low = Importance.MEDIUM, Importance.LOW
    return [
        ConfigKey(
            REGEX, Type.STRING, "",
            "Java regular expression that is searched in each line; its named groups, `(?<name>...)`, are the fields of"
            " the record. Python's `(?P<name>...)` and underscores in names are allowed too.",
            Lambda(_check_regex, "regular expression"), medium, _PATTERN,
        ),
        ConfigKey(
            GROK, Type.STRING, "",
            "The same as a grok pattern: `%{NAME:field}` or `%{NAME:field:type}`, for example `%{COMMONAPACHELOG}`.",
            None, medium, _PATTERN,
        ),
        ConfigKey(
            GROK_DEFINITIONS, Type.STRING, "",
            "Grok patterns of your own, one `NAME expression` in a line; they go before those that come with it.",
            None, low, _PATTERN,
        ),
        ConfigKey(
            PATTERN_TYPES, Type.LIST, "",
            "Types of fields as name:type: string, int32, int64 (int, long), float32, float64 (float, double), boolean."
            " Fields without one are strings.",
            None, medium, _PATTERN,
        ),
        ConfigKey(
            PATTERN_MISMATCH, Type.STRING, "fail",
            "Lines in which the pattern is not found, or a field is not of its type: `fail`; `dead_letter`: the line"
            " goes to dead.letter.topic; `skip`; `raw`: the record has a field `message` with the line, and no other.",
            OneOf("fail", "dead_letter", "skip", "raw"), medium, _PATTERN,
        ),
        ConfigKey(
            PATTERN_SCHEMA, Type.STRING, "", "Name of the schema of the records; blank: it has none.",
            None, low, _PATTERN,
        ),
    ]  # fmt: skip


def _place_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            HADOOP_CONF_DIR, Type.STRING, "",
            "Folder with core-site.xml and hdfs-site.xml for files in HDFS; blank: what HADOOP_CONF_DIR says.",
            None, Importance.LOW, _STORES,
        ),
    ]  # fmt: skip


def _check_regex(name: str, value: Any) -> None:
    if not value:
        return
    try:
        compile_java_pattern(value, python_names=True)
    except PatternError as error:
        raise invalid(name, value, f"It is no regular expression: {error}") from error


def _check_encoding(name: str, value: Any) -> None:
    if value is None:
        raise invalid(name, None, "entry must be non null")
    try:
        LineFormat.of(value)
    except ConfigError as error:
        raise invalid(name, value, error.message) from error
