from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.api.sink_state import PlannedRun
from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.files.hdfs.connector import HdfsSinkConnector
from airflow_connect.connectors.files.shared.writing.opening import open_layout
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.sink.started_sink import StartedSink
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.local.store import LocalStore
from tests.support.copies.started_sinks import sink_of

MINIMAL: dict[str, Any] = {
    "name": "meetups", "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector", "topics": "meetups",
    "store.url": "hdfs://namenode:8020", "flush.size": 3,
}  # fmt: skip
HOURLY = {"partitioner.class": "HourlyPartitioner", "locale": "en-US", "timezone": "UTC"}

KEYS_OF_CONFLUENT = """
hdfs.url store.url hadoop.conf.dir hadoop.home logs.dir topic.capture.groups.regex hdfs.authentication.kerberos
connect.hdfs.principal connect.hdfs.keytab hdfs.namenode.principal kerberos.ticket.renew.period.ms
hdfs.kerberos.refresh.ticket hive.integration hive.metastore.uris hive.conf.dir hive.home hive.database hive.table.name
storage.class format.class flush.size rotate.interval.ms rotate.schedule.interval.ms schema.compatibility
schemas.cache.config enhanced.avro.schema.support connect.meta.data retry.backoff.ms shutdown.timeout.ms
filename.offset.zero.pad.width avro.codec parquet.codec allow.optional.map.keys topics.dir directory.delim file.delim
partitioner.class partition.field.name partition.duration.ms path.format locale timezone timestamp.extractor
timestamp.field
"""


def config(**changes: Any) -> HdfsSinkConfig:
    given = {**MINIMAL, **{key.replace("_", "."): value for key, value in changes.items()}}
    return HdfsSinkConfig.from_config({key: value for key, value in given.items() if value is not None})


def error_of(**changes: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config(**changes)
    return caught.value


def test_definition_has_every_key_of_confluents_sink():
    assert set(KEYS_OF_CONFLUENT.split()) <= HdfsSinkConfig.config_def().keys.keys()


def test_every_key_is_documented_and_every_ignored_one_has_a_reason():
    for key in HdfsSinkConfig.config_def().keys.values():
        assert key.documentation.endswith("."), key.name
        assert key.group, key.name
        assert not key.ignored or key.ignored.endswith("."), key.name


def test_a_minimal_configuration_has_confluents_defaults():
    sink = config()
    assert isinstance(sink.store, HdfsStore)
    assert (sink.store.name, sink.logs_dir, sink.hive_integration) == ("hdfs://namenode:8020", "logs", False)
    assert (sink.topics_dir, sink.file_delim, sink.offset_pad_width) == ("topics", "+", 10)
    assert (sink.in_file_system, sink.topic_pattern) == (True, "")
    assert sink.partitioner.path.endswith(":DefaultPartitioner")
    assert (sink.flush_size, sink.rotate_interval_ms, sink.schema_compatibility) == (3, 0, "NONE")
    assert (sink.on_partition_change, sink.max_open_files, sink.keeps_schema) == (False, 0, True)
    assert sink.value_format.path.endswith(":AvroFormat")
    assert sink.codec_in_extension is False
    assert (sink.on_null, sink.reports_nulls) == ("fail", True)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("io.confluent.connect.hdfs.avro.AvroFormat", "avro"),
        ("io.confluent.connect.hdfs.json.JsonFormat", "json_lines"),
        ("io.confluent.connect.hdfs.parquet.ParquetFormat", "parquet"),
        ("io.confluent.connect.hdfs.orc.OrcFormat", "orc"),
        ("io.confluent.connect.hdfs.string.StringFormat", "string_lines"),
        ("OrcFormat", "orc"),
        ("Parquet", "parquet"),
        ("String", "string_lines"),
    ],
)
def test_formats_have_their_java_names(name, module):
    assert resolve(PluginKind.FORMAT, name).path.startswith(f"airflow_connect.formats.{module}:")


