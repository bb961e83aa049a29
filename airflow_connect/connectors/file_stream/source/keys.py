"""The keys of the file source: those of Kafka Connect's FileStreamSource, and many of ours.

Source: org.apache.kafka.connect.file.FileStreamSourceConnector (Kafka 4.3) for `file`, `topic` and `batch.size`: names,
types, defaults, validators, importance. Every other key is optional; without them lines are read as Kafka Connect reads
them.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.file_stream.source.parse.pattern_source import GROK, REGEX, TYPES
from airflow_connect.connectors.file_stream.source.read.content import AUTO, GZIP, NONE, ZSTD
from airflow_connect.connectors.file_stream.source.read.lines import LineFormat
from airflow_connect.connectors.files.s3.keys import S3StoreKeys as S3Keys
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

DEFAULT_BATCH_SIZE = 2000
S3_KEYS = (
    S3Keys.region, S3Keys.endpoint, S3Keys.path_style, S3Keys.provider, S3Keys.role_arn, S3Keys.role_session_name,
    S3Keys.role_external_id, S3Keys.access_key_id, S3Keys.secret_access_key, S3Keys.sse_customer_key,
    S3Keys.part_retries, S3Keys.s3_retry_backoff_ms, S3Keys.proxy_url, S3Keys.proxy_user, S3Keys.proxy_password,
)  # fmt: skip
"""Keys of the S3 sink that describe how to reach a bucket."""


_WHICH, _CHANGES, _LINES = KeyGroup("Files"), KeyGroup("Changes of files"), KeyGroup("Lines")
_PATTERN, _STORES = KeyGroup("Records"), KeyGroup("Stores")


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


def _pattern(text: str) -> JavaPattern | None:
    return compile_java_pattern(text, python_names=True) if text else None


_REGEX = Lambda(_check_regex, "regular expression")


class FileSourceKeys(TypedConfig):
    """Every key of the file source."""

    file = _WHICH.high.text(
        "file",
        None,
        "The file: a path, or a URL (file://, s3://, hdfs://). Taken literally, without wildcards. If neither this"
        " nor `files` is set, the command line's standard input is read.",
    ).or_none()
    topic = _WHICH.high.text("topic", REQUIRED, "Topic that the lines go to.", NonEmptyString())
    batch_size = _WHICH.low.integer(
        "batch.size",
        DEFAULT_BATCH_SIZE,
        "Largest number of lines that a task returns at once, which is one transaction with"
        f" transaction.boundary=poll. Where lines are processed in columns ({page_url('connectors/file-source')}),"
        " only values below the default limit a batch; otherwise a batch is what the task reads at once, up to 16"
        " MiB.",
        Range(1),
    )
    files = _WHICH.medium.words(
        "files",
        "",
        "Several files instead of `file`: paths or URLs, comma separated. `*`, `?` and `[...]` match within one"
        " name, `**` matches any number of directories; a path that ends with a slash is a directory with all its"
        " files. Each run lists the files again.",
    )
    exclude = _WHICH.low.text(
        "files.exclude", "", "Java regular expression; files whose path contains a match are skipped.", _REGEX
    ).to(_pattern)
    regex = _WHICH.low.text(
        "files.regex",
        "",
        "Java regular expression that must match the whole path of a file selected by `files`, for selections that"
        " wildcards cannot express.",
        _REGEX,
    ).to(_pattern)
    rotated = _WHICH.low.text(
        "file.rotated",
        "",
        "Java regular expression that must match the whole name, without the directory, of a rotated file of"
        " `file`, such as `app\\.\\d+\\.log`. Names that add a number or a date to the end, as app.log.1 does, need"
        " not match. Blank: of all other names, a file is read if its inode or content is that of the file that was"
        " read, and so are later ones with such names; if it is unclear, the run fails.",
        _REGEX,
    ).to(_pattern)
    recursive = _WHICH.low.boolean(
        "files.recursive", True, "Whether a directory in `files` includes its subdirectories."
    )
    split_bytes = _WHICH.medium.long(
        "split.bytes",
        0,
        "Size in bytes of the ranges into which larger files are split, at line ends, so that several tasks can"
        " read one file in parallel. The order of lines in the topic is then kept only within each range. 0: files"
        " are not split.",
        Range(0),
    )
    key_is_file = _WHICH.low.choice(
        "record.key",
        "none",
        ("none", "file"),
        "Key of the records: `none`, as in Kafka Connect, or `file`, the file's name, which keeps all lines of a"
        " file in order in one partition.",
    ).equals("file")
    fails_on_change = _CHANGES.low.choice(
        "file.changed",
        "read",
        ("read", "fail"),
        "What happens to a file whose content no longer matches what was read from it, when the old content is not"
        " found under another name: `read` reads the file from its beginning, `fail` fails the run.",
    ).equals("fail")
    replaced = _CHANGES.low.choice(
        "file.replaced",
        "fail",
        ("fail", "continue", "read"),
        "What happens if another file has taken the name of one that was read (its inode differs), begins with"
        " all that was read, and was modified since: it may be the same file, rewritten, or a new one. `fail`"
        " fails the run; `continue` reads on after the position, for files that rsync or an editor writes;"
        " `read` reads it from its beginning, also if only its time has changed. Likewise it decides whether a"
        " short new rotated file that repeats the beginning of `file` is a copy of it (`continue`: not read) or a"
        " log of its own (`read`). Not for S3 and HDFS, which have no inodes: there, reading goes on.",
    )
    forgets_missing = _CHANGES.low.choice(
        "offsets.of.missing.files",
        "keep",
        ("keep", "delete"),
        "Offsets of files that no longer exist: `keep`, so that a file that comes back is not read twice, or `delete`.",
    ).equals("delete")
    missing_days = _CHANGES.low.integer(
        "offsets.of.missing.files.days",
        365,
        "Days after which the kept offset of a missing file is deleted, counted from the first run that missed it;"
        " the report names the file. 0: never.",
        Range(0),
    )
    takes_over_bytes = _CHANGES.low.choice(
        "offset.takeover",
        "bytes",
        ("bytes", "characters"),
        "How to interpret a position left by a Kafka Connect worker when the text before it is not pure ASCII:"
        " `bytes` takes the earliest line that it can mean, so lines may be repeated but none are lost;"
        " `characters` is exact if the worker read the file from its beginning without a restart, and may lose"
        " lines otherwise.",
    ).equals("bytes")
    encoding = _LINES.medium.text(
        "file.encoding", "UTF-8", "Encoding of the text.", Lambda(_check_encoding, "a text encoding")
    )
    line_terminator = _LINES.low.choice(
        "line.terminator",
        "any",
        ("any", "lf"),
        "What ends a line: `any` is a line feed, a carriage return, or both together, as in Kafka Connect; `lf` is"
        " the line feed only.",
    )
    takes_last = _LINES.medium.choice(
        "last.line",
        "wait",
        ("wait", "read"),
        "Text at the end of a file without a line terminator: `wait` leaves it for a later run that finds the"
        " rest, as Kafka Connect does; `read` treats it as a line. In a compressed file it is always read.",
    ).equals("read")
    compression = _LINES.low.choice(
        "compression",
        AUTO,
        (AUTO, NONE, GZIP, ZSTD),
        "How files are compressed; `auto` decides by the file extension (.gz, .zst).",
    )
    invalid_text = _LINES.low.choice(
        "invalid.text",
        "replace",
        ("replace", "fail", "dead_letter"),
        "Bytes that are not valid in file.encoding: `replace` substitutes U+FFFD, as Kafka Connect does; `fail`"
        " fails the run; `dead_letter` sends the line to dead.letter.topic.",
    )
    line_max_bytes = _LINES.low.integer(
        "line.max.bytes", 1048576, "Longest line in bytes; it bounds the memory of a task.", Range(1, 1 << 28)
    )
    line_too_long = _LINES.low.choice(
        "line.too.long",
        "fail",
        ("fail", "truncate", "dead_letter"),
        "What happens to longer lines: `fail`, `truncate`, or `dead_letter`, which sends the beginning of the line"
        " to dead.letter.topic.",
    )
    dead_letter_topic = _LINES.medium.text(
        "dead.letter.topic",
        "",
        "Topic for lines that cannot be read as configured; headers hold the reason and the position. They are"
        " written in the same transactions as all other records.",
    )
    multiline_pattern = _LINES.medium.text(
        "multiline.pattern",
        "",
        "Java regular expression for events of several lines, such as stack traces: lines that contain a match are"
        " joined to a neighbouring line. Blank: every line is an event.",
        _REGEX,
    )
    multiline_negate = _LINES.low.boolean(
        "multiline.negate", False, "Whether to join the lines without a match of multiline.pattern instead."
    )
    multiline_what = _LINES.low.choice(
        "multiline.what", "previous", ("previous", "next"), "Which neighbour: the `previous` line or the `next`."
    )
    multiline_max_lines = _LINES.low.integer(
        "multiline.max.lines", 500, "Maximum number of lines of an event; a longer event is split.", Range(1)
    )
    multiline_max_bytes = _LINES.low.integer(
        "multiline.max.bytes", 1048576, "Maximum size of an event in bytes; a longer event is split.", Range(1, 1 << 28)
    )
    pattern_regex = _PATTERN.medium.text(
        REGEX,
        "",
        "Java regular expression that is searched for in each line; its named groups, `(?<name>...)`, become the"
        " fields of the record. Python's `(?P<name>...)` and underscores in names are allowed too.",
        _REGEX,
    )
    pattern_grok = _PATTERN.medium.text(
        GROK,
        "",
        "A grok pattern instead of pattern.regex: `%{NAME:field}` or `%{NAME:field:type}`, for example"
        " `%{COMMONAPACHELOG}`.",
    )
    grok_definitions = _PATTERN.low.text(
        "pattern.grok.definitions",
        "",
        "Your own grok patterns, one `NAME expression` per line; they take precedence over the built-in ones.",
    )
    pattern_types = _PATTERN.medium.words(
        TYPES,
        "",
        "Types of fields as name:type: string, int32, int64 (int, long), float32, float64 (float, double), boolean."
        " Fields without a type are strings.",
    )
    pattern_mismatch = _PATTERN.medium.choice(
        "pattern.mismatch",
        "fail",
        ("fail", "dead_letter", "skip", "raw"),
        "What happens to lines that do not match the pattern, or in which a field does not have its type: `fail`;"
        " `dead_letter` sends the line to dead.letter.topic; `skip`; `raw` makes a record with a single field"
        " `message` that holds the line.",
    )
    pattern_schema = _PATTERN.low.text(
        "pattern.schema.name", "", "Name of the schema of the records; blank: the schema has no name."
    )
    hadoop_conf_dir = _STORES.low.text(
        "hadoop.conf.dir",
        "",
        "Folder with core-site.xml and hdfs-site.xml for files in HDFS; blank: the folder in HADOOP_CONF_DIR.",
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Its own keys, and those that describe how to reach a bucket."""
        super().define(definition)
        definition.define(*(key.key for key in S3_KEYS))
