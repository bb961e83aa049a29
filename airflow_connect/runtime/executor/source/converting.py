"""Converts source records to bytes: the transformations, then header, key and value converter, in Connect's order.

Source: org.apache.kafka.connect.runtime.AbstractWorkerSourceTask.convertTransformedRecord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.kafka.writing.produced import ProducedRecord
from airflow_connect.runtime.executor.converting import ConversionError, OpenConverters
from airflow_connect.runtime.executor.error_policy import (
    HEADER_CONVERTER,
    KEY_CONVERTER,
    TRANSFORMATION,
    VALUE_CONVERTER,
    Failure,
)
from airflow_connect.runtime.executor.unread_counts import UnwrittenCounts

if TYPE_CHECKING:
    from airflow_connect.api.record import SourceRecord
    from airflow_connect.config.resolved.source import ResolvedSourceConfig


class SourceRecordConverter(OpenConverters):
    """Applies every transformation and then the three converters.

    Attributes:
        unwritten: counts the records of which a converter has left something out.
    """

    def __init__(self, config: ResolvedSourceConfig, where: str = "") -> None:
        """Build and configure the parts; see `OpenConverters`.

        Raises:
            ConnectError: one of them cannot be opened.
        """
        super().__init__(config, where)
        self.unwritten = UnwrittenCounts(self.key, self.value, steps=self.chain.stages)

    def convert(self, record: SourceRecord) -> ProducedRecord | None:
        """Convert a record to the message to produce; None if a transformation drops it.

        Raises:
            ConversionError: a transformation or a converter refused it.
        """
        transformed = self._transformed(record)
        if transformed is None:
            self.unwritten.clear()
            return None
        return self._converted(transformed)

    def _transformed(self, record: SourceRecord) -> SourceRecord | None:
        transformed: SourceRecord | None = record
        for stage in self.chain.stages:
            if transformed is None:
                break
            try:
                transformed = stage.apply(transformed)
            except Exception as error:
                self.unwritten.clear()
                raise ConversionError(Failure(TRANSFORMATION, stage.class_name, error)) from error
        return transformed

    def _converted(self, record: SourceRecord) -> ProducedRecord:
        stage, topic = HEADER_CONVERTER, record.topic
        try:
            headers = tuple(
                (header.key, self.headers.from_connect_header(topic, header.key, header.schema, header.value))
                for header in record.headers
            )
            stage = KEY_CONVERTER
            key = self.key.from_connect(topic, record.key_schema, record.key)
            stage = VALUE_CONVERTER
            value = self.value.from_connect(topic, record.value_schema, record.value)
        except Exception as error:
            self.unwritten.clear()
            raise ConversionError(Failure(stage, self._names[stage], error)) from error
        for found in self.unwritten.found:
            if found:
                self.unwritten.add(record, record.key_schema, record.value_schema)
                break
        return ProducedRecord(topic, record.partition, key, value, headers, record.timestamp)
