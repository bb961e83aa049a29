"""TimestampRouter: renames topics by the record's timestamp. KIP-66; messages as in Kafka 4.3.1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE
from airflow_connect.api.transform import R, Transformation
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.transforms.simple_date_format import SimpleDateFormat

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

TOPIC_FORMAT, TIMESTAMP_FORMAT = "topic.format", "timestamp.format"
_MOST_UNITS = 100
"""Of the shortest unit of the pattern, in one batch: more of them hardly ever have one text."""
_TOPIC, _TIMESTAMP = "${topic}", "${timestamp}"


class TimestampRouter(Transformation):
    """Rename topics by the record's timestamp, in UTC."""

    config_def = ConfigDef().define(
        ConfigKey(
            TOPIC_FORMAT, Type.STRING, f"{_TOPIC}-{_TIMESTAMP}",
            f"The new topic, with `{_TOPIC}` for the old one and `{_TIMESTAMP}` for the record's timestamp.",
            importance=Importance.HIGH,
        ),
        ConfigKey(
            TIMESTAMP_FORMAT, Type.STRING, "yyyyMMdd",
            "How the timestamp is written: a pattern of java.text.SimpleDateFormat, in UTC.",
            importance=Importance.HIGH,
        ),
    )  # fmt: skip

    columns_of_sinks_only: ClassVar[bool] = True
    columns_have_headers: ClassVar[bool] = True

    def configure(self, config: Mapping[str, str]) -> None:
        """Read the pattern.

        Raises:
            ConfigError: a letter of the pattern means nothing.
        """
        parsed = self.config_def.parse(config)
        self._topic_format: str = parsed[TOPIC_FORMAT]
        try:
            self._timestamp_format = SimpleDateFormat(parsed[TIMESTAMP_FORMAT])
        except ConfigError as error:
            raise ConfigError(error.message, suggestion=error.suggestion, config_path=TIMESTAMP_FORMAT) from error
        self._last: tuple[int | None, str] = (None, "")

    def apply(self, record: R) -> R | None:
        """The record under its new topic.

        Raises:
            DataError: the record has no timestamp.
        """
        if record.timestamp is None:
            raise DataError(
                f"Timestamp missing on record: {record.where}.",
                suggestion="Let producers or the topic (message.timestamp.type) set one, or skip such records with"
                " a predicate.",
            )
        topic = self._topic_format.replace(_TOPIC, record.topic).replace(_TIMESTAMP, self._text(record.timestamp))
        return record.changed(topic=topic)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The batch under its new topic. Not vectorizable: more than one topic, no timestamps, a source."""
        import numpy as np

        if not batch.is_from_kafka or batch.timestamp_type == TIMESTAMP_NOT_AVAILABLE or (batch.timestamps < 0).any():
            return None
        unit_ms = self._timestamp_format.unit_ms
        units = np.unique(batch.timestamps // unit_ms)
        if len(units) > _MOST_UNITS:
            return None
        texts = {self._text(unit * unit_ms) for unit in units.tolist()}
        if len(texts) != 1:
            return None
        topic = self._topic_format.replace(_TOPIC, batch.topic).replace(_TIMESTAMP, texts.pop())
        return batch.changed(topic=topic)

    def parts_of(self, topic: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """What is known of the new topic before a record comes.

        Args:
            topic: the old one in parts; None is text that is not known.
        """
        parts: list[str | None] = []
        for piece in re.split(r"(\$\{topic\}|\$\{timestamp\})", self._topic_format):
            if piece == _TOPIC:
                parts += topic
            elif piece:
                parts.append(None if piece == _TIMESTAMP else piece)
        return tuple(parts)

    def _text(self, timestamp_ms: int) -> str:
        """The formatted timestamp; neighbours often have the same one."""
        if timestamp_ms != self._last[0]:
            self._last = timestamp_ms, self._timestamp_format.format(timestamp_ms)
        return self._last[1]
