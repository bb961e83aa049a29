"""The HDFS sink's own keys, with Confluent's names, types, defaults and checks, and their values.

Source: Confluent's kafka-connect-hdfs (HdfsSinkConnectorConfig) and kafka-connect-storage-common (HiveConfig).
Documentation texts are ours.
"""

from __future__ import annotations

from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import EnumString
from airflow_connect.layout.names import topic_directories
from airflow_connect.stores.hdfs.settings import JVM, NATIVE

_HDFS, _SECURITY, _HIVE, _STORAGE = KeyGroup("HDFS"), KeyGroup("Security"), KeyGroup("Hive"), KeyGroup("Storage")
_NO_TICKETS = "A run logs in when it starts, and ends before its ticket expires."


class HdfsKeys(TypedConfig):
    """Every key of Confluent's groups HDFS, Security and Hive, and those for null values, which are ours."""

    url = _HDFS.high.text(
        "store.url",
        None,
        "Address of the file system: hdfs://host:port, hdfs://<name service> with hadoop.conf.dir, or"
        " file:///directory. A path after the address is put before topics.dir.",
    ).or_blank()
    old_url = _HDFS.high.text(
        "hdfs.url", None, "Older name of store.url; store.url is used if both are set."
    ).or_blank()
    conf_dir = _HDFS.high.text(
        "hadoop.conf.dir",
        "",
        "Directory with core-site.xml and hdfs-site.xml, on the driver and on every executor; needed for name"
        " services with several NameNodes.",
    )
    _hadoop_home = _HDFS.high.text(
        "hadoop.home",
        "",
        "Directory of a Hadoop installation.",
        ignored="HDFS is accessed without a Hadoop installation.",
    )
    logs_dir = _HDFS.high.text(
        "logs.dir",
        "logs",
        "Directory of the write-ahead logs of Confluent's connector. They are read once, to resume where it"
        " stopped; runs do not write any. `${topic}` and `${n}` as in topics.dir.",
    )
    topic_groups = _STORAGE.low.text(
        topic_directories.PATTERN_KEY,
        None,
        "Java regular expression that matches the full name of every topic of the connector. Its groups `${1}`,"
        " `${2}` ... can be used in topics.dir and logs.dir; `${0}` is the whole match. Not set: no groups.",
    ).or_blank()
    kerberos = _SECURITY.high.boolean(
        "hdfs.authentication.kerberos",
        False,
        "Whether HDFS requires Kerberos.",
        dependents=(
            "connect.hdfs.principal",
            "connect.hdfs.keytab",
            "hdfs.namenode.principal",
            "kerberos.ticket.renew.period.ms",
        ),
    )
    principal = _SECURITY.high.text(
        "connect.hdfs.principal", "", "Kerberos principal to log in as; `_HOST` is replaced by the machine's name."
    )
    keytab = _SECURITY.high.text(
        "connect.hdfs.keytab",
        "",
        "Path of the keytab of that principal, on the driver and on every executor; only the user that runs them"
        " should be able to read it.",
    )
    namenode_principal = _SECURITY.high.text(
        "hdfs.namenode.principal",
        "",
        "Kerberos principal of the NameNode, for Hadoop's own client: used with hdfs.publisher=jvm only, instead"
        " of dfs.namenode.kerberos.principal in hdfs-site.xml.",
    )
    publisher = _SECURITY.low.text(
        "hdfs.publisher",
        NATIVE,
        "Which client the driver uses to rename and inspect files: `native`, the package hdfs-native, or `jvm`,"
        " Hadoop's own client in a JVM next to the driver, for clusters whose security only Java supports."
        " Executors write with hdfs-native in both cases.",
        EnumString(NATIVE, JVM),
    ).to(str.lower)
    _ticket_renew_period_ms = _SECURITY.low.long(
        "kerberos.ticket.renew.period.ms",
        3_600_000,
        "Milliseconds between two renewals of the ticket.",
        ignored="A run logs in when it starts, and ends before its ticket expires.",
    )
    _refresh_ticket = _SECURITY.low.boolean(
        "hdfs.kerberos.refresh.ticket",
        True,
        "Whether the ticket is renewed.",
        ignored="A run logs in when it starts, and ends before its ticket expires.",
    )
    hive_integration = _HIVE.high.boolean(
        "hive.integration",
        False,
        "Whether each topic becomes an external Hive table with its directories as partitions; needs"
        " schema.compatibility other than NONE.",
        dependents=("hive.metastore.uris", "hive.conf.dir", "hive.home", "hive.database", "hive.table.name"),
    )
    hive_metastore_uris = _HIVE.high.text(
        "hive.metastore.uris",
        "",
        "Addresses of the Hive metastore, thrift://host:port, separated by commas; those that do not answer are"
        " skipped.",
    )
    hive_conf_dir = _HIVE.high.text(
        "hive.conf.dir",
        "",
        "Directory with hive-site.xml, on the driver; its hive.metastore.uris is used if that key is not set here.",
    )
    _hive_home = _HIVE.high.text(
        "hive.home",
        "",
        "Directory of a Hive installation.",
        ignored="The metastore is accessed without a Hive installation.",
    )
    hive_database = _HIVE.high.text("hive.database", "default", "Database of the tables; created if it does not exist.")
    hive_table_name = _HIVE.low.text(
        "hive.table.name",
        "${topic}",
        "Name of the table of a topic; it contains `${topic}`, which is replaced by the topic. Dots and hyphens of"
        " the topic become underscores.",
    )
    on_null = _STORAGE.low.text(
        "behavior.on.null.values",
        "fail",
        "Records whose value is null: `fail` fails the run, `ignore` skips them. Confluent's HDFS sink has no"
        " such key: it fails.",
        EnumString("ignore", "fail"),
    ).to(str.lower)
    reports_nulls = _STORAGE.low.boolean(
        "report.null.values.to.dlq", True, "Whether records skipped by `ignore` go to the dead letter queue."
    )
