"""From typed configuration to the objects that a storage sink works with: partitioner, rotation, names, formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api import plugins
from airflow_connect.connectors.storage.open_file import StreamSettings
from airflow_connect.connectors.storage.task_plan import StorageLayout, StorageTaskPlan
from airflow_connect.layout.object_names import HEADERS, KEYS, NameSettings, keys_extension
from airflow_connect.layout.partitioners import (
    Affix,
    Partitioner,
    SchemaAffixPartitioner,
    TimeBasedPartitioner,
    TombstonePartitioner,
)
from airflow_connect.layout.rotation import RotationSettings
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from airflow_connect.layout.time_zones import Zone

if TYPE_CHECKING:
    from airflow_connect.api.connector import SinkContext
    from airflow_connect.connectors.storage.config import FormatConfig, LayoutConfig, NullConfig, RotationConfig
    from airflow_connect.formats.format import Format

WRITE_NULLS = "write"


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """The parts of a storage sink's configuration that do not depend on the store."""

    layout: LayoutConfig
    rotation: RotationConfig
    formats: FormatConfig
    nulls: NullConfig


def open_layout(config: StorageConfig) -> StorageLayout:
    """Partitioner, rotation and names.

    Raises:
        ConfigError: a value that only its owner can check, e.g. an illegal date pattern.
    """
    layout, rotation = config.layout, config.rotation
    partitioner = open_partitioner(layout)
    writes_nulls = config.nulls.behavior == WRITE_NULLS
    if writes_nulls:
        partitioner = TombstonePartitioner(partitioner, layout.tombstone_directory)
    settings = RotationSettings(
        flush_size=rotation.flush_size,
        rotate_interval_ms=rotation.rotate_interval_ms or -1,
        rotate_schedule_interval_ms=rotation.rotate_schedule_interval_ms or -1,
        zone=Zone.of(layout.timezone or "UTC"),
        max_open_files=rotation.max_open_files or -1,
        rotate_on_directory_change=rotation.on_partition_change,
        is_time_based=partitioner.is_time_based,
        schema_compatibility=StorageSchemaCompatibility.of(rotation.schema_compatibility),
        tombstone_directory=layout.tombstone_directory if writes_nulls else None,
    )
    names = NameSettings(
        topics_dir=layout.topics_dir,
        directory_delimiter=layout.directory_delim,
        file_delimiter=layout.file_delim,
        pad_width=layout.offset_pad_width,
    )
    return StorageLayout(partitioner, settings, names)


def open_partitioner(layout: LayoutConfig) -> Partitioner:
    """The partitioner that `partitioner.class` names, with its schema affix."""
    opened: Any = plugins.load(layout.partitioner)
    name = layout.partitioner.path.partition(":")[2]
    partitioner: Partitioner
    if name == "FieldPartitioner":
        partitioner = opened(layout.partition_fields, layout.directory_delim)
    elif name in ("DailyPartitioner", "HourlyPartitioner"):
        partitioner = opened(layout.locale, layout.timezone, _extractor(layout), layout.directory_delim)
    elif name == "TimeBasedPartitioner":
        partitioner = TimeBasedPartitioner.from_config(
            layout.partition_duration_ms,
            layout.path_format,
            layout.locale,
            layout.timezone,
            _extractor(layout),
            layout.directory_delim,
        )
    else:
        partitioner = opened()
    affix = Affix(layout.schema_affix)
    return partitioner if affix is Affix.NONE else SchemaAffixPartitioner(partitioner, affix, layout.directory_delim)


def _extractor(layout: LayoutConfig) -> Any:
    opened = plugins.load(layout.timestamp_extractor)
    is_field = layout.timestamp_extractor.path.endswith(":RecordFieldTimestampExtractor")
    return opened(layout.timestamp_field) if is_field else opened()


def open_format(ref: plugins.PluginRef, config: FormatConfig) -> StreamSettings:
    """A format with its settings, and gzip around it where `s3.compression.type` asks for it."""
    opened: Any = plugins.load(ref)
    gzip = config.compression_type == "gzip"
    arguments: Mapping[str, Mapping[str, Any]] = {
        "JsonFormat": {"decimal_format": config.json_decimal_format, "gzip": gzip},
        "ByteArrayFormat": {"extension": config.bytes_extension, "separator": config.bytes_separator, "gzip": gzip},
        "AvroFormat": {
            "codec": config.avro_codec,
            "enhanced_schema": config.enhanced_avro_schemas,
            "connect_meta_data": config.connect_meta_data,
            "allow_optional_map_keys": config.allow_optional_map_keys,
        },
        "ParquetFormat": {"codec": config.parquet_codec},
    }
    name = ref.path.partition(":")[2]
    file_format: Format = opened(**arguments.get(name, {}))
    is_text = name in ("JsonFormat", "ByteArrayFormat")
    return StreamSettings(file_format, config.compression_level if gzip and is_text else None)


def open_task_plan(config: StorageConfig, context: SinkContext) -> StorageTaskPlan:
    """Everything a task needs."""
    formats = config.formats
    return StorageTaskPlan(
        layout=open_layout(config),
        value=open_format(formats.value, formats),
        key=open_format(formats.key, formats) if formats.key else None,
        headers=open_format(formats.header, formats) if formats.header else None,
        now_ms=context.now_ms,
        flush_on_end=context.flush_on_end,
        schedule_expired=context.schedule_expired,
        on_null_values=config.nulls.behavior,
        report_nulls=config.nulls.report_to_dlq,
    )


def extensions(plan: StorageTaskPlan) -> list[str]:
    """Every extension that files of this plan can have."""
    found = [plan.value.format.extension]
    if plan.key is not None:
        found.append(keys_extension(plan.key.format.extension, KEYS))
    if plan.headers is not None:
        found.append(keys_extension(plan.headers.format.extension, HEADERS))
    return found


def key_pattern(plan: StorageTaskPlan, topics: Sequence[str]) -> str:
    """Regular expression of every key that this plan can make, with the groups `topic`, `partition` and `start`."""
    names = plan.layout.names
    dd, fd = re.escape(names.directory_delimiter), re.escape(names.file_delimiter)
    topic = "|".join(re.escape(t) for t in sorted(topics))
    extension = "|".join(re.escape(e) for e in extensions(plan))
    return (
        rf"{re.escape(names.prefix)}(?P<topic>{topic}){dd}(?:{plan.layout.partitioner.directory_regex()}){dd}"
        rf"(?P=topic){fd}(?P<partition>\d+){fd}(?P<start>\d+)(?:{extension})"
    )
