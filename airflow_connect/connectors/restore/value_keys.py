"""Keys for files of values: those of Confluent's S3 source with the same names, and ours."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, KeyFamily, Problem
from airflow_connect.api.config.typed import Checks, KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda, Range, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.restore.options import (
    AIVEN,
    INTEGERS,
    LENSES,
    MILLISECONDS,
    NO_ENVELOPE,
    CsvOptions,
)
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError
from airflow_connect.kafka.admin.topics import INTERNAL_TOPICS
from airflow_connect.layout.names.object_names import is_legal_topic

NAME_GROUPS = ("topic", "partition", "offset")
FAIL, IGNORE, LOG = "fail", "ignore", "log"
_VALUES, _CSV, _ERRORS = KeyGroup("Files of values"), KeyGroup("CSV"), KeyGroup("Errors")
_SYSTEM_LINE = "\n"
_UNLIKE_CSV = "Files of CSV are read as RFC 4180 describes them"


def topic_patterns(pairs: tuple[str, ...]) -> tuple[tuple[str, JavaPattern], ...]:
    """`topic.regex.list`: topics and the paths that go to them.

    Raises:
        ValueError: a pair has another form; the message is a sentence without its end.
    """
    found = []
    for pair in pairs:
        topic, colon, pattern = (part.strip() for part in pair.partition(":"))
        if not colon or not pattern or not is_legal_topic(topic):
            raise ValueError(f"{pair} is not topic:regular expression")
        if topic in INTERNAL_TOPICS:
            raise ValueError(f"{topic} is a topic of Kafka itself")
        try:
            found.append((topic, compile_java_pattern(pattern)))
        except PatternError as error:
            raise ValueError(f"{pattern} is not a valid regular expression: {error}") from error
    return tuple(found)


def _check_patterns(name: str, value: Any) -> None:
    try:
        topic_patterns(tuple(value or ()))
    except ValueError as error:
        raise invalid(name, value, str(error)) from error


def _check_names(name: str, value: Any) -> None:
    if not value:
        return
    try:
        missing = [group for group in NAME_GROUPS if group not in compile_java_pattern(value).names]
    except PatternError as error:
        raise invalid(name, value, f"It is not a valid regular expression: {error}") from error
    if missing:
        raise invalid(name, value, f"It has no group named {' or '.join(missing)}, such as (?<{missing[0]}>...)")


def _check_charset(name: str, value: Any) -> None:
    try:
        io.TextIOWrapper(io.BytesIO(), str(value))  # unlike codecs.lookup, knows whether it is one of texts
    except LookupError as error:
        raise invalid(name, value, "Write the name of a character set, such as UTF-8 or ISO-8859-1") from error


def _check_character(name: str, value: Any) -> None:
    if not 1 <= int(value) < 0x110000 or chr(int(value)) in "\r\n":
        raise invalid(name, value, "Write the code of a character, such as 44 for a comma")


def _quotes_can_be_told(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """The parser would take each of them for a separator, and quotes would do nothing."""
    separator, quote = ValueKeys.csv_separator, ValueKeys.csv_quote
    if separator.of(parsed) == quote.of(parsed):
        yield Problem(quote.name, f"{separator} is the same character", "Fields could not be in quotes.")


def _only(default: object, instead: str) -> Lambda:
    """Refuses every value but the default; `instead`: a sentence without its full stop."""

    def check(name: str, value: Any) -> None:
        if value != default:
            raise invalid(name, value, instead)

    return Lambda(check, str(default).lower())


class ValueKeys(TypedConfig):
    """Which files hold values, and how they are read."""

    stores_records = _VALUES.medium.text(
        "store.kafka.records",
        "",
        "Whether the files hold whole records, as sinks of this package write them with the same key, or values that"
        " converters write to Kafka. Blank: values, if mode=GENERIC, if the format is not Avro, Parquet or ORC, or if"
        " the connector has transformations or converters of its own.",
        ValidString("", "true", "false"),
    ).or_blank()
    topic_patterns = _VALUES.high.words(
        "topic.regex.list",
        "",
        "For mode=GENERIC: topics and the files that go to them, as topic:regex, comma separated. The Java regular"
        " expression must match the whole key of an object, or path below store.url. The first that matches counts.",
        Lambda(_check_patterns, "topic:regex"),
    ).to(topic_patterns)
    from_modified_ms = _VALUES.medium.long(
        "file.discovery.starting.timestamp",
        0,
        "For mode=GENERIC: files that were modified earlier, in milliseconds since the epoch, are not imported. A file"
        " that has an offset is.",
        Range(0),
    )
    split_bytes = _VALUES.medium.long(
        "split.bytes",
        0,
        "For mode=GENERIC and Parquet: size in bytes of the ranges into which larger files are divided, at row groups,"
        " so that several tasks can copy one file. The order of its records is then kept only within each range, so"
        " accept.loss must name order. 0: files are not divided.",
        Range(0),
    )
    envelope = _VALUES.medium.text(
        "record.envelope",
        NO_ENVELOPE,
        "What a value holds. `none`: the value. `lenses`: the envelope of Lenses' sinks (store.envelope=true); `aiven`:"
        " the fields of Aiven's sinks (format.output.fields). Keys, values, headers and timestamps come from them.",
        ValidString(NO_ENVELOPE, LENSES, AIVEN),
    )
    file_pattern = _VALUES.medium.text(
        "file.pattern",
        "",
        "For mode=RESTORE_BACKUP and files of other sinks: a Java regular expression that matches the whole path below"
        " topics.dir, with the groups topic, partition and offset, such as"
        r" `(?<topic>[^/]+)/(?<partition>\d+)/(?<offset>\d+)\.json`. Blank: the names of Confluent's sinks, or with"
        " record.envelope those of its sinks.",
        Lambda(_check_names, "with the groups topic, partition and offset"),
    ).or_blank()
    file_headers = _VALUES.low.boolean(
        "file.metadata.headers.enable",
        False,
        "Key of Confluent Cloud, for mode=GENERIC: whether each record has the headers file.name, file.path,"
        " file.last.modified and file.size.",
    )
    json_schemas = _VALUES.medium.boolean(
        "format.json.schema.enable", False, "Whether JSON documents are objects with `schema` and `payload`."
    )
    bytes_extension = _VALUES.low.text(
        "format.bytearray.extension", ".bin", "Extension of files of ByteArrayFormat, as in the sink."
    )
    bytes_separator = _VALUES.low.text(
        "format.bytearray.separator",
        _SYSTEM_LINE,
        "What separates values in files of ByteArrayFormat, as in the sink. One inside a value divides it.",
    ).to(lambda text: (text or _SYSTEM_LINE).encode())
    tombstones = _VALUES.low.text(
        "tombstone.encoded.partition",
        "tombstone",
        "Directory in which the sink has stored the keys of records without a value, as in the sink.",
    ).or_blank()
    timestamps = _VALUES.medium.text(
        "parquet.timestamps",
        MILLISECONDS,
        "How timestamps and times of Parquet that are finer than milliseconds are read: `milliseconds` makes them"
        " Connect's Timestamp and Time, and fails for a file with a value that would lose digits; `integers` makes them"
        " INT64, in the unit of the file.",
        ValidString(MILLISECONDS, INTEGERS),
    )
    on_error = _ERRORS.medium.text(
        "behavior.on.error",
        FAIL,
        "What happens to a damaged file. `fail`: what follows in its partition, or in the file with mode=GENERIC, is"
        " left out, and the run fails. `ignore` and `log`, for files of values only: the rest of the file is left out,"
        " and the run's report names it.",
        ValidString(FAIL, IGNORE, LOG),
    )
    csv_separator = _CSV.low.integer(
        "csv.separator.char", 44, "Code of the character between fields.", Lambda(_check_character, "character")
    )
    csv_quote = _CSV.low.integer(
        "csv.quote.char", 34, "Code of the character around fields.", Lambda(_check_character, "character")
    )
    _csv_skip = _CSV.low.integer("csv.skip.lines", 0, "Lines at the beginning of a file that are no data.", Range(0))
    _csv_header = _CSV.medium.boolean(
        "csv.first.row.as.header", False, "Whether the first row has names of fields; else: column01, column02, ..."
    )
    _csv_charset = _CSV.low.text(
        "csv.file.charset", "UTF-8", "Character set of the files.", Lambda(_check_charset, "character set")
    )
    _csv_null = _CSV.low.text(
        "csv.null.field.indicator",
        "NEITHER",
        "Which fields are null: `BOTH`, those without a character, in quotes or not; `NEITHER`: none.",
        ValidString("NEITHER", "BOTH"),
    )
    _csv_escape = _CSV.low.integer(
        "csv.escape.char", 92, "Not used by RFC 4180.", ignored=f"{_UNLIKE_CSV}, where quotes are doubled."
    )
    _csv_strict = _CSV.low.boolean("csv.strict.quotes", False, "Not supported.", validator=_only(False, _UNLIKE_CSV))
    _csv_blanks = _CSV.low.boolean(
        "csv.ignore.leading.whitespace", True, "Not used by RFC 4180.", ignored=f"{_UNLIKE_CSV}, which keeps blanks."
    )
    _csv_unquoted = _CSV.low.boolean(
        "csv.ignore.quotations", False, "Not supported.", validator=_only(False, _UNLIKE_CSV)
    )
    _csv_returns = _CSV.low.boolean(
        "csv.keep.carriage.return", False, "Not supported.", validator=_only(False, _UNLIKE_CSV)
    )
    _csv_case = _CSV.low.boolean(
        "csv.case.sensitive.field.names", False, "Names of fields.", ignored="Names of fields are those of the file."
    )
    _csv_rfc = _CSV.low.boolean(
        "csv.rfc.4180.parser.enabled", True, "Not supported: false.", validator=_only(True, _UNLIKE_CSV)
    )
    _value_schema = _VALUES.low.text(
        "value.schema",
        "",
        "Schema of CSV values.",
        validator=_only("", "Fields of CSV are texts; Cast makes numbers of them"),
    ).or_blank()

    @property
    def csv(self) -> CsvOptions:
        """How CSV files are written."""
        return CsvOptions(
            separator=chr(self.csv_separator),
            quote=chr(self.csv_quote),
            skip_lines=self._csv_skip,
            first_row_as_header=self._csv_header,
            charset=self._csv_charset,
            empty_is_null=self._csv_null == "BOTH",
        )

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together."""
        yield from super().checks()
        yield (cls.csv_separator, cls.csv_quote), _quotes_can_be_told

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """Its own keys, and those about listings."""
        super().define(definition)
        once = "A run lists the files once, when it starts. Schedule runs instead."
        definition.define_family(KeyFamily("bucket.", "Listing of the bucket.", once))
