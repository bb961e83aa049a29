"""The key of files that hold whole records. Confluent's sinks have none: their files lack timestamps, for example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, Problem
from airflow_connect.api.config.plugins import PluginKind, built_in, resolve
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.config.keys.sink import HEADER_CONVERTER, KEY_CONVERTER, VALUE_CONVERTER
from airflow_connect.registry.settings import families_to_reach

TRANSFORMS = "transforms"
REGISTRY = "store.kafka.records."
"""Before each setting of the registry, with the names that converters have."""
CONVERTERS = (KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER)
_FORMATS = {
    built_in(PluginKind.FORMAT)[f"io.confluent.connect.hdfs.{name}"]
    for name in ("avro.AvroFormat", "parquet.ParquetFormat", "orc.OrcFormat")
}
_FILES = KeyGroup("Keys and headers")


class WholeRecordConfig(TypedConfig):
    """Whether the files hold whole records."""

    stores_records = _FILES.medium.boolean(
        "store.kafka.records",
        False,
        "Whether a file holds whole records, for a backup: topic, partition, offset, timestamp and its type, key,"
        " value and headers, as the bytes that Kafka has, tombstones included. Converters are not used, and none has to"
        " be set. It needs AvroFormat, ParquetFormat or OrcFormat.",
        display_name="Store whole records",
    )
    registry_urls = _FILES.medium.words(
        "store.kafka.records.schema.registry.url",
        [],
        "Base URLs of the Schema Registry of these records. The schemas whose ids keys and values begin with are then"
        " written beside the data, with the settings of the topics. Other settings of the registry have the same"
        " prefix: store.kafka.records.basic.auth.user.info.",
        display_name="Registry of whole records",
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys, and those of the registry."""
        super().define(definition)
        definition.define_family(*families_to_reach(REGISTRY, "of whole records"))
        # Not an error: the configuration that a manifest keeps has the worker's converters.
        definition.define_unused(
            CONVERTERS,
            beside=(cls.stores_records.name, "true"),
            reason=f"{cls.stores_records}=true stores the bytes that Kafka has, so no converter is used.",
        )


def needs_whole_records(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Only a backup keeps schemas."""
    if WholeRecordConfig.registry_urls.of(parsed) and not WholeRecordConfig.stores_records.of(parsed):
        yield Problem(
            WholeRecordConfig.registry_urls.name,
            f"{WholeRecordConfig.registry_urls} is for backups only, and {WholeRecordConfig.stores_records} is false",
            f"Set {WholeRecordConfig.stores_records}=true, or remove the key.",
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
