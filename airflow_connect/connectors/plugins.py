"""The connectors of this package, and the credentials providers of the S3 sink: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

_FILES, _JDBC = "airflow_connect.connectors.files", "airflow_connect.connectors.jdbc"
_S3 = f"{_FILES}.s3"
_FILE_SOURCE = "airflow_connect.connectors.file_stream.source"
_ICEBERG = "airflow_connect.connectors.iceberg.connector"
_METRICS = "airflow_connect.connectors.metrics"
_RESTORE = "airflow_connect.connectors.restore.connector"

TABLES = {
    PluginKind.CONNECTOR: {
        "io.confluent.connect.s3.S3SinkConnector": f"{_S3}.connector:S3SinkConnector",
        "io.confluent.connect.hdfs.HdfsSinkConnector": f"{_FILES}.hdfs.connector:HdfsSinkConnector",
        "airflow_connect.connectors.local.LocalSinkConnector": f"{_FILES}.local.connector:LocalSinkConnector",
        "org.apache.kafka.connect.file.FileStreamSinkConnector": (
            "airflow_connect.connectors.file_stream.sink.connector:FileStreamSinkConnector"
        ),
        "io.confluent.connect.jdbc.JdbcSinkConnector": f"{_JDBC}.sink.connector:JdbcSinkConnector",
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector": (
            "airflow_connect.connectors.search.connector:ElasticsearchSinkConnector"
        ),
        "org.apache.iceberg.connect.IcebergSinkConnector": f"{_ICEBERG}:IcebergSinkConnector",
        "io.tabular.iceberg.connect.IcebergSinkConnector": f"{_ICEBERG}:IcebergSinkConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector": (
            f"{_FILE_SOURCE}.connector:FileStreamSourceConnector"
        ),
        "io.confluent.connect.jdbc.JdbcSourceConnector": f"{_JDBC}.source.connector:JdbcSourceConnector",
        "org.apache.kafka.connect.mirror.MirrorSourceConnector": (
            "airflow_connect.connectors.mirror.connector:MirrorSourceConnector"
        ),
        "org.apache.kafka.connect.mirror.MirrorCheckpointConnector": (
            "airflow_connect.connectors.mirror.checkpoint.connector:MirrorCheckpointConnector"
        ),
        "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector": (
            "airflow_connect.connectors.mirror.heartbeat.connector:MirrorHeartbeatConnector"
        ),
        "io.confluent.connect.s3.source.S3SourceConnector": f"{_RESTORE}:S3SourceConnector",
        "airflow_connect.connectors.hdfs.HdfsSourceConnector": f"{_RESTORE}:HdfsSourceConnector",
        "airflow_connect.connectors.local.LocalSourceConnector": f"{_RESTORE}:LocalSourceConnector",
        "airflow_connect.connectors.metrics.MetricsSourceConnector": f"{_METRICS}.connector:MetricsSourceConnector",
    },
    # Both generations of the AWS SDK for Java name the same chain.
    PluginKind.CREDENTIALS_PROVIDER: {
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider": (
            f"{_S3}.credentials:DefaultCredentialsProvider"
        ),
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain": f"{_S3}.credentials:DefaultCredentialsProvider",
        "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider": (
            f"{_S3}.credentials:AssumeRoleCredentialsProvider"
        ),
    },
}
