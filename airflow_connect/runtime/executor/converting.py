"""Converts raw messages to sink records: the converters of the connector or the worker, then the transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import Header, KafkaRecord, SinkRecord
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.runtime.executor.error_policy import (
    HEADER_CONVERTER,
    KEY_CONVERTER,
    TRANSFORMATION,
    VALUE_CONVERTER,
    Failure,
)
from airflow_connect.runtime.executor.transforming import TransformChain
from airflow_connect.runtime.executor.unread_counts import UnreadCounts
from airflow_connect.runtime.plugin_objects import open_converter, open_header_converter

if TYPE_CHECKING:
    from airflow_connect.api.converter import SchemaAndValue
    from airflow_connect.config.resolved.java_chain import JavaChainConfig
    from airflow_connect.config.resolved.loading import ResolvedConfig
    from airflow_connect.config.resolved.source import ResolvedSourceConfig
    from airflow_connect.connectors.java.chain import JavaChain
    from airflow_connect.kafka.reading.column_batch import ColumnBatch
    from airflow_connect.runtime.executor.transforming import Stage

_ACCEPT_ALL = (ByteArrayConverter, StringConverter)
_KNOWN_CONVERTERS = (*_ACCEPT_ALL, SimpleHeaderConverter)


class ConversionError(Exception):
    """Passes a `Failure` to the error policy."""

    def __init__(self, failure: Failure) -> None:
        """`failure`: stage and reason."""
        super().__init__(str(failure.error))
        self.failure = failure

    @property
    def retriable(self) -> bool:
        """Whether converting the record again may succeed."""
        return bool(getattr(self.failure.error, "retriable", False))


class OpenConverters:
    """The three converters that a run uses, and its chain of transformations.

    Attributes:
        java: what the Java classes among them run in; None: there are none. Then `java_batches.py` converts.
    """

    def __init__(self, config: ResolvedConfig | ResolvedSourceConfig, where: str = "") -> None:
        """Build and configure them, in a JVM of their own if one of them is a Java class.

        Args:
            config: names them.
            where: goes behind the names of Java classes in errors.

        Raises:
            ConfigError: the settings of one of them are wrong.
            ConnectError: the JVM does not start, or a Java class fails.
        """
        self.java = None if config.java is None else _java_chain(config.java, where)
        try:
            self.key = open_converter(config.key_converter, is_key=True, java=self.java)
            self.value = open_converter(config.value_converter, is_key=False, java=self.java)
            self.headers = open_header_converter(config.header_converter, self.java)
            self.chain = TransformChain.open(config.connector.transforms, self.java)
        except BaseException:
            self._close_java()
            raise
        self._names = {
            KEY_CONVERTER: config.key_converter.plugin.name,
            VALUE_CONVERTER: config.value_converter.plugin.name,
            HEADER_CONVERTER: config.header_converter.plugin.name,
        }

    def name_of(self, stage: str) -> str:
        """The class of a converter, by the name of its stage."""
        return self._names[stage]

    def close(self) -> None:
        """Close the transformations, and the JVM; idempotent."""
        self.chain.close()
        self._close_java()

    def _close_java(self) -> None:
        if self.java is not None:
            self.java.close()


def _java_chain(config: JavaChainConfig, where: str) -> JavaChain:
    from airflow_connect.connectors.java.chain import JavaChain

    return JavaChain.start(config, where)


class RecordConverter(OpenConverters):
    """Applies key, value and header converter and then every transformation, in Connect's order.

    Attributes:
        unread: counts the records of which a converter has left something out.
    """

    def __init__(self, config: ResolvedConfig | ResolvedSourceConfig, where: str = "") -> None:
        """Build and configure the parts; see `OpenConverters`.

        Raises:
            ConnectError: one of them cannot be opened.
        """
        super().__init__(config, where)
        self.unread = UnreadCounts(self.key, self.value, self.headers, self.steps)

    @property
    def steps(self) -> Sequence[Stage]:
        """The transformations with their predicates, in order."""
        return self.chain.stages

    @property
    def has_known_headers(self) -> bool:
        """Whether `accepts_headers` knows the header converter, so headers that no stage needs are not converted."""
        return type(self.headers) in _KNOWN_CONVERTERS

    def accepts_headers(self, batch: ColumnBatch) -> bool:
        """Whether every header can be converted, by a converter that is known."""
        from airflow_connect.runtime.executor.unstored_headers import headers_are_convertible

        return headers_are_convertible(self.headers, batch)

    def accepts_keys(self, topic: str, keys: Any) -> bool:
        """Whether every key (binary[n]) can be converted."""
        if type(self.key) in _ACCEPT_ALL or keys.null_count == len(keys):
            return True
        to_columns = getattr(self.key, "to_columns", None)
        try:
            if to_columns is not None and to_columns(topic, keys.drop_null()) is not None:
                return True
            self.unread.clear()
            row = 0
            for key in keys.to_pylist():
                self.unread.end_key(self.key.to_connect(topic, key).schema, row)
                row += key is not None
        except Exception:  # noqa: BLE001 (found again, and reported, record by record)
            self.unread.clear()
            return False
        return True

    def convert(self, record: KafkaRecord) -> SinkRecord | None:
        """Convert a message to a record; None if a transformation drops it.

        Raises:
            ConversionError: a converter or a transformation refused it.
        """
        converted = self._converted(record)
        transformed = self._transformed(converted) if self.chain.stages else converted
        for found in self.unread.found:
            if found:
                self.unread.add(record, converted.key_schema, converted.value_schema)
                break
        return transformed

    def try_convert(self, record: KafkaRecord) -> SinkRecord | None:
        """As `convert`, without counting what a converter has left out.

        Raises:
            ConversionError: a converter or a transformation refused it.
        """
        transformed = self._transformed(self._converted(record))
        self.unread.forget_record()
        return transformed

    def _converted(self, record: KafkaRecord) -> SinkRecord:
        stage = KEY_CONVERTER
        try:
            key = self.key.to_connect(record.topic, record.key)
            stage = VALUE_CONVERTER
            value = self.value.to_connect(record.topic, record.value)
            stage = HEADER_CONVERTER
            headers = tuple(self._header(record.topic, name, data) for name, data in record.headers)
        except Exception as error:
            self.unread.clear()
            raise ConversionError(Failure(stage, self._names[stage], error)) from error
        return sink_record(record, key, value, headers)

    def _transformed(self, record: SinkRecord) -> SinkRecord | None:
        transformed: SinkRecord | None = record
        for stage in self.chain.stages:
            if transformed is None:
                break
            try:
                transformed = stage.apply(transformed)
            except Exception as error:
                self.unread.clear()
                raise ConversionError(Failure(TRANSFORMATION, stage.class_name, error)) from error
        if transformed is None or transformed.consumed is record.consumed:
            return transformed
        # A third-party transformation created a new record instead of a changed one; it is still the same message.
        return transformed.changed(consumed=record.consumed)

    def _header(self, topic: str, name: str, data: bytes | None) -> Header:
        found = self.headers.to_connect_header(topic, name, data)
        return Header(name, found.schema, found.value)


def sink_record(
    record: KafkaRecord, key: SchemaAndValue, value: SchemaAndValue, headers: tuple[Header, ...]
) -> SinkRecord:
    """A message with what its converters have made of it."""
    return SinkRecord(
        topic=record.topic,
        partition=record.partition,
        key_schema=key.schema,
        key=key.value,
        value_schema=value.schema,
        value=value.value,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type=record.timestamp_type,
        headers=headers,
        original_topic=record.topic,
        original_partition=record.partition,
        consumed=record,
    )
