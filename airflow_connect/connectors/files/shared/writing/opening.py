"""Creates the objects of a storage sink from its typed configuration: partitioner, rotation, names, formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config import plugins
from airflow_connect.connectors.files.shared.publishing.state_document import TaskState
from airflow_connect.connectors.files.shared.settings.complete_keys import APPEND, DIRECTORY
from airflow_connect.connectors.files.shared.settings.content import WRITE_NULLS, ContentConfig
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
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.formats.format import Format


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
    partitioner = open_partitioner(config, raw)
    late = open_late_records(config, partitioner, late_before or {})
    if late is not None and config.late_records != APPEND:
        directory = config.late_directory if config.late_records == DIRECTORY else ""
        delimiter = "/" if config.in_file_system else config.directory_delim
        partitioner = LatePartitioner(partitioner, late, directory, delimiter)
    tombstones = None
    if isinstance(config, ContentConfig) and config.on_null == WRITE_NULLS:
        tombstones = config.tombstone_directory
        partitioner = TombstonePartitioner(partitioner, tombstones)
    settings = RotationSettings(
        flush_size=config.flush_size,
        rotate_interval_ms=config.rotate_interval_ms or -1,
        rotate_schedule_interval_ms=config.rotate_schedule_interval_ms or -1,
        zone=Zone.of(config.timezone or "UTC"),
        max_open_files=config.max_open_files or -1,
        rotate_on_directory_change=config.on_partition_change,
        is_time_based=partitioner.is_time_based,
        schema_compatibility=StorageSchemaCompatibility.of(config.schema_compatibility),
        tombstone_directory=tombstones,
        is_compact=config.is_compact,
        keeps_schema=config.keeps_schema,
    )
    return StorageLayout(partitioner, settings, open_names(config), late)


def open_names(config: StorageConfig) -> NameSettings:
    """The grammar of object names.

    Raises:
        ConfigError: a delimiter or directory that names cannot have.
    """
    return NameSettings(
        topics_dir=config.topics_dir,
        directory_delimiter="/" if config.in_file_system else config.directory_delim,
        file_delimiter=config.file_delim,
        pad_width=config.offset_pad_width,
        hold_end=config.in_file_system,
        topic_pattern=config.topic_pattern if config.in_file_system else None,
    )


def open_late_records(
    config: CompleteConfig, partitioner: Partitioner, late_before: Mapping[str, int]
) -> LateRecords | None:
    """Which records are late; None if runs do not detect complete directories.

    Raises:
        ConfigError: directories of this partitioner are never complete.
    """
    return LateRecords(open_grid(partitioner), late_before) if config.finds_complete else None


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


def open_partitioner(config: StorageConfig, raw: Mapping[str, str]) -> Partitioner:
    """The partitioner that `partitioner.class` names, with its schema affix.

    A third-party class (`package.module:Class`) may have a class method `from_config(cls, config: Mapping[str, str])`.
    It gets every key of the connector's configuration as text, with config providers resolved and secrets included,
    and raises ConfigError if a value is wrong. Without that method, the class is called without arguments; a subclass
    of TimeBasedPartitioner gets the arguments of TimeBasedPartitioner. The same applies to `timestamp.extractor` and
    to formats.

    Raises:
        ConfigError: settings are wrong, or the class cannot be created from them.
    """
    delimiter = config.directory_delim
    opened: Any = plugins.load(config.partitioner)
    name = _built_in_name(config.partitioner)
    partitioner: Partitioner
    if name == "FieldPartitioner":
        partitioner = opened(config.partition_fields, delimiter, config.names)
    elif name in ("DailyPartitioner", "HourlyPartitioner"):
        partitioner = opened(config.locale, config.timezone, _extractor(config, raw), delimiter)
    elif _inherits_constructor(opened, TimeBasedPartitioner):
        texts = (config.partition_duration_ms, config.path_format, config.locale, config.timezone)
        partitioner = opened.from_texts(*texts, _extractor(config, raw), delimiter)
    else:
        partitioner = _from_config(opened, config.partitioner, raw, "partitioner.class")
    if config.names is not None and not name:
        partitioner = CheckedNames(partitioner, config.names)
    affix = Affix(config.schema_affix)
    return partitioner if affix is Affix.NONE else SchemaAffixPartitioner(partitioner, affix, delimiter)


def _extractor(config: StorageConfig, raw: Mapping[str, str]) -> Any:
    opened = plugins.load(config.timestamp_extractor)
    if _built_in_name(config.timestamp_extractor) == "RecordFieldTimestampExtractor":
        return opened(config.timestamp_field)
    return _from_config(opened, config.timestamp_extractor, raw, "timestamp.extractor")


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


def open_format(ref: plugins.PluginRef, config: StorageConfig, raw: Mapping[str, str]) -> StreamSettings:
    """A format with its settings, with gzip if `s3.compression.type` requires it.

    Third-party formats are created as in `open_partitioner`; their bytes are never compressed here.
    """
    opened: Any = plugins.load(ref)
    name = _built_in_name(ref)
    if not name:
        return StreamSettings(_from_config(opened, ref, raw, "format.class"))
    arguments: dict[str, Mapping[str, Any]] = {
        "JsonFormat": {},
        "ByteArrayFormat": {},
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
    level = None
    if isinstance(config, ContentConfig):
        gzip, extension, separator = config.compression == "gzip", config.bytes_extension, config.bytes_separator
        arguments["JsonFormat"] = {"decimal_format": config.json_decimal_format, "gzip": gzip}
        arguments["ByteArrayFormat"] = {"extension": extension, "separator": separator, "gzip": gzip}
        level = config.compression_level if gzip and name in ("JsonFormat", "ByteArrayFormat") else None
    file_format: Format = opened(**arguments[name])
    return StreamSettings(file_format, level)


def open_task_plan(config: StorageConfig, context: RoleContext) -> StorageTaskPlan:
    """Everything a task needs."""
    raw, state = context.config, TaskState.from_json(context.state)
    key, header = (config.key_format, config.header_format) if isinstance(config, ContentConfig) else (None, None)
    return StorageTaskPlan(
        layout=open_layout(config, raw, state.late_before),
        value=replace(open_format(config.value_format, config, raw), tells_schema=config.tells_schemas),
        key=open_format(key, config, raw) if key else None,
        headers=open_format(header, config, raw) if header else None,
        now_ms=context.now_ms,
        flush_on_end=context.flush_on_end,
        on_null_values=config.on_null,
        report_nulls=config.reports_nulls,
        stores_records=config.stores_records,
        tells_schema_ids=bool(config.registry_urls),
        check_each=context.check_each,
        remembers_schemas=config.remembers_schema,
        schemas_before=_schemas_before(state) if config.remembers_schema else {},
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
