"""What the scan knows about Kafka's own classes: the interfaces of plugins, their subtypes, and which are isolated."""

from __future__ import annotations

import re

SINK, SOURCE, CONVERTER, HEADER_CONVERTER = "sink", "source", "converter", "header_converter"
TRANSFORMATION, PREDICATE, CONFIG_PROVIDER = "transformation", "predicate", "configprovider"
KINDS = (SINK, SOURCE, CONVERTER, HEADER_CONVERTER, TRANSFORMATION, PREDICATE, CONFIG_PROVIDER)
"""As Kafka Connect names them: org.apache.kafka.connect.runtime.isolation.PluginType."""

INTERFACES = {
    "org/apache/kafka/connect/sink/SinkConnector": SINK,
    "org/apache/kafka/connect/source/SourceConnector": SOURCE,
    "org/apache/kafka/connect/storage/Converter": CONVERTER,
    "org/apache/kafka/connect/storage/HeaderConverter": HEADER_CONVERTER,
    "org/apache/kafka/connect/transforms/Transformation": TRANSFORMATION,
    "org/apache/kafka/connect/transforms/predicates/Predicate": PREDICATE,
    "org/apache/kafka/common/config/provider/ConfigProvider": CONFIG_PROVIDER,
}
"""What a plugin extends or implements, and its kind."""

_STORAGE, _CONVERTERS, _TRANSFORMS = (
    "org/apache/kafka/connect/storage/", "org/apache/kafka/connect/converters/", "org/apache/kafka/connect/transforms/"
)  # fmt: skip
_BOTH = (CONVERTER, HEADER_CONVERTER)
SUBTYPES: dict[str, tuple[str, ...]] = {
    f"{_STORAGE}StringConverter": _BOTH,
    f"{_STORAGE}SimpleHeaderConverter": (HEADER_CONVERTER,),
    "org/apache/kafka/connect/json/JsonConverter": _BOTH,
    **{
        f"{_CONVERTERS}{name}Converter": _BOTH
        for name in ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Number", "Short")
    },
    **{
        f"{_TRANSFORMS}{name}{variant}": (TRANSFORMATION,)
        for name in (
            "Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField",
            "SetSchemaMetadata", "TimestampConverter",
        )
        for variant in ("", "$Key", "$Value")
    },
    **{
        f"{_TRANSFORMS}{name}": (TRANSFORMATION,)
        for name in ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")
    },
    **{
        f"{_TRANSFORMS}predicates/{name}": (PREDICATE,)
        for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
    },
    "org/apache/kafka/connect/file/FileStreamSinkConnector": (SINK,),
    "org/apache/kafka/connect/file/FileStreamSourceConnector": (SOURCE,),
    **{
        f"org/apache/kafka/common/config/provider/{name}ConfigProvider": (CONFIG_PROVIDER,)
        for name in ("Directory", "EnvVar", "File")
    },
}  # fmt: skip
"""Kafka's own classes that a plugin may extend without having them in its folder, and their kinds (Kafka 4.3.1)."""

SERVICES = {kind: name.replace("/", ".") for name, kind in INTERFACES.items()}
"""By kind, the name of the file in META-INF/services."""

# Source: EXCLUDE and INCLUDE of PluginUtils (Kafka 4.3.1), as far as Kafka's own packages are concerned: a class
# outside of INCLUDE is taken from the worker, even if a plugin's folder has it.
_OF_WORKER = re.compile(r"(?:java|javax\.[a-z.]+|org\.apache\.kafka|org\.slf4j)\..*")
_ISOLATED = re.compile(
    r"org\.apache\.kafka\.(?:connect\.(?:transforms\.(?!Transformation|predicates\.Predicate$).*|json\..*|file\..*"
    r"|mirror\..*|mirror-client\..*|converters\..*|storage\.StringConverter|storage\.SimpleHeaderConverter"
    r"|rest\.basic\.auth\.extension\.BasicAuthSecurityRestExtension"
    r"|connector\.policy\.(?!ConnectorClientConfig(?:OverridePolicy|Request(?:\$ClientType)?)$).*)"
    r"|common\.config\.provider\.(?!ConfigProvider$).*)"
)


def is_isolated(class_name: str) -> bool:
    """Whether the loader of a plugin takes a class (with dots) from the plugin's own folder."""
    return not _OF_WORKER.fullmatch(class_name) or _ISOLATED.fullmatch(class_name) is not None
