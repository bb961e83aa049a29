"""The key of files that hold whole records. Confluent's sinks have none: their files lack timestamps, for example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import Problem
from airflow_connect.api.config.plugins import PluginKind, built_in, resolve
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.config.keys.sink import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from airflow_connect.errors import ConfigError

TRANSFORMS = "transforms"
CONVERTERS = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)
_FORMATS = {
    built_in(PluginKind.FORMAT)[f"io.confluent.connect.hdfs.{name}"]
    for name in ("avro.AvroFormat", "parquet.ParquetFormat", "orc.OrcFormat")
}
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_FILES = KeyGroup("Keys and headers")


class WholeRecordConfig(TypedConfig):
    """Whether the files hold whole records."""

    stores_records = _FILES.medium.boolean(
        "store.kafka.records",
        False,
        "Whether a file holds whole records, for a backup: topic, partition, offset, timestamp and its type, key,"
        " value and headers, as the bytes that Kafka has, tombstones included. Converters are not used. It needs"
        " AvroFormat, ParquetFormat or OrcFormat.",
        display_name="Store whole records",
    )


def needs_a_format_with_fields(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """A whole record is a struct of bytes."""
    name = parsed["format.class"]
    if WholeRecordConfig.stores_records.of(parsed) and resolve(PluginKind.FORMAT, name).path not in _FORMATS:
        yield Problem(
            "format.class",
            f"{WholeRecordConfig.stores_records}=true needs a format with fields of bytes, and {name} has none",
            "Use ParquetFormat, AvroFormat or OrcFormat.",
        )


def needs_no_transformations(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """A changed record is not the one that Kafka has."""
    if WholeRecordConfig.stores_records.of(parsed) and parsed[TRANSFORMS]:
        yield Problem(
            TRANSFORMS,
            f"{WholeRecordConfig.stores_records}=true stores records as Kafka has them, so nothing can transform them",
            f"Remove {TRANSFORMS}, or use two connectors.",
        )


def needs_no_converters(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """A converter that is set would have no effect, which its author does not expect."""
    if not WholeRecordConfig.stores_records.of(parsed):
        return
    for key in CONVERTERS:
        name = parsed[key]
        if name and not _keeps_bytes(key, name):
            yield Problem(
                key,
                f"{WholeRecordConfig.stores_records}=true stores the bytes that Kafka has, so {name} is not used",
                f"Remove {key}, or set it to {_BYTES}.",
            )


def _keeps_bytes(key: str, name: str) -> bool:
    kind = PluginKind.HEADER_CONVERTER if key == HEADER_CONVERTER else PluginKind.CONVERTER
    try:
        return resolve(kind, name).path == resolve(kind, _BYTES).path
    except ConfigError:
        return False
