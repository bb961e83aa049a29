"""The transformations and predicates of this package: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.config.definition.plugins import PluginKind

_JAVA = "org.apache.kafka.connect.transforms"
_PYTHON = "airflow_connect.transforms"

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
"""Module by class. Configurations name the nested classes, `Cast$Key` and `Cast$Value`."""
_OF_RECORD = {
    "DropHeaders": "drop_headers",
    "Filter": "filter",
    "InsertHeader": "insert_header",
    "RegexRouter": "regex_router",
    "TimestampRouter": "timestamp_router",
    "ValueToKey": "value_to_key",
}
_PREDICATES = ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")

TABLES = {
    PluginKind.TRANSFORMATION: {
        **{
            f"{_JAVA}.{name}${part}": f"{_PYTHON}.{module}:{name}.{part}"
            for name, module in _OF_KEY_OR_VALUE.items()
            for part in ("Key", "Value")
        },
        **{f"{_JAVA}.{name}": f"{_PYTHON}.{module}:{name}" for name, module in _OF_RECORD.items()},
    },
    PluginKind.PREDICATE: {f"{_JAVA}.predicates.{name}": f"{_PYTHON}.predicates:{name}" for name in _PREDICATES},
}
