"""Schemas of the last published files, for partitions whose schema no run has stored.

An Avro file holds its schema in the header, a Parquet file of Confluent's sink in the footer, as an Avro schema with
Connect's properties (including `connect.version`). Files without a schema, or whose schema has no version, are ignored:
the partition starts without a schema, and its first record sets it. ORC files are ignored too: Confluent's reader names
their schema `record`, which does not match the schema of any record. If the version is missing
(`connect.meta.data=false`), Confluent's sink fails with "Schema version required". Source: TopicPartitionWriter,
AvroFileReader, ParquetFileReader, OrcFileReader; AvroReadSupport for the footer's key.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.files.hdfs.taking_over import COMMITTED
from airflow_connect.connectors.files.shared.value_schemas import schema_text
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.errors import DataError, SchemaError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.connectors.files.hdfs.file_trees import FileTree, Found
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.layout.names.object_names import NameSettings

AVRO, PARQUET = ".avro", ".parquet"
_AVRO_KEY = "avro.schema"
_PARQUET_KEYS = (b"parquet.avro.schema", b"avro.schema")
_HEADERS = (64 << 10, 4 << 20, 256 << 20)
"""How many bytes of an Avro file are read at first, to get its header."""
_PARQUET_END = 8
_THREADS = 16


class LastSchemas:
    """Finds the last file of each topic-partition and reads its schema."""

    def __init__(self, tree: FileTree, names: NameSettings, formats: StorageConfig) -> None:
        """No request yet."""
        self._tree = tree
        self._names = names
        self._extension = {"AvroFormat": AVRO, "ParquetFormat": PARQUET}.get(
            formats.value_format.path.partition(":")[2], ""
        )
        self._settings = AvroSettings(
            enhanced_schema=formats.enhanced_avro_schemas, allow_optional_map_keys=formats.allow_optional_map_keys
        )
        self._last_of_topic = cache(self._last_files)

    def of(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, str]:
        """Schemas in JsonConverter's form, for those of `partitions` whose last file has one with a version.

        Raises:
            AccessError, UnavailableError: the file system refused, or did not answer.
            DataError: a file is not an Avro or Parquet file although its name says so; the message names it.
        """
        if not self._extension:
            return {}
        files = {tp: self._last_of_topic(tp.topic).get(tp.partition) for tp in partitions}
        wanted = {tp: file for tp, file in files.items() if file is not None and file.path.endswith(self._extension)}
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="last-schemas") as pool:
            texts = dict(zip(wanted, pool.map(self._schema, wanted.values()), strict=True))
        return {tp: text for tp, text in texts.items() if text}

    def _last_files(self, topic: str) -> dict[int, Found]:
        """By partition: the published file with the highest offset."""
        found: dict[int, tuple[int, Found]] = {}
        for file in self._tree.walk(self._tree.path(f"{self._names.prefix_of(topic)}{topic}")):
            name = COMMITTED.fullmatch(file.path.rpartition("/")[2])
            if name is None or name[1] != topic:
                continue
            partition, end = int(name[2]), int(name[4])
            if partition not in found or end > found[partition][0]:
                found[partition] = (end, file)
        return {partition: file for partition, (_, file) in found.items()}

    def _schema(self, file: Found) -> str:
        try:
            given = self._avro_schema(file) if self._extension == AVRO else self._parquet_schema(file)
            schema = None if given is None else read_schema(given, (), self._settings).schema
        except SchemaError as error:
            raise _unreadable(file, error.message) from error
        except (
            ValueError,
            EOFError,
            KeyError,
        ) as error:  # What fastavro, pyarrow and json raise for invalid bytes.
            raise _unreadable(file, f"{type(error).__name__}: {error}") from error
        return "" if schema is None or schema.version is None else schema_text(schema)

    def _avro_schema(self, file: Found) -> Any:
        import fastavro

        for size in _HEADERS:
            data = self._tree.read_part(file.path, 0, min(size, file.size))
            if data is None:
                return None
            try:
                return json.loads(fastavro.reader(io.BytesIO(data)).metadata[_AVRO_KEY])
            except (EOFError, ValueError):
                if size >= file.size or size == _HEADERS[-1]:
                    raise
        return None

    def _parquet_schema(self, file: Found) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        end = self._tree.read_part(file.path, max(0, file.size - _PARQUET_END), min(_PARQUET_END, file.size))
        if end is None:
            return None
        length = int.from_bytes(end[:4], "little") + _PARQUET_END
        if len(end) < _PARQUET_END or length > file.size:
            raise ValueError("the file has no footer")
        footer = self._tree.read_part(file.path, file.size - length, length)
        if footer is None:
            return None
        try:
            metadata = pq.read_metadata(pa.BufferReader(footer)).metadata or {}
        except OSError as error:  # pyarrow raises this for an invalid footer; there was no input or output.
            raise ValueError(str(error)) from error
        given = next((metadata[key] for key in _PARQUET_KEYS if key in metadata), None)
        return None if given is None else json.loads(given)


def _unreadable(file: Found, why: str) -> DataError:
    return DataError(
        f"The schema of {file.path}, the last file of its topic-partition, cannot be read: {why}.",
        code="data.schema_of_last_file",
        suggestion="Move the file away if it is damaged, or set schema.compatibility=NONE.",
        config_path="schema.compatibility",
    )
