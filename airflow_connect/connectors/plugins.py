"""The connectors of this package, and the credentials providers of the S3 sink: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

_S3 = "airflow_connect.connectors.s3"
_FILE_SOURCE = "airflow_connect.connectors.file_source"
_METRICS = "airflow_connect.connectors.metrics"

TABLES = {
    PluginKind.CONNECTOR: {
        "io.confluent.connect.s3.S3SinkConnector": f"{_S3}.sink:S3SinkConnector",
        "io.confluent.connect.hdfs.HdfsSinkConnector": "airflow_connect.connectors.hdfs.sink:HdfsSinkConnector",
        "airflow_connect.connectors.local.LocalSinkConnector": (
            "airflow_connect.connectors.local.sink:LocalSinkConnector"
        ),
        "org.apache.kafka.connect.file.FileStreamSinkConnector": (
            "airflow_connect.connectors.file.sink:FileStreamSinkConnector"
        ),
        "io.confluent.connect.jdbc.JdbcSinkConnector": "airflow_connect.connectors.jdbc_sink.sink:JdbcSinkConnector",
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector": (
            "airflow_connect.connectors.search_sink.sink:ElasticsearchSinkConnector"
        ),
        "org.apache.kafka.connect.file.FileStreamSourceConnector": (
            f"{_FILE_SOURCE}.connector:FileStreamSourceConnector"
        ),
        "io.confluent.connect.jdbc.JdbcSourceConnector": (
            "airflow_connect.connectors.jdbc_source.connector:JdbcSourceConnector"
        ),
        "org.apache.kafka.connect.mirror.MirrorSourceConnector": (
            "airflow_connect.connectors.mirror.connector:MirrorSourceConnector"
        ),
        "org.apache.kafka.connect.mirror.MirrorCheckpointConnector": (
            "airflow_connect.connectors.mirror.checkpoint.connector:MirrorCheckpointConnector"
        ),
        "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector": (
            "airflow_connect.connectors.mirror.heartbeat.connector:MirrorHeartbeatConnector"
        ),
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
