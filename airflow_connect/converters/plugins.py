"""The converters that need no Schema Registry: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

_CONVERTERS = {
    "org.apache.kafka.connect.json.JsonConverter": "airflow_connect.converters.json.converter:JsonConverter",
    "org.apache.kafka.connect.storage.StringConverter": "airflow_connect.converters.string_converter:StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter": (
        "airflow_connect.converters.byte_array_converter:ByteArrayConverter"
    ),
    **{
        f"org.apache.kafka.connect.converters.{name}Converter": (
            f"airflow_connect.converters.primitive_converters:{name}Converter"
        )
        for name in ("Short", "Integer", "Long", "Float", "Double", "Boolean")
    },
}

TABLES = {
    PluginKind.CONVERTER: _CONVERTERS,
    PluginKind.HEADER_CONVERTER: {
        "org.apache.kafka.connect.storage.SimpleHeaderConverter": (
            "airflow_connect.converters.simple_header_converter:SimpleHeaderConverter"
        ),
        **_CONVERTERS,
    },
}
