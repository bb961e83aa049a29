"""The partitioners and timestamp extractors of this package: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

_STORAGE = "io.confluent.connect.storage"

TABLES = {
    PluginKind.PARTITIONER: {
        f"{java}.partitioner.{name}Partitioner": f"airflow_connect.layout.partitioners:{name}Partitioner"
        for java in (_STORAGE, "io.confluent.connect.hdfs")
        for name in ("Default", "Field", "TimeBased", "Daily", "Hourly")
    },
    PluginKind.TIMESTAMP_EXTRACTOR: {
        f"{_STORAGE}.partitioner.TimeBasedPartitioner${name}TimestampExtractor": (
            f"airflow_connect.layout.timestamp_extractors:{name}TimestampExtractor"
        )
        for name in ("Wallclock", "Record", "RecordField")
    },
}
