"""The first records of a sink's topics before and after conversion, and the files that they would begin.

Nothing is written, and no group is joined.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConnectError
from airflow_connect.observe.inspecting.records import converter_of, failed_where, first_records, only_sink_of

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord, SinkRecord
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.layout.partitioners import Partitioner
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.executor.converting import RecordConverter
    from airflow_connect.runtime.executor.sink.whole_records import WholeRecordConverter
    from airflow_connect.runtime.spec import RunSpec

WRITTEN, DROPPED, FAILED = "written", "dropped", "failed"
MOST_FILES = 3
_NULL = "its value is null, and behavior.on.null.values=fail"


@dataclass(frozen=True, slots=True)
class Sample:
    """One record.

    Attributes:
        where: `topic-partition@offset`.
        raw_key, raw_value: the bytes in Kafka; None: null.
        key, value: after converters and transformations; None if it failed or was dropped.
        topic: what a transformation has made of the topic.
        outcome: `written`, `dropped` by a transformation, or `failed`.
        error: what failed, and where.
    """

    where: str
    timestamp_ms: int | None
    raw_key: bytes | None
    raw_value: bytes | None
    key: Any = None
    value: Any = None
    topic: str = ""
    outcome: str = WRITTEN
    error: str = ""

    @property
    def size(self) -> int:
        """Bytes of key and value in Kafka."""
        return len(self.raw_key or b"") + len(self.raw_value or b"")


@dataclass(frozen=True, slots=True)
class Samples:
    """What was looked at.

    Attributes:
        records: in the order of topics, partitions and offsets.
        files: names of the first files that a run would begin with these records; () if the sink writes no files.
        records_per_file: `flush.size` of such a sink; 0: unknown.
    """

    records: tuple[Sample, ...]
    files: tuple[str, ...] = ()
    records_per_file: int = 0


def look_at_samples(spec: RunSpec, most: int) -> Samples:
    """The first records that the topics hold.

    Args:
        spec: the connector and its worker.
        most: at most so many of all partitions together.

    Raises:
        ConfigError: the connector is a source, or its configuration is wrong.
        UnavailableError, AccessError: Kafka or the registry cannot be read.
    """
    configuration = only_sink_of(spec)
    with configuration.references.hiding_errors():
        found = first_records(configuration, most)
        converter = converter_of(configuration)
        try:
            namer = _namer_of(configuration)
            samples = [_sample(record, converter, namer) for record in found]
        finally:
            converter.close()
    return (
        Samples(tuple(samples), tuple(namer.names[:MOST_FILES]), namer.flush_size) if namer else Samples(tuple(samples))
    )


def _sample(record: KafkaRecord, converter: RecordConverter | WholeRecordConverter, namer: _Namer | None) -> Sample:
    from airflow_connect.runtime.executor.converting import ConversionError

    def told(outcome: str, error: str = "") -> Sample:
        return Sample(
            record.where, record.timestamp, record.key, record.value, topic=record.topic, outcome=outcome, error=error
        )

    try:
        converted = converter.convert(record)
    except ConversionError as error:
        return told(FAILED, failed_where(error))
    if converted is None:
        return told(DROPPED)
    if namer is not None:
        try:
            refused = namer.place(converted)
        except ConnectError as error:
            refused = str(error)
        if refused:
            return told(FAILED, f"sink: {refused}")
    return Sample(
        record.where,
        converted.timestamp,
        record.key,
        record.value,
        converted.key,
        converted.value,
        str(converted.topic),
    )


@dataclass(slots=True)
class _Namer:
    """Names of files, in the order in which they begin: one ends when `flush_size` records are in it.

    Attributes:
        partitioner: which directory a record gets.
        key_of: directory, topic, partition and offset to a name.
        fails_on_null: whether a record without a value ends the run.
    """

    partitioner: Partitioner
    key_of: Callable[[str, str, int, int], str]
    flush_size: int
    fails_on_null: bool
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    names: list[str] = field(default_factory=list)
    _held: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def place(self, record: SinkRecord) -> str:
        """Put a record into its file; returns why the sink refuses it, or "".

        Raises:
            DataError: it has no valid directory.
        """
        from airflow_connect.layout.names.object_names import under_renamed_topic

        if record.value is None and self.fails_on_null:
            return _NULL
        topic, partition = str(record.original_topic), int(record.original_partition or 0)
        directory = self.partitioner.directory(record, self.now_ms)
        if record.topic != topic:
            directory = under_renamed_topic(str(record.topic), directory)
        place = topic, partition, directory
        if not self._held.get(place):
            self.names.append(self.key_of(directory, topic, partition, record.offset))
        self._held[place] = (self._held.get(place, 0) + 1) % max(1, self.flush_size)
        return ""


def _namer_of(configuration: SinkConfiguration) -> _Namer | None:
    """None: the sink writes no files into a store."""
    from airflow_connect.connectors.files.shared.connector import StorageSinkConnector

    if not issubclass(configuration.connector_class, StorageSinkConnector):
        return None
    config = dict(configuration.resolved.connector.raw)
    with configuration.sink as sink:
        storage, store = sink.call("storage", lambda connector: connector.storage(config))
        return _open_namer(storage, config, store.name)


def _open_namer(storage: StorageConfig, raw: Mapping[str, str], store: str) -> _Namer:
    from airflow_connect.connectors.files.shared.writing.opening import open_format, open_layout
    from airflow_connect.layout.names.object_names import object_key

    layout = open_layout(storage, raw)
    extension = open_format(storage.value_format, storage, raw).format.extension
    names = layout.names
    root = store.partition(" at ")[0].rstrip("/")  # S3: `s3://bucket at http://server`

    def key_of(directory: str, topic: str, partition: int, start: int) -> str:
        key = object_key(directory, topic, partition, start, extension, names)
        if names.hold_end:  # The name also has the last offset, which only the whole file has.
            key = f"{key.removesuffix(extension)}{names.file_delimiter}…{extension}"
        return f"{root}/{key}"

    return _Namer(layout.partitioner, key_of, storage.flush_size or 0, storage.on_null == "fail")
