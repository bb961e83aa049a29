"""The transformations and predicates of this package: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

_JAVA = "org.apache.kafka.connect.transforms"
_PYTHON = "airflow_connect.transforms"

_OF_KEY_OR_VALUE = {
    "Cast": "fields.cast",
    "ExtractField": "fields.extract_field",
    "Flatten": "fields.flatten",
    "HeaderFrom": "headers.header_from",
    "HoistField": "fields.hoist_field",
    "InsertField": "fields.insert_field",
    "MaskField": "fields.mask_field",
    "ReplaceField": "fields.replace_field",
    "SetSchemaMetadata": "set_schema_metadata",
    "TimestampConverter": "fields.timestamp_converter",
}
"""Module by class. Configurations name the nested classes, `Cast$Key` and `Cast$Value`."""
_OF_RECORD = {
    "DropHeaders": "headers.drop_headers",
    "Filter": "filter",
    "InsertHeader": "headers.insert_header",
    "RegexRouter": "topics.regex_router",
    "TimestampRouter": "topics.timestamp_router",
    "ValueToKey": "fields.value_to_key",
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
