"""Creates the objects of a storage sink from its typed configuration: partitioner, rotation, names, formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.connectors.files.shared.publishing.state_document import TaskState
from airflow_connect.connectors.files.shared.settings.complete_keys import APPEND, DIRECTORY
from airflow_connect.connectors.files.shared.value_schemas import schema_of_text
from airflow_connect.connectors.files.shared.writing.open_file import StreamSettings
from airflow_connect.connectors.files.shared.writing.task_plan import StorageLayout, StorageTaskPlan
from airflow_connect.errors import ConfigError
from airflow_connect.layout.file_system_names import CheckedNames
from airflow_connect.layout.late_records import LatePartitioner, LateRecords
from airflow_connect.layout.names.object_names import HEADERS, KEYS, NameSettings, keys_extension
from airflow_connect.layout.partitioners import (
    Affix,
    Partitioner,
    SchemaAffixPartitioner,
    TimeBasedPartitioner,
    TombstonePartitioner,
    innermost,
)
from airflow_connect.layout.rotation import RotationSettings
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from airflow_connect.layout.time.time_zones import Zone
from airflow_connect.layout.time_grid import TimeGrid

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.sink_roles import RoleContext
    from airflow_connect.connectors.files.shared.publishing.topic_names import TopicName
    from airflow_connect.connectors.files.shared.settings.complete_keys import CompleteConfig
    from airflow_connect.connectors.files.shared.settings.config import FormatConfig, LayoutConfig, StorageConfig
    from airflow_connect.formats.format import Format

WRITE_NULLS = "write"


def open_layout(
    config: StorageConfig, raw: Mapping[str, str], late_before: Mapping[str, int] | None = None
) -> StorageLayout:
    """Partitioner, rotation and names.

    Args:
        config: the typed configuration.
        raw: the connector's configuration, for third-party classes.
        late_before: see `TaskState`.

    Raises:
        ConfigError: a value is wrong that only the class itself can check, such as a date pattern.
    """
    layout, rotation = config.layout, config.rotation
    partitioner = open_partitioner(layout, raw)
    late = open_late_records(layout.complete, partitioner, late_before or {})
    if late is not None and layout.complete.late_records != APPEND:
        directory = layout.complete.late_directory if layout.complete.late_records == DIRECTORY else ""
        partitioner = LatePartitioner(
            partitioner, late, directory, "/" if layout.in_file_system else layout.directory_delim
        )
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
        is_compact=rotation.is_compact,
        keeps_schema=rotation.keeps_schema,
    )
    return StorageLayout(partitioner, settings, open_names(layout), late)


def open_names(layout: LayoutConfig) -> NameSettings:
    """The grammar of object names.

    Raises:
        ConfigError: a delimiter or directory that names cannot have.
    """
    return NameSettings(
        topics_dir=layout.topics_dir,
        directory_delimiter="/" if layout.in_file_system else layout.directory_delim,
        file_delimiter=layout.file_delim,
        pad_width=layout.offset_pad_width,
        hold_end=layout.in_file_system,
        topic_pattern=layout.topic_pattern if layout.in_file_system else None,
    )


def open_late_records(
    complete: CompleteConfig, partitioner: Partitioner, late_before: Mapping[str, int]
) -> LateRecords | None:
    """Which records are late; None if runs do not detect complete directories.

    Raises:
        ConfigError: directories of this partitioner are never complete.
    """
    return LateRecords(open_grid(partitioner), late_before) if complete.is_on else None


def open_grid(partitioner: Partitioner) -> TimeGrid:
    """The times at which directories of a partitioner end.

    Raises:
        ConfigError: they are unknown, or directory names repeat.
    """
    inner = innermost(partitioner)
    if type(inner) is not TimeBasedPartitioner:
        raise ConfigError(
            f"It is unknown when directories of {type(inner).__name__} are complete.",
            suggestion="Use TimeBasedPartitioner, DailyPartitioner or HourlyPartitioner, or remove complete.directories"
            " and complete.marker.",
            config_path="partitioner.class",
        )
    return TimeGrid(inner)


def open_partitioner(layout: LayoutConfig, raw: Mapping[str, str]) -> Partitioner:
    """The partitioner that `partitioner.class` names, with its schema affix.

    A third-party class (`package.module:Class`) may have a class method `from_config(cls, config: Mapping[str, str])`.
    It gets every key of the connector's configuration as text, with config providers resolved and secrets included,
    and raises ConfigError if a value is wrong. Without that method, the class is called without arguments; a subclass
    of TimeBasedPartitioner gets the arguments of TimeBasedPartitioner. The same applies to `timestamp.extractor` and
    to formats.

    Raises:
        ConfigError: settings are wrong, or the class cannot be created from them.
    """
    delimiter = layout.directory_delim
    opened: Any = plugins.load(layout.partitioner)
    name = _built_in_name(layout.partitioner)
    partitioner: Partitioner
    if name == "FieldPartitioner":
        partitioner = opened(layout.partition_fields, delimiter, layout.names)
    elif name in ("DailyPartitioner", "HourlyPartitioner"):
        partitioner = opened(layout.locale, layout.timezone, _extractor(layout, raw), delimiter)
    elif _inherits_constructor(opened, TimeBasedPartitioner):
        duration_ms, path, locale, zone = (
            layout.partition_duration_ms,
            layout.path_format,
            layout.locale,
            layout.timezone,
        )
        partitioner = opened.from_texts(duration_ms, path, locale, zone, _extractor(layout, raw), delimiter)
    else:
        partitioner = _from_config(opened, layout.partitioner, raw, "partitioner.class")
    if layout.names is not None and not name:
        partitioner = CheckedNames(partitioner, layout.names)
    affix = Affix(layout.schema_affix)
    return partitioner if affix is Affix.NONE else SchemaAffixPartitioner(partitioner, affix, delimiter)


def _extractor(layout: LayoutConfig, raw: Mapping[str, str]) -> Any:
    opened = plugins.load(layout.timestamp_extractor)
    if _built_in_name(layout.timestamp_extractor) == "RecordFieldTimestampExtractor":
        return opened(layout.timestamp_field)
    return _from_config(opened, layout.timestamp_extractor, raw, "timestamp.extractor")


def _built_in_name(ref: plugins.PluginRef) -> str:
    """Class name of a built-in plugin, else ""."""
    return ref.path.partition(":")[2] if ref.path in plugins.built_in(ref.kind).values() else ""


def _inherits_constructor(opened: Any, kind: type) -> bool:
    return isinstance(opened, type) and issubclass(opened, kind) and not hasattr(opened, "from_config")


def _from_config(opened: Any, ref: plugins.PluginRef, raw: Mapping[str, str], key: str) -> Any:
    """An instance of a class that configures itself; see `open_partitioner`."""
    make = getattr(opened, "from_config", None)
    try:
        return opened() if make is None else make(raw)
    except ConfigError:
        raise
    except Exception as error:  # Third-party code; the message is for the author of the configuration.
        raise ConfigError(
            f"The {ref.kind.label} {ref.name} cannot be created from this configuration:"
            f" {type(error).__name__}: {error}.",
            config_path=key,
            suggestion="Set the keys that this class requires.",
        ) from error


def open_format(ref: plugins.PluginRef, config: FormatConfig, raw: Mapping[str, str]) -> StreamSettings:
    """A format with its settings, with gzip if `s3.compression.type` requires it.

    Third-party formats are created as in `open_partitioner`; their bytes are never compressed here.
    """
    opened: Any = plugins.load(ref)
    name = _built_in_name(ref)
    if not name:
        return StreamSettings(_from_config(opened, ref, raw, "format.class"))
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
        "ParquetFormat": {
            "codec": config.parquet_codec,
            "allow_optional_map_keys": config.allow_optional_map_keys,
            "codec_in_extension": config.codec_in_extension,
        },
        "OrcFormat": {"allow_optional_map_keys": config.allow_optional_map_keys},
        "StringFormat": {},
    }
    file_format: Format = opened(**arguments[name])
    is_text = name in ("JsonFormat", "ByteArrayFormat")
    return StreamSettings(file_format, config.compression_level if gzip and is_text else None)


def open_task_plan(config: StorageConfig, context: RoleContext) -> StorageTaskPlan:
    """Everything a task needs."""
    formats, raw, state = config.formats, context.config, TaskState.from_json(context.state)
    return StorageTaskPlan(
        layout=open_layout(config, raw, state.late_before),
        value=replace(open_format(formats.value, formats, raw), tells_schema=formats.tells_schemas),
        key=open_format(formats.key, formats, raw) if formats.key else None,
        headers=open_format(formats.header, formats, raw) if formats.header else None,
        now_ms=context.now_ms,
        flush_on_end=context.flush_on_end,
        on_null_values=config.nulls.behavior,
        report_nulls=config.nulls.report_to_dlq,
        check_each=context.check_each,
        remembers_schemas=config.rotation.remembers_schema,
        schemas_before=_schemas_before(state) if config.rotation.remembers_schema else {},
    )


def _schemas_before(state: TaskState) -> dict[TopicPartition, Schema]:
    known = {text: schema_of_text(text) for text in dict.fromkeys(state.schemas_before.values())}
    return {tp: schema for tp, text in state.schemas_before.items() if (schema := known[text]) is not None}


def extensions(plan: StorageTaskPlan) -> list[str]:
    """All extensions that files of this plan can have."""
    found = [plan.value.format.extension]
    if plan.key is not None:
        found.append(keys_extension(plan.key.format.extension, KEYS))
    if plan.headers is not None:
        found.append(keys_extension(plan.headers.format.extension, HEADERS))
    return found


def key_pattern(plan: StorageTaskPlan, topics: Mapping[str, Sequence[TopicName]]) -> str:
    """Regular expression that matches every key of this plan, with the groups `topic`, `partition` and `start`.

    Args:
        plan: layout and formats.
        topics: names that records of each topic can have after the transformations; the group `topic` is the original
            one.
    """
    names = plan.layout.names
    dd, fd = re.escape(names.directory_delimiter), re.escape(names.file_delimiter)
    original = "|".join(re.escape(topic) for topic in sorted(topics))
    extension = "|".join(re.escape(e) for e in extensions(plan))
    by_prefix: dict[str, dict[str, Sequence[TopicName]]] = {}
    for topic in sorted(topics):
        by_prefix.setdefault(names.prefix_of(topic), {})[topic] = topics[topic]
    folders = "|".join(
        f"{re.escape(prefix)}(?:{_folders(names, these, f'own{number}')})"
        for number, (prefix, these) in enumerate(by_prefix.items())
    )
    return (
        rf"(?:{folders})(?:{plan.layout.partitioner.directory_regex()}){dd}"
        rf"(?P<topic>{original}){fd}(?P<partition>\d+){fd}(?P<start>\d+)(?:{extension})"
    )


def _folders(names: NameSettings, topics: Mapping[str, Sequence[TopicName]], group: str) -> str:
    """Folders of topics, each with a look-ahead for the original topic in the file name.

    Without it, merged topics would let files of any topic match the folder of any other. `group`: a name that occurs
    only once in the whole expression.
    """
    dd, fd = re.escape(names.directory_delimiter), re.escape(names.file_delimiter)
    file_name = rf"{dd}{{}}{fd}\d+{fd}\d+(?:\D.*)?$"
    unchanged = [topic for topic, final in topics.items() if [name.exact for name in final] == [topic]]
    by_names: dict[str, list[str]] = {}
    for topic in sorted(topics.keys() - set(unchanged)):
        by_names.setdefault("|".join(name.regex for name in topics[topic]), []).append(re.escape(topic))
    folders = [
        f"(?:{renamed}){dd}(?=.*{file_name.format('(?:' + '|'.join(originals) + ')')})"
        for renamed, originals in by_names.items()
    ]
    if unchanged:
        own = "|".join(re.escape(topic) for topic in sorted(unchanged))
        folders.insert(0, f"(?P<{group}>{own}){dd}(?=.*{file_name.format(f'(?P={group})')})")
    return "|".join(folders)


def key_prefixes(plan: StorageTaskPlan, topics: Mapping[str, Sequence[TopicName]]) -> tuple[str, ...]:
    """Prefixes of those keys; no prefix contains another."""
    names = plan.layout.names
    found = sorted(
        names.prefix_of(topic) + (name.head if name.exact is None else f"{name.exact}{names.directory_delimiter}")
        for topic, final in topics.items()
        for name in final
    )
    return tuple(p for p in dict.fromkeys(found) if not any(p != other and p.startswith(other) for other in found))
