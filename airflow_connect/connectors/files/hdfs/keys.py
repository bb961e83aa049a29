"""Definitions of the HDFS sink's own keys, with Confluent's names, types, defaults and checks.

Source: Confluent's kafka-connect-hdfs (HdfsSinkConnectorConfig) and kafka-connect-storage-common (HiveConfig).
Documentation texts are ours.
"""

from __future__ import annotations

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import EnumString
from airflow_connect.connectors.files.shared.settings import keys as storage
from airflow_connect.layout.names import topic_directories
from airflow_connect.stores.hdfs.settings import JVM, NATIVE

STORE_URL = "store.url"
HDFS_URL = "hdfs.url"
HADOOP_CONF_DIR = "hadoop.conf.dir"
HADOOP_HOME = "hadoop.home"
LOGS_DIR = "logs.dir"
TOPIC_PATTERN = topic_directories.PATTERN_KEY
KERBEROS = "hdfs.authentication.kerberos"
PRINCIPAL = "connect.hdfs.principal"
KEYTAB = "connect.hdfs.keytab"
NAMENODE_PRINCIPAL = "hdfs.namenode.principal"
TICKET_RENEW_PERIOD_MS = "kerberos.ticket.renew.period.ms"
REFRESH_TICKET = "hdfs.kerberos.refresh.ticket"
HIVE_INTEGRATION = "hive.integration"
HIVE_METASTORE_URIS = "hive.metastore.uris"
HIVE_CONF_DIR = "hive.conf.dir"
HIVE_HOME = "hive.home"
HIVE_DATABASE = "hive.database"
HIVE_TABLE_NAME = "hive.table.name"
PUBLISHER = "hdfs.publisher"
NULL_BEHAVIOR = "behavior.on.null.values"
REPORT_NULLS = "report.null.values.to.dlq"

HDFS_STORAGE = "io.confluent.connect.hdfs.storage.HdfsStorage"
AVRO_FORMAT = "io.confluent.connect.hdfs.avro.AvroFormat"
_HDFS, _SECURITY, _HIVE, _STORAGE = "HDFS", "Security", "Hive", "Storage"
_NO_TICKETS = "A run logs in when it starts, and ends before its ticket expires."


def hdfs_keys() -> ConfigDef:
    """Every key of Confluent's groups HDFS, Security and Hive, and those for null values, which are ours."""
    return ConfigDef().define(*_place_keys(), *_security_keys(), *_hive_keys(), *_null_keys())


def shared_keys() -> ConfigDef:
    """The keys of all storage sinks, with their defaults for HDFS."""
    definition = storage.storage_keys()
    definition.redefine(storage.STORAGE_CLASS, default=HDFS_STORAGE)
    definition.redefine(storage.FORMAT_CLASS, default=AVRO_FORMAT)
    definition.redefine(
        storage.TOPICS_DIR,
        documentation="First directories of every file name; blank: none. `${topic}` stands for the topic,"
        f" `${{0}}`, `${{1}}` ... for the groups of {TOPIC_PATTERN}.",
    )
    definition.redefine(
        storage.ROTATE_INTERVAL_MS,
        documentation="Time span in milliseconds after which the files of a topic-partition are complete. With a"
        " time-based partitioner it is record time according to timestamp.extractor, measured from the first"
        " record in them. Otherwise it is the wall clock, checked at the end of a run: if that much time has"
        " passed since the last run, files that are not full are published even with flush.on.end=false. -1: off.",
    )
    definition.redefine(
        storage.OFFSET_PAD_WIDTH,
        documentation="Digits to which start and end offset in a file name are padded with zeros.",
    )
    definition.redefine(
        storage.FILE_DELIM,
        ignored="File names in HDFS always have `+` between their parts, as in Confluent's HDFS sink.",
    )
    definition.redefine(
        storage.ROTATE_ON_PARTITION_CHANGE, ignored="In the HDFS sink a change of directory does not complete files."
    )
    definition.redefine(
        storage.MAX_OPEN_FILES,
        ignored="The HDFS sink has no such limit: open files beyond the memory budget spill to disk.",
    )
    definition.redefine(
        storage.RETRY_BACKOFF_MS,
        ignored="Requests are retried automatically; a run that still fails is started again by its scheduler.",
    )
    return definition


def _place_keys() -> list[ConfigKey]:
    high, low = Importance.HIGH, Importance.LOW
    return [
        ConfigKey(
            STORE_URL, Type.STRING, None,
            "Address of the file system: hdfs://host:port, hdfs://<name service> with hadoop.conf.dir, or"
            " file:///directory. A path after the address is put before topics.dir.",
            None, high, _HDFS,
        ),
        ConfigKey(
            HDFS_URL, Type.STRING, None, "Older name of store.url; store.url is used if both are set.",
            None, high, _HDFS,
        ),
        ConfigKey(
            HADOOP_CONF_DIR, Type.STRING, "",
            "Directory with core-site.xml and hdfs-site.xml, on the driver and on every executor; needed for name"
            " services with several NameNodes.",
            None, high, _HDFS,
        ),
        ConfigKey(
            HADOOP_HOME, Type.STRING, "", "Directory of a Hadoop installation.",
            None, high, _HDFS, ignored="HDFS is accessed without a Hadoop installation.",
        ),
        ConfigKey(
            LOGS_DIR, Type.STRING, "logs",
            "Directory of the write-ahead logs of Confluent's connector. They are read once, to resume where it"
            " stopped; runs do not write any. `${topic}` and `${n}` as in topics.dir.",
            None, high, _HDFS,
        ),
        ConfigKey(
            TOPIC_PATTERN, Type.STRING, None,
            "Java regular expression that matches the full name of every topic of the connector. Its groups `${1}`,"
            " `${2}` ... can be used in topics.dir and logs.dir; `${0}` is the whole match. Not set: no groups.",
            None, low, _STORAGE,
        ),
    ]  # fmt: skip


