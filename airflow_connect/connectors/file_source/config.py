"""Typed configuration of the file source, and the rules between its keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, Problem
from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.connectors.file_source import keys
from airflow_connect.connectors.file_source.parse.pattern_source import PatternSource
from airflow_connect.connectors.file_source.read.content import NONE
from airflow_connect.connectors.file_source.read.events import MultilineRules
from airflow_connect.connectors.file_source.read.line_reader import DEAD_LETTER, LineRules
from airflow_connect.connectors.file_source.read.lines import LineFormat
from airflow_connect.connectors.s3 import keys as s3_keys
from airflow_connect.connectors.s3.credentials import clear_text
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.stores.file_systems import FileSystems, root_of
from airflow_connect.stores.s3.settings import S3Settings

ERRORS_TOLERANCE = "errors.tolerance"
COLUMN_LINES = 1 << 30
"""Lines in columns need no object each, so a batch holds everything from one read: 16 MiB of a local file."""
PATTERN_LINES = 100_000
"""The same where lines become records with fields, which take several times as much memory as their text."""


@cache
def config_def() -> ConfigDef:
    """Every key of the file source, with the rules between them."""
    definition = keys.file_source_keys()
    definition.define_rule((keys.FILE, keys.FILES), _file_or_files)
    definition.define_rule((keys.FILE, keys.FILES), _places_are_known)
    definition.define_rule(
        (keys.SPLIT_BYTES, keys.MULTILINE_PATTERN, keys.ENCODING, keys.COMPRESSION, keys.FILE, keys.FILES),
        _splitting_is_possible,
    )
    definition.define_rule(
        (keys.INVALID_TEXT, keys.LINE_TOO_LONG, keys.PATTERN_MISMATCH, keys.DEAD_LETTER_TOPIC),
        _dead_letter_topic_is_set,
    )
    definition.define_rule(
        (keys.REGEX, keys.GROK, keys.GROK_DEFINITIONS, keys.PATTERN_TYPES, keys.PATTERN_MISMATCH), _pattern_is_usable
    )
    return definition


@dataclass(frozen=True, slots=True)
class FileSourceConfig:
    """Everything that the file source takes from its configuration.

    Attributes:
        file: `file`, or None.
        files: `files`.
        rotated: `file.rotated`, or None.
        exclude: `files.exclude`, or None.
        regex: `files.regex`, or None.
        recursive: `files.recursive`.
        topic, dead_letter_topic: where lines go; the second may be "".
        batch_size: `batch.size`.
        column_lines: maximum number of lines in a columnar batch (see `COLUMN_LINES`).
        split_bytes: `split.bytes`.
        key_is_file: `record.key` is `file`.
        fails_on_change: `file.changed` is `fail`.
        replaced: `file.replaced`.
        forgets_missing: `offsets.of.missing.files` is `delete`.
        missing_days: `offsets.of.missing.files.days`.
        takes_over_bytes: `offset.takeover` is `bytes`.
        compression: `compression`.
        form: encoding and line terminators.
        takes_last: `last.line` is `read`.
        rules: for unusual lines.
        multiline: events of several lines, or None.
        pattern: splits lines into fields, or None.
        tolerates_errors: `errors.tolerance` is `all`.
        parsed: typed values of all keys.
        given: names of the keys that are set.
    """

    file: str | None
    files: tuple[str, ...]
    rotated: JavaPattern | None
    exclude: JavaPattern | None
    regex: JavaPattern | None
    recursive: bool
    topic: str
    dead_letter_topic: str
    batch_size: int
    column_lines: int
    split_bytes: int
    key_is_file: bool
    fails_on_change: bool
    replaced: str
    forgets_missing: bool
    missing_days: int
    takes_over_bytes: bool
    compression: str
    form: LineFormat
    takes_last: bool
    rules: LineRules
    multiline: MultilineRules | None
    pattern: PatternSource | None
    tolerates_errors: bool
    parsed: Mapping[str, Any] = field(repr=False)
    given: frozenset[str]

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> FileSourceConfig:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = config_def().parse(raw)
        exclude, regex, rotated = parsed[keys.FILES_EXCLUDE], parsed[keys.FILES_REGEX], parsed[keys.FILE_ROTATED]
        return cls(
            file=parsed[keys.FILE] or None,
            files=tuple(parsed[keys.FILES]),
            rotated=compile_java_pattern(rotated, python_names=True) if rotated else None,
            exclude=compile_java_pattern(exclude, python_names=True) if exclude else None,
            regex=compile_java_pattern(regex, python_names=True) if regex else None,
            recursive=parsed[keys.FILES_RECURSIVE],
            topic=parsed[keys.TOPIC],
            dead_letter_topic=parsed[keys.DEAD_LETTER_TOPIC],
            batch_size=parsed[keys.BATCH_SIZE],
            column_lines=_column_lines(parsed),
            split_bytes=parsed[keys.SPLIT_BYTES],
            key_is_file=parsed[keys.RECORD_KEY] == "file",
            fails_on_change=parsed[keys.FILE_CHANGED] == "fail",
            replaced=parsed[keys.FILE_REPLACED],
            missing_days=parsed[keys.MISSING_DAYS],
            forgets_missing=parsed[keys.MISSING_FILES] == "delete",
            takes_over_bytes=parsed[keys.TAKEOVER] == "bytes",
            compression=parsed[keys.COMPRESSION],
            form=LineFormat.of(parsed[keys.ENCODING], any_terminator=parsed[keys.LINE_TERMINATOR] == "any"),
            takes_last=parsed[keys.LAST_LINE] == "read",
            rules=LineRules(
                max_bytes=parsed[keys.LINE_MAX_BYTES],
                too_long=parsed[keys.LINE_TOO_LONG],
                invalid_text=parsed[keys.INVALID_TEXT],
            ),
            multiline=_multiline(parsed),
            pattern=_pattern(parsed),
            tolerates_errors=raw.get(ERRORS_TOLERANCE) == "all",
            parsed=parsed,
            given=frozenset(raw),
        )

    @property
    def is_stdin(self) -> bool:
        """Whether the standard input is read."""
        return self.file is None and not self.files

    def file_systems(self, aws: Mapping[str, str]) -> FileSystems:
        """The file systems that files are read from; nothing is opened yet. `aws`: see `SourceTaskContext`."""
        return FileSystems(lambda bucket: self._s3_settings(bucket, aws), self.parsed[keys.HADOOP_CONF_DIR])

    def _s3_settings(self, bucket: str, aws: Mapping[str, str]) -> S3Settings:
        parsed = self.parsed
        provider: Any = load_class(PluginKind.CREDENTIALS_PROVIDER, parsed[s3_keys.CREDENTIALS_CLASS])()
        customer_key = clear_text(parsed[s3_keys.SSE_CUSTOMER_KEY])
        return S3Settings(
            bucket=bucket,
            region=self._own_or(s3_keys.REGION, aws.get("region", "")).lower(),
            endpoint=self._own_or(s3_keys.STORE_URL, aws.get("endpoint_url", "")),
            path_style=parsed[s3_keys.PATH_STYLE],
            part_retries=parsed[s3_keys.PART_RETRIES],
            retry_backoff_ms=parsed[s3_keys.RETRY_BACKOFF_MS],
            sse_name="AES256" if customer_key else "",
            sse_customer_key=customer_key,
            proxy_url=parsed[s3_keys.PROXY_URL],
            proxy_user=parsed[s3_keys.PROXY_USER] or "",
            proxy_password=clear_text(parsed[s3_keys.PROXY_PASSWORD]),
            credentials=provider.credentials(parsed, aws),
        )

    def _own_or(self, key: str, connection: str) -> str:
        """The value of a key; if it is not set, the value in the Airflow connection, or the default."""
        return connection if connection and key not in self.given else self.parsed[key] or ""


def _column_lines(parsed: Mapping[str, Any]) -> int:
    """Kafka Connect's default does not mean that small batches are wanted; a lower value does, and is respected."""
    wanted: int = parsed[keys.BATCH_SIZE]
    if wanted < keys.DEFAULT_BATCH_SIZE:
        return wanted
    has_fields = parsed[keys.REGEX] or parsed[keys.GROK]
    return max(wanted, PATTERN_LINES if has_fields else COLUMN_LINES)


