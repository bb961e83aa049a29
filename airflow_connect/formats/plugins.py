"""The formats of this package: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

TABLES = {
    PluginKind.FORMAT: {
        f"io.confluent.connect.{java}": f"airflow_connect.formats.{path}"
        for java, path in (
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
}