def _security_keys() -> list[ConfigKey]:
    high, low = Importance.HIGH, Importance.LOW
    return [
        ConfigKey(
            KERBEROS, Type.BOOLEAN, False, "Whether HDFS requires Kerberos.", None, high, _SECURITY,
            dependents=(PRINCIPAL, KEYTAB, NAMENODE_PRINCIPAL, TICKET_RENEW_PERIOD_MS),
        ),
        ConfigKey(
            PRINCIPAL, Type.STRING, "", "Kerberos principal to log in as; `_HOST` is replaced by the machine's name.",
            None, high, _SECURITY,
        ),
        ConfigKey(
            KEYTAB, Type.STRING, "",
            "Path of the keytab of that principal, on the driver and on every executor; only the user that runs them"
            " should be able to read it.",
            None, high, _SECURITY,
        ),
        ConfigKey(
            NAMENODE_PRINCIPAL, Type.STRING, "",
            "Kerberos principal of the NameNode, for Hadoop's own client: used with hdfs.publisher=jvm only, instead"
            " of dfs.namenode.kerberos.principal in hdfs-site.xml.",
            None, high, _SECURITY,
        ),
        ConfigKey(
            PUBLISHER, Type.STRING, NATIVE,
            "Which client the driver uses to rename and inspect files: `native`, the package hdfs-native, or `jvm`,"
            " Hadoop's own client in a JVM next to the driver, for clusters whose security only Java supports."
            " Executors write with hdfs-native in both cases.",
            EnumString(NATIVE, JVM), low, _SECURITY,
        ),
        ConfigKey(
            TICKET_RENEW_PERIOD_MS, Type.LONG, 3_600_000, "Milliseconds between two renewals of the ticket.",
            None, low, _SECURITY, ignored=_NO_TICKETS,
        ),
        ConfigKey(
            REFRESH_TICKET, Type.BOOLEAN, True, "Whether the ticket is renewed.",
            None, low, _SECURITY, ignored=_NO_TICKETS,
        ),
    ]  # fmt: skip


def _hive_keys() -> list[ConfigKey]:
    high, low = Importance.HIGH, Importance.LOW
    return [
        ConfigKey(
            HIVE_INTEGRATION, Type.BOOLEAN, False,
            "Whether each topic becomes an external Hive table with its directories as partitions; needs"
            " schema.compatibility other than NONE.",
            None, high, _HIVE,
            dependents=(HIVE_METASTORE_URIS, HIVE_CONF_DIR, HIVE_HOME, HIVE_DATABASE, HIVE_TABLE_NAME),
        ),
        ConfigKey(
            HIVE_METASTORE_URIS, Type.STRING, "",
            "Addresses of the Hive metastore, thrift://host:port, separated by commas; those that do not answer are"
            " skipped.",
            None, high, _HIVE,
        ),
        ConfigKey(
            HIVE_CONF_DIR, Type.STRING, "",
            "Directory with hive-site.xml, on the driver; its hive.metastore.uris is used if that key is not set here.",
            None, high, _HIVE,
        ),
        ConfigKey(
            HIVE_HOME, Type.STRING, "", "Directory of a Hive installation.",
            None, high, _HIVE, ignored="The metastore is accessed without a Hive installation.",
        ),
        ConfigKey(
            HIVE_DATABASE, Type.STRING, "default", "Database of the tables; created if it does not exist.",
            None, high, _HIVE,
        ),
        ConfigKey(
            HIVE_TABLE_NAME, Type.STRING, "${topic}",
            "Name of the table of a topic; it contains `${topic}`, which is replaced by the topic. Dots and hyphens of"
            " the topic become underscores.",
            None, low, _HIVE,
        ),
    ]  # fmt: skip


def _null_keys() -> list[ConfigKey]:
    low = Importance.LOW
    return [
        ConfigKey(
            NULL_BEHAVIOR, Type.STRING, "fail",
            "Records whose value is null: `fail` fails the run, `ignore` skips them. Confluent's HDFS sink has no"
            " such key: it fails.",
            EnumString("ignore", "fail"), low, _STORAGE,
        ),
        ConfigKey(
            REPORT_NULLS, Type.BOOLEAN, True,
            "Whether records skipped by `ignore` go to the dead letter queue.",
            None, low, _STORAGE,
        ),
    ]  # fmt: skip