def _multiline(parsed: Mapping[str, Any]) -> MultilineRules | None:
    if not parsed[keys.MULTILINE_PATTERN]:
        return None
    return MultilineRules(
        pattern=compile_java_pattern(parsed[keys.MULTILINE_PATTERN], python_names=True),
        negate=parsed[keys.MULTILINE_NEGATE],
        joins_next=parsed[keys.MULTILINE_WHAT] == "next",
        max_lines=parsed[keys.MULTILINE_MAX_LINES],
        max_bytes=parsed[keys.MULTILINE_MAX_BYTES],
    )


def _pattern(parsed: Mapping[str, Any]) -> PatternSource | None:
    if not (parsed[keys.REGEX] or parsed[keys.GROK]):
        return None
    return PatternSource.of(
        regex=parsed[keys.REGEX],
        grok=parsed[keys.GROK],
        definitions=parsed[keys.GROK_DEFINITIONS],
        types=parsed[keys.PATTERN_TYPES],
        mismatch=parsed[keys.PATTERN_MISMATCH],
        schema_name=parsed[keys.PATTERN_SCHEMA],
    )


def _file_or_files(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[keys.FILE] and parsed[keys.FILES]:
        yield Problem(
            keys.FILES,
            f"{keys.FILE} and {keys.FILES} are both set, but only one can select the files",
            f"Move what is in {keys.FILE} to {keys.FILES}.",
        )


def _places_are_known(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    for key, names in ((keys.FILE, [parsed[keys.FILE]]), (keys.FILES, parsed[keys.FILES])):
        for name in names:
            try:
                root_of(name or "")
            except ConfigError as error:
                yield Problem(key, error.message, error.suggestion)


def _splitting_is_possible(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not parsed[keys.SPLIT_BYTES]:
        return
    why = ""
    if parsed[keys.MULTILINE_PATTERN]:
        why = f"an event of {keys.MULTILINE_PATTERN} may cross the end of a range"
    elif LineFormat.of(parsed[keys.ENCODING]).unit > 1:
        why = f"line ends in {parsed[keys.ENCODING]} can only be found by reading from the beginning of a file"
    elif parsed[keys.COMPRESSION] not in ("auto", NONE):
        why = f"{parsed[keys.COMPRESSION]} can only be read from the beginning"
    elif not parsed[keys.FILE] and not parsed[keys.FILES]:
        why = "standard input is read by a single task"
    if why:
        yield Problem(keys.SPLIT_BYTES, f"{keys.SPLIT_BYTES} cannot be used: {why}", f"Remove {keys.SPLIT_BYTES}.")


def _dead_letter_topic_is_set(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    users = [
        key
        for key in (keys.INVALID_TEXT, keys.LINE_TOO_LONG, keys.PATTERN_MISMATCH)
        if parsed[key] == DEAD_LETTER and not parsed[keys.DEAD_LETTER_TOPIC]
    ]
    for key in users:
        yield Problem(
            keys.DEAD_LETTER_TOPIC,
            f"{key} is {DEAD_LETTER}, but {keys.DEAD_LETTER_TOPIC} is not set",
            f"Set {keys.DEAD_LETTER_TOPIC} to a topic.",
        )


def _pattern_is_usable(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[keys.REGEX] and parsed[keys.GROK]:
        text = f"{keys.REGEX} and {keys.GROK} are both set, but lines are parsed with one pattern"
        yield Problem(keys.GROK, text, f"Remove {keys.REGEX} or {keys.GROK}.")
        return
    try:
        pattern = _pattern({**parsed, keys.PATTERN_SCHEMA: ""})
    except ConfigError as error:
        yield Problem(error.config_path or keys.GROK, error.message, error.suggestion)
        return
    if pattern is None and parsed[keys.PATTERN_TYPES]:
        yield Problem(
            keys.PATTERN_TYPES,
            f"{keys.PATTERN_TYPES} names fields, but neither {keys.REGEX} nor {keys.GROK} defines any",
            f"Set {keys.REGEX} or {keys.GROK}.",
        )