@pytest.mark.parametrize("name", ["io.confluent.connect.hdfs.HdfsSinkConnector", "HdfsSinkConnector", "HdfsSink"])
def test_the_connector_has_its_java_name_and_aliases(name):
    path = "airflow_connect.connectors.files.hdfs.connector:HdfsSinkConnector"
    assert resolve(PluginKind.CONNECTOR, name).path == path


def test_the_older_name_of_the_address_counts_where_the_newer_one_is_blank():
    assert config(store_url=" ", hdfs_url="hdfs://old:9000").store.name == "hdfs://old:9000"
    assert config(hdfs_url="hdfs://old:9000").store.name == "hdfs://namenode:8020"


def test_an_address_is_needed():
    error = error_of(store_url=None)
    assert "Configuration store.url cannot be empty." in error.message
    assert error.config_path == "store.url"


@pytest.mark.parametrize("url", ["namenode:8020", "s3://bucket", "hdfs:///path"])
def test_an_address_of_something_else_is_refused(url):
    assert error_of(store_url=url).config_path == "store.url"


def test_a_file_address_is_a_directory_of_this_machine():
    assert config(store_url="file:///data/out").store == LocalStore("/data/out")


def test_another_storage_class_is_refused():
    error = error_of(storage_class="io.confluent.connect.s3.storage.S3Storage")
    assert "is not a store of the HDFS sink" in error.message


def test_slashes_around_topics_dir_mean_nothing():
    assert config(topics_dir="/a//b/").topics_dir == "a/b"


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"topics_dir": "${1}"}, "topics.dir", "without a valid topic.capture.groups.regex"),
        ({"logs_dir": "x/${0}"}, "logs.dir", "without a valid topic.capture.groups.regex"),
        ({"topics_dir": "${date}"}, "topics.dir", "invalid"),
        ({"topic_capture_groups_regex": "("}, "topic.capture.groups.regex", "invalid regex pattern"),
        ({"topic_capture_groups_regex": "x.*"}, "topic.capture.groups.regex", "does not fully match"),
        ({"topics_dir": "${2}", "topic_capture_groups_regex": "(.*)"}, "topic.capture.groups.regex", "at least 2"),
    ],
)
def test_directories_that_do_not_fit_the_topics_are_refused(changes, key, message):
    error = error_of(**changes)
    assert error.config_path == key
    assert message in error.message


def test_publisher_is_native_unless_the_jvm_is_asked_for():
    store = config().store
    assert (store.settings.publisher, store.start_jvm) == ("native", None)
    kerberos = {"hdfs_authentication_kerberos": "true", "connect_hdfs_principal": "me@X", "connect_hdfs_keytab": "/k"}
    settings = config(hdfs_publisher="JVM", hdfs_namenode_principal="nn/_HOST@X", **kerberos).store.settings
    assert (settings.publisher, settings.namenode_principal) == ("jvm", "nn/_HOST@X")
    assert error_of(hdfs_publisher="java").config_path == "hdfs.publisher"


def test_only_the_driver_can_start_a_jvm():
    given = {key: str(value) for key, value in {**MINIMAL, "hdfs.publisher": "jvm"}.items()}
    _, store = sink_of(HdfsSinkConnector, given).call("storage", lambda connector: connector.storage(given))
    assert store.start_jvm is StartedSink.start_jvm
    assert HdfsSinkConfig.from_config(given).store.start_jvm is None


@pytest.mark.parametrize(
    ("given", "missing"),
    [({}, "connect.hdfs.principal"), ({"connect_hdfs_principal": "me@REALM"}, "connect.hdfs.keytab")],
)
def test_kerberos_needs_principal_and_keytab(given, missing):
    error = error_of(hdfs_authentication_kerberos="true", **given)
    assert error.config_path == missing
    assert f"hdfs.authentication.kerberos=true needs {missing}" in error.message


def test_principal_and_keytab_count_with_kerberos_only():
    given = {"connect_hdfs_principal": "me@REALM", "connect_hdfs_keytab": "/etc/me.keytab"}
    plain, secured = config(**given).store, config(hdfs_authentication_kerberos="true", **given).store
    assert isinstance(plain, HdfsStore)
    assert isinstance(secured, HdfsStore)
    assert (plain.settings.principal, plain.settings.keytab) == ("", "")
    assert (secured.settings.principal, secured.settings.keytab) == ("me@REALM", "/etc/me.keytab")


