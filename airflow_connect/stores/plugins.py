"""The stores that `storage.class` can name: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

TABLES = {
    PluginKind.STORAGE: {
        "io.confluent.connect.s3.storage.S3Storage": "airflow_connect.stores.s3.store:S3Store",
        "io.confluent.connect.hdfs.storage.HdfsStorage": "airflow_connect.stores.hdfs.store:HdfsStore",
    },
}
