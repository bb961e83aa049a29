"""From a class name in a configuration to a class: Java names, Connect's aliases, paths, entry points.

Nothing is imported until `load`: an empty run resolves names without paying for formats or stores.
Aliases as in Connect (PluginUtils): the simple class name, and the simple name without the kind's own name at
its end.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from airflow_connect.api.config_values import shortened
from airflow_connect.api.errors import ConfigError
from airflow_connect.api.near_names import did_you_mean, nearest

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


class PluginKind(Enum):
    """What a class is for. The value is (name for people, suffix that an alias drops, entry point group)."""

    CONNECTOR = ("connector", "Connector", "airflow_connect.connectors")
    CONVERTER = ("converter", "Converter", "airflow_connect.converters")
    HEADER_CONVERTER = ("header converter", "HeaderConverter", "airflow_connect.converters")
    TRANSFORMATION = ("transformation", "Transformation", "airflow_connect.transforms")
    PREDICATE = ("predicate", "Predicate", "airflow_connect.predicates")
    CONFIG_PROVIDER = ("config provider", "ConfigProvider", "airflow_connect.config_providers")
    FORMAT = ("format", "Format", "airflow_connect.formats")
    PARTITIONER = ("partitioner", "Partitioner", "airflow_connect.partitioners")
    TIMESTAMP_EXTRACTOR = (
        "timestamp extractor",
        "TimestampExtractor",
        "airflow_connect.timestamp_extractors",
    )
    STORAGE = ("storage", "Storage", "airflow_connect.stores")
    CREDENTIALS_PROVIDER = (
        "credentials provider",
        "CredentialsProvider",
        "airflow_connect.credentials_providers",
    )

    @property
    def label(self) -> str:
        """Name for people."""
        return self.value[0]

    @property
    def suffix(self) -> str:
        """End of a simple class name that an alias may leave out."""
        return self.value[1]

    @property
    def entry_point_group(self) -> str:
        """Where third parties register theirs."""
        return self.value[2]


class PluginRef(NamedTuple):
    """A resolved name: `path` is `package.module:Class`, `name` is the class name to show and to store."""

    kind: PluginKind
    name: str
    path: str


_CONVERTERS = {
    "org.apache.kafka.connect.json.JsonConverter": "airflow_connect.converters.json_converter:JsonConverter",
    "org.apache.kafka.connect.storage.StringConverter": ("airflow_connect.converters.string_converter:StringConverter"),
    "org.apache.kafka.connect.converters.ByteArrayConverter": (
        "airflow_connect.converters.byte_array_converter:ByteArrayConverter"
    ),
}
_NUMBERS = ("Short", "Integer", "Long", "Float", "Double", "Boolean")
_CONVERTERS |= {
    f"org.apache.kafka.connect.converters.{name}Converter": (
        f"airflow_connect.converters.primitive_converters:{name}Converter"
    )
    for name in _NUMBERS
}
_REGISTRY_CONVERTERS = {
    f"io.confluent.connect.{package}.{name}Converter": f"airflow_connect.converters.registry.{module}:{name}Converter"
    for package, name, module in (
        ("avro", "Avro", "avro_converter"),
        ("json", "JsonSchema", "json_schema_converter"),
        ("protobuf", "Protobuf", "protobuf_converter"),
    )
}
_TRANSFORMS = "org.apache.kafka.connect.transforms"
_OF_KEY_OR_VALUE = {
    "Cast": "cast",
    "ExtractField": "extract_field",
    "Flatten": "flatten",
    "HeaderFrom": "header_from",
    "HoistField": "hoist_field",
    "InsertField": "insert_field",
    "MaskField": "mask_field",
    "ReplaceField": "replace_field",
    "SetSchemaMetadata": "set_schema_metadata",
    "TimestampConverter": "timestamp_converter",
}
_OF_RECORD = {
    "DropHeaders": "drop_headers",
    "Filter": "filter",
    "InsertHeader": "insert_header",
    "RegexRouter": "regex_router",
    "TimestampRouter": "timestamp_router",
    "ValueToKey": "value_to_key",
}
_PREDICATES = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
_SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_STORAGE = "io.confluent.connect.storage"
_EXTRACTORS = ("Wallclock", "Record", "RecordField")
_PARTITIONERS = ("Default", "Field", "TimeBased", "Daily", "Hourly")

_BUILT_IN: dict[PluginKind, dict[str, str]] = {
    PluginKind.CONNECTOR: {
        "io.confluent.connect.s3.S3SinkConnector": "airflow_connect.connectors.s3.sink:S3SinkConnector",
        "io.confluent.connect.hdfs.HdfsSinkConnector": "airflow_connect.connectors.hdfs.sink:HdfsSinkConnector",
        "airflow_connect.connectors.local.LocalSinkConnector": (
            "airflow_connect.connectors.local.sink:LocalSinkConnector"
        ),
        "org.apache.kafka.connect.file.FileStreamSinkConnector": (
            "airflow_connect.connectors.file.sink:FileStreamSinkConnector"
        ),
        "org.apache.kafka.connect.file.FileStreamSourceConnector": (
            "airflow_connect.connectors.file_source.connector:FileStreamSourceConnector"
        ),
        "airflow_connect.connectors.metrics.MetricsSourceConnector": (
            "airflow_connect.connectors.metrics.connector:MetricsSourceConnector"
        ),
    },
    PluginKind.CONVERTER: {**_CONVERTERS, **_REGISTRY_CONVERTERS},
    PluginKind.TRANSFORMATION: {
        **{
            f"{_TRANSFORMS}.{name}${part}": f"airflow_connect.transforms.{module}:{name}.{part}"
            for name, module in _OF_KEY_OR_VALUE.items()
            for part in ("Key", "Value")
        },
        **{
            f"{_TRANSFORMS}.{name}": f"airflow_connect.transforms.{module}:{name}"
            for name, module in _OF_RECORD.items()
        },
    },
    PluginKind.PREDICATE: {
        f"{_TRANSFORMS}.predicates.{name}": f"airflow_connect.transforms.predicates:{name}" for name in _PREDICATES
    },
    PluginKind.CONFIG_PROVIDER: {
        f"org.apache.kafka.common.config.provider.{name}ConfigProvider": (
            f"airflow_connect.config_providers.{module}:{name}ConfigProvider"
        )
        for name, module in (("File", "file"), ("Directory", "directory"), ("EnvVar", "environment"))
    },
    PluginKind.HEADER_CONVERTER: {
        _SIMPLE_HEADERS: "airflow_connect.converters.simple_header_converter:SimpleHeaderConverter",
        **_CONVERTERS,
    },
    PluginKind.FORMAT: {
        f"io.confluent.connect.{package}": f"airflow_connect.formats.{path}"
        for package, path in (
            ("s3.format.avro.AvroFormat", "avro:AvroFormat"),
            ("s3.format.json.JsonFormat", "json_lines:JsonFormat"),
            ("s3.format.parquet.ParquetFormat", "parquet:ParquetFormat"),
            ("s3.format.bytearray.ByteArrayFormat", "raw_bytes:ByteArrayFormat"),
            ("hdfs.avro.AvroFormat", "avro:AvroFormat"),
            ("hdfs.json.JsonFormat", "json_lines:JsonFormat"),
            ("hdfs.parquet.ParquetFormat", "parquet:ParquetFormat"),
            ("hdfs.orc.OrcFormat", "orc:OrcFormat"),
            ("hdfs.string.StringFormat", "string_lines:StringFormat"),
        )
    },
    PluginKind.PARTITIONER: {
        f"{package}.partitioner.{name}Partitioner": f"airflow_connect.layout.partitioners:{name}Partitioner"
        for package in (_STORAGE, "io.confluent.connect.hdfs")
        for name in _PARTITIONERS
    },
    PluginKind.TIMESTAMP_EXTRACTOR: {
        f"{_STORAGE}.partitioner.TimeBasedPartitioner${name}TimestampExtractor": (
            f"airflow_connect.layout.timestamp_extractors:{name}TimestampExtractor"
        )
        for name in _EXTRACTORS
    },
    PluginKind.STORAGE: {
        "io.confluent.connect.s3.storage.S3Storage": "airflow_connect.stores.s3_staging:S3Stager",
        "io.confluent.connect.hdfs.storage.HdfsStorage": "airflow_connect.stores.hdfs_store:HdfsStore",
    },
    # Both generations of the AWS SDK for Java name the same chain. The path says how boto3 is to get
    # credentials.
    PluginKind.CREDENTIALS_PROVIDER: {
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider": (
            "airflow_connect.connectors.s3.credentials:DefaultCredentialsProvider"
        ),
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain": (
            "airflow_connect.connectors.s3.credentials:DefaultCredentialsProvider"
        ),
        "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider": (
            "airflow_connect.connectors.s3.credentials:AssumeRoleCredentialsProvider"
        ),
    },
}


def built_in(kind: PluginKind) -> dict[str, str]:
    """Java class name to dotted path of everything that this package ships for `kind`."""
    return dict(_BUILT_IN[kind])


def aliases(kind: PluginKind) -> list[str]:
    """Simple class names of the built-in plugins of `kind`, for messages."""
    # `Cast$Value`: the part of the record is what tells two transformations apart.
    simple = (lambda name: name.rpartition(".")[2]) if kind is PluginKind.TRANSFORMATION else _simple_name
    return list(dict.fromkeys(map(simple, _BUILT_IN[kind])))


def resolve(kind: PluginKind, name: str) -> PluginRef:
    """Find the class that `name` means, without importing it.

    Tried in order: full Java name, dotted Python path (`package.module:Class`, whose module must exist),
    Connect alias of a built-in class, entry point name, `package.module.Class`. An alias that means several
    classes means none, as in Connect.

    Raises:
        ConfigError: nothing is called so; the message lists the nearest known names.
    """
    table = _BUILT_IN[kind]
    if name in table:
        return PluginRef(kind, name, table[name])
    if name in table.values() or (_PATH.fullmatch(name) and _module_exists(name.partition(":")[0])):
        return PluginRef(kind, name, name)
    # Before entry points: reading those of a whole Airflow installation takes 40 ms.
    by_alias = _by_alias(kind)
    if name in by_alias:
        return PluginRef(kind, *by_alias[name])
    registered = _registered(kind)
    if name in registered:
        return PluginRef(kind, name, registered[name])
    module, _, attribute = name.rpartition(".")
    if _DOTTED.fullmatch(name) and _module_exists(module):
        return PluginRef(kind, name, f"{module}:{attribute}")
    raise _not_found(kind, name)


def load(ref: PluginRef) -> Any:
    """Import the class.

    Raises:
        ConfigError: the module cannot be imported or has no such attribute.
    """
    module_name, _, attribute = ref.path.partition(":")
    try:
        found: Any = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"The {ref.kind.label} {ref.name} cannot be loaded from {ref.path}: {error}.",
            suggestion="Install the package that holds it where the driver and the executors run.",
            code="plugin.not_loadable",
        ) from error
    return found


def load_class(kind: PluginKind, name: str) -> Any:
    """`resolve`, then `load`."""
    return load(resolve(kind, name))


def _simple_name(java_name: str) -> str:
    return re.split(r"[.$:]", java_name)[-1]


@cache
def _by_alias(kind: PluginKind) -> dict[str, tuple[str, str]]:
    """Alias to (full name, path); aliases of several different classes are left out."""
    found: dict[str, list[tuple[str, str]]] = {}
    for full, path in _BUILT_IN[kind].items():
        simple = _simple_name(full)
        nested = full.rpartition(".")[2]
        for alias in {simple, nested, simple.removesuffix(kind.suffix)}:
            found.setdefault(alias, []).append((full, path))
    return {alias: refs[0] for alias, refs in found.items() if len({path for _, path in refs}) == 1}


@cache
def _registered(kind: PluginKind) -> dict[str, str]:
    """Entry points of third parties: their names and their paths."""
    from importlib.metadata import entry_points  # the import alone costs 20 ms

    found: dict[str, str] = {}
    for point in entry_points(group=kind.entry_point_group):
        found[point.name] = found[point.value] = point.value
    return found


def _module_exists(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package is missing, or a loaded module without a spec
        return False


def _not_found(kind: PluginKind, name: str) -> ConfigError:
    known = [*_BUILT_IN[kind], *_by_alias(kind), *_registered(kind)]
    near = nearest(name, known, count=3) or nearest(_simple_name(name), _by_alias(kind), count=3)
    hint = did_you_mean(near) or f"Known: {', '.join(aliases(kind))}."
    return ConfigError(
        f"There is no {kind.label} called {shortened(name)!r}.",
        code="plugin.not_found",
        suggestion=f"{hint} A plugin of your own is named by its dotted path, package.module:Class.",
    )
