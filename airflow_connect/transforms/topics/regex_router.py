"""RegexRouter: renames topics by a regular expression. KIP-66; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.patterns import check_java_pattern
from airflow_connect.api.config.validators import Lambda
from airflow_connect.api.transform import R, Transformation
from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import Replacement, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

REGEX, REPLACEMENT = "regex", "replacement"
_TOPICS_KEPT = 10_000


class RegexRouter(Transformation):
    """Rename topics: where the whole name matches, the first match in it is replaced."""

    config_def = ConfigDef().define(
        ConfigKey(
            REGEX, Type.STRING, documentation="Java regular expression that the whole name of a topic must match.",
            validator=Lambda(check_java_pattern, "valid regex"), importance=Importance.HIGH,
        ),
        ConfigKey(
            REPLACEMENT, Type.STRING,
            documentation="Replacement for the match: text with `$1` or `${name}` for groups of regex.",
            importance=Importance.HIGH,
        ),
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        """Compile both.

        Raises:
            ConfigError: the expression is wrong, or the replacement names a group that it does not have.
        """
        parsed = self.config_def.parse(config)
        self._pattern = compile_java_pattern(parsed[REGEX])
        self._topics: dict[str, str] = {}
        try:
            self._replacement = Replacement(parsed[REPLACEMENT], self._pattern)
        except PatternError as error:
            raise ConfigError(
                f"Invalid value {parsed[REPLACEMENT]} for configuration {REPLACEMENT}: {error}.",
                suggestion=f"Name groups of {REGEX} only; write \\$ for a dollar sign.",
                config_path=REPLACEMENT,
            ) from error

    def apply(self, record: R) -> R | None:
        """The record under its new topic."""
        topic = self.new_name(record.topic)
        return record if topic == record.topic else record.changed(topic=topic)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The batch under its new topic."""
        topic = self.new_name(batch.topic)
        return batch if topic == batch.topic else batch.changed(topic=topic)

    def new_name(self, topic: str) -> str:
        """The name of a topic after this transformation."""
        known = self._topics.get(topic)
        if known is None:
            if len(self._topics) >= _TOPICS_KEPT:  # An earlier transformation may make names without end.
                self._topics.clear()
            known = self._topics[topic] = self._renamed(topic)
        return known

    def _renamed(self, topic: str) -> str:
        if not self._pattern.fullmatch(topic):
            return topic
        # Not the same match: as in Java the first one in the name is replaced, which may be shorter than the name.
        found = self._pattern.search(topic)
        if found is None:
            return topic
        return topic[: found.start()] + self._replacement.expand(found) + topic[found.end() :]
