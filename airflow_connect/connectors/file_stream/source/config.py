"""Typed configuration of the file source, and the rules between its keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from airflow_connect.api.config.config_def import Problem, Rule
from airflow_connect.api.config.plugins import load
from airflow_connect.api.config.typed import TypedKey
from airflow_connect.connectors.file_stream.source.keys import DEFAULT_BATCH_SIZE, FileSourceKeys
from airflow_connect.connectors.file_stream.source.keys import FileSourceKeys as Keys
from airflow_connect.connectors.file_stream.source.parse.pattern_source import PatternSource
from airflow_connect.connectors.file_stream.source.read.content import NONE
from airflow_connect.connectors.file_stream.source.read.events import MultilineRules
from airflow_connect.connectors.file_stream.source.read.line_reader import DEAD_LETTER, LineRules
from airflow_connect.connectors.file_stream.source.read.lines import LineFormat
from airflow_connect.connectors.files.s3.keys import S3StoreKeys as S3Keys
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import compile_java_pattern
from airflow_connect.stores.file_systems import FileSystems, root_of
from airflow_connect.stores.s3.settings import S3Settings

ERRORS_TOLERANCE = "errors.tolerance"
COLUMN_LINES = 1 << 30
"""Lines in columns need no object each, so a batch holds everything from one read: 16 MiB of a local file."""
PATTERN_LINES = 100_000
"""The same where lines become records with fields, which take several times as much memory as their text."""


class FileSourceConfig(FileSourceKeys):
    """Everything that the file source takes from its configuration."""

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any]], Rule]]:
        """What several keys must have together."""
        files = (cls.file, cls.files)
        yield files, _file_or_files
        yield files, _places_are_known
        read = (cls.split_bytes, cls.multiline_pattern, cls.encoding, cls.compression, *files)
        yield read, _splitting_is_possible
        users = (cls.invalid_text, cls.line_too_long, cls.pattern_mismatch)
        yield (*users, cls.dead_letter_topic), _dead_letter_topic_is_set
        fields = (cls.pattern_regex, cls.pattern_grok, cls.grok_definitions, cls.pattern_types, cls.pattern_mismatch)
        yield fields, _pattern_is_usable

    @property
    def column_lines(self) -> int:
        """Maximum number of lines in a columnar batch (see `COLUMN_LINES`).

        Kafka Connect's default does not mean that small batches are wanted; a lower value does, and is respected.
        """
        if self.batch_size < DEFAULT_BATCH_SIZE:
            return self.batch_size
        return max(self.batch_size, PATTERN_LINES if self.pattern_regex or self.pattern_grok else COLUMN_LINES)

    @cached_property
    def form(self) -> LineFormat:
        """Encoding and line terminators."""
        return LineFormat.of(self.encoding, any_terminator=self.line_terminator == "any")

    @cached_property
    def rules(self) -> LineRules:
        """What happens to unusual lines."""
        return LineRules(self.line_max_bytes, self.line_too_long, self.invalid_text)

    @cached_property
    def multiline(self) -> MultilineRules | None:
        """Events of several lines, or None."""
        if not self.multiline_pattern:
            return None
        return MultilineRules(
            pattern=compile_java_pattern(self.multiline_pattern, python_names=True),
            negate=self.multiline_negate,
            joins_next=self.multiline_what == "next",
            max_lines=self.multiline_max_lines,
            max_bytes=self.multiline_max_bytes,
        )

    @cached_property
    def pattern(self) -> PatternSource | None:
        """What splits lines into fields, or None."""
        return _pattern(self.parsed)

    @property
    def tolerates_errors(self) -> bool:
        """Whether `errors.tolerance` is `all`."""
        return self.raw.get(ERRORS_TOLERANCE) == "all"

    @property
    def is_stdin(self) -> bool:
        """Whether the standard input is read."""
        return self.file is None and not self.files

    def file_systems(self, aws: Mapping[str, str]) -> FileSystems:
        """The file systems that files are read from; nothing is opened yet. `aws`: see `SourceTaskContext`."""
        return FileSystems(lambda bucket: self._s3_settings(bucket, aws), self.hadoop_conf_dir)

    def _s3_settings(self, bucket: str, aws: Mapping[str, str]) -> S3Settings:
        parsed = self.parsed
        customer_key = S3Keys.sse_customer_key.of(parsed)
        return S3Settings(
            bucket=bucket,
            region=self._own_or(S3Keys.region, aws.get("region", "")).lower(),
            endpoint=self._own_or(S3Keys.endpoint, aws.get("endpoint_url", "")),
            path_style=S3Keys.path_style.of(parsed),
            part_retries=S3Keys.part_retries.of(parsed),
            retry_backoff_ms=S3Keys.s3_retry_backoff_ms.of(parsed),
            sse_name="AES256" if customer_key else "",
            sse_customer_key=customer_key,
            proxy_url=S3Keys.proxy_url.of(parsed),
            proxy_user=S3Keys.proxy_user.of(parsed),
            proxy_password=S3Keys.proxy_password.of(parsed),
            credentials=load(S3Keys.provider.of(parsed))().credentials(parsed, aws),
        )

    def _own_or(self, key: TypedKey[str], connection: str) -> str:
        """The value of a key; if it is not set, the value in the Airflow connection, or the default."""
        return connection if connection and key.name not in self.raw else key.of(self.parsed)


def _pattern(parsed: Mapping[str, Any]) -> PatternSource | None:
    regex, grok = Keys.pattern_regex.of(parsed), Keys.pattern_grok.of(parsed)
    if not (regex or grok):
        return None
    return PatternSource.of(
        regex=regex,
        grok=grok,
        definitions=Keys.grok_definitions.of(parsed),
        types=Keys.pattern_types.of(parsed),
        mismatch=Keys.pattern_mismatch.of(parsed),
        schema_name=Keys.pattern_schema.of(parsed),
    )


def _file_or_files(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.file.of(parsed) and Keys.files.of(parsed):
        yield Problem(
            Keys.files.name,
            f"{Keys.file} and {Keys.files} are both set, but only one can select the files",
            f"Move what is in {Keys.file} to {Keys.files}.",
        )


def _places_are_known(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    for key, names in ((Keys.file, [Keys.file.of(parsed)]), (Keys.files, Keys.files.of(parsed))):
        for name in names:
            try:
                root_of(name or "")
            except ConfigError as error:
                yield Problem(key.name, error.message, error.suggestion)


def _splitting_is_possible(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not Keys.split_bytes.of(parsed):
        return
    why = ""
    if Keys.multiline_pattern.of(parsed):
        why = f"an event of {Keys.multiline_pattern} may cross the end of a range"
    elif LineFormat.of(Keys.encoding.of(parsed)).unit > 1:
        why = f"line ends in {Keys.encoding.of(parsed)} can only be found by reading from the beginning of a file"
    elif Keys.compression.of(parsed) not in ("auto", NONE):
        why = f"{Keys.compression.of(parsed)} can only be read from the beginning"
    elif not Keys.file.of(parsed) and not Keys.files.of(parsed):
        why = "standard input is read by a single task"
    if why:
        yield Problem(Keys.split_bytes.name, f"{Keys.split_bytes} cannot be used: {why}", f"Remove {Keys.split_bytes}.")


def _dead_letter_topic_is_set(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    users = [
        key
        for key in (Keys.invalid_text, Keys.line_too_long, Keys.pattern_mismatch)
        if key.of(parsed) == DEAD_LETTER and not Keys.dead_letter_topic.of(parsed)
    ]
    for key in users:
        yield Problem(
            Keys.dead_letter_topic.name,
            f"{key} is {DEAD_LETTER}, but {Keys.dead_letter_topic} is not set",
            f"Set {Keys.dead_letter_topic} to a topic.",
        )


def _pattern_is_usable(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.pattern_regex.of(parsed) and Keys.pattern_grok.of(parsed):
        text = f"{Keys.pattern_regex} and {Keys.pattern_grok} are both set, but lines are parsed with one pattern"
        yield Problem(Keys.pattern_grok.name, text, f"Remove {Keys.pattern_regex} or {Keys.pattern_grok}.")
        return
    try:
        pattern = _pattern({**parsed, Keys.pattern_schema.name: ""})
    except ConfigError as error:
        yield Problem(error.config_path or Keys.pattern_grok.name, error.message, error.suggestion)
        return
    if pattern is None and Keys.pattern_types.of(parsed):
        yield Problem(
            Keys.pattern_types.name,
            f"{Keys.pattern_types} names fields, but neither {Keys.pattern_regex} nor {Keys.pattern_grok} defines any",
            f"Set {Keys.pattern_regex} or {Keys.pattern_grok}.",
        )
