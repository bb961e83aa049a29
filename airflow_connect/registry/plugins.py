"""The converters that keep their schemas in a Schema Registry: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

TABLES = {
    PluginKind.CONVERTER: {
        "io.confluent.connect.avro.AvroConverter": "airflow_connect.registry.converters.avro_converter:AvroConverter",
        "io.confluent.connect.json.JsonSchemaConverter": (
            "airflow_connect.registry.converters.json_schema_converter:JsonSchemaConverter"
        ),
        "io.confluent.connect.protobuf.ProtobufConverter": (
            "airflow_connect.registry.converters.protobuf_converter:ProtobufConverter"
        ),
    },
}