def test_hive_needs_schemas_that_are_compatible():
    error = error_of(hive_integration="true", hive_metastore_uris="thrift://m:9083")
    assert "Hive Integration requires schema compatibility to be BACKWARD, FORWARD or FULL" in error.message
    assert error.config_path == "schema.compatibility"


def test_hive_settings():
    sink = config(hive_integration="true", hive_metastore_uris="thrift://m:9083", schema_compatibility="BACKWARD")
    assert (sink.hive_metastore_uris, sink.hive_conf_dir) == ("thrift://m:9083", "")
    assert (sink.hive_database, sink.hive_table_name) == ("default", "${topic}")


@pytest.mark.parametrize("name", ["table", "${topic}_${date}"])
def test_names_of_tables_hold_the_topic_and_nothing_else(name):
    assert error_of(hive_table_name=name).config_path == "hive.table.name"


def test_names_are_those_of_confluents_sink():
    sink = config(directory_delim="_", file_delim="#", topics_dir="a/${topic}")
    names = open_layout(sink, MINIMAL).names
    assert (names.hold_end, names.directory_delimiter, names.file_delimiter) == (True, "/", "+")
    assert names.prefix_of("t") == "a/t/"


@pytest.mark.parametrize(
    ("changes", "last_run_ms", "expired"),
    [
        ({"rotate_interval_ms": 1000}, 9_000, True),
        ({"rotate_interval_ms": 1000}, 9_001, False),
        ({"rotate_interval_ms": 1000}, 0, False),
        ({}, 1, False),
        ({"rotate_interval_ms": 1000, **HOURLY}, 1, True),
        ({"rotate_interval_ms": 1000, **HOURLY, "timestamp.extractor": "Record"}, 1, False),
        ({"rotate_schedule_interval_ms": 10, "timezone": "UTC"}, 1, True),
    ],
)
def test_an_interval_of_the_wall_clock_passes_between_runs(changes, last_run_ms, expired):
    given = {**MINIMAL, **{key.replace("_", "."): value for key, value in changes.items()}}
    run = PlannedRun(now_ms=10_000, last_run_ms=last_run_ms)
    assert sink_of(HdfsSinkConnector, given).plan_state(run).leaves_nothing is expired


@pytest.mark.parametrize("path", ["/'y'=YYYY/'m'=MM", "'y'=YYYY//'m'=MM/", "//'y'=YYYY/'m'=MM//"])
def test_slashes_of_a_path_format_are_those_of_a_file_system(path):
    hourly = {"partitioner_class": "TimeBasedPartitioner", "partition_duration_ms": 3_600_000, "path_format": path}
    sink = config(**hourly, locale="en-US", timezone="UTC", topics_dir="/raw//x/")
    layout = open_layout(sink, MINIMAL)
    assert layout.partitioner.directory_of_timestamp(0) == "y=1970/m=01"
    assert layout.names.prefix_of("t") == "raw/x/"


def test_missing_key_names_the_key_that_was_probably_meant():
    error = error_of(flush_size=None, flush_sizes="3")
    assert error.config_path == "flush.size" and 'Missing required configuration "flush.size"' in error.message
    assert "There is no key flush.sizes. Did you mean flush.size?" in error.suggestion


@pytest.mark.parametrize(
    ("key", "staged", "is_current"),
    [
        ("hive.metastore.uris", {"hive.integration": "true"}, True),
        ("hive.integration", {"hive.integration": "true"}, True),
        ("hive.integration", {"hive.integration": "${env:HIVE}"}, True),
        ("hive.integration", {"hive.integration": "false"}, False),
        ("hive.integration", {}, False),
        ("topics.dir", {"hive.integration": "true"}, False),
    ],
)
def test_a_recovering_run_uses_its_own_settings_of_tables_but_makes_none_where_there_were_none(
    key: str, staged: dict[str, str], is_current: bool
) -> None:
    assert HdfsSinkConnector.uses_current(key, staged) is is_current
