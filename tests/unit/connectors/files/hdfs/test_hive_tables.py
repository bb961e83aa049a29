"""hive.integration: what of a configuration makes no table is said before anything is copied."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.files.hdfs.connector import HdfsSinkConnector
from airflow_connect.connectors.files.hdfs.hive_tables import HiveTables
from airflow_connect.connectors.files.shared.writing.opening import open_task_plan
from airflow_connect.documents.run import PublishedRun
from airflow_connect.errors import ConfigError, DataError
from tests.support.copies.started_sinks import sink_of

CONFIG = {
    "name": "c",
    "connector.class": "HdfsSinkConnector",
    "topics": "t",
    "store.url": "file:///data",
    "flush.size": "10",
    "schema.compatibility": "BACKWARD",
    "hive.integration": "true",
    "hive.metastore.uris": "thrift://nobody:1",
}
TIME = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "partition.duration.ms": "3600000",
    "locale": "en",
    "timezone": "UTC",
}


def _steps(**overrides: str) -> list[Any]:
    config = {**CONFIG, **{key.replace("_", "."): value for key, value in overrides.items()}}
    steps: tuple[Any, ...] = sink_of(HdfsSinkConnector, config).call(
        "steps", lambda c: c.after_publish(config, *c.storage(config))
    )
    return [step for step in steps if isinstance(step, HiveTables)]


def _published(*keys: str, role: str = "value") -> PublishedRun:
    files = tuple(StagedFile(key, "t", 0, 0, 1, 1, 1, role=role) for key in keys)
    return PublishedRun("run", 0, files)


def _step(**overrides: str) -> HiveTables:
    (step,) = _steps(**overrides)
    return step


@pytest.mark.parametrize(
    ("overrides", "code", "key"),
    [
        ({"hive.metastore.uris": ""}, "hive.no_address", "hive.metastore.uris"),
        ({"hive.metastore.uris": "nobody:1"}, "hive.address", "hive.metastore.uris"),
        ({"hive.conf.dir": "/no/such/folder"}, "hive.site", "hive.conf.dir"),
        ({"format.class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"}, "hive.format", "format.class"),
        ({**TIME, "path.format": "YYYY/MM"}, "hive.path_format", "path.format"),
        ({**TIME, "path.format": "'year'=YYYY/MM"}, "hive.path_format", "path.format"),
        ({**TIME, "path.format": "'d'=YYYY/'D'=MM"}, "hive.path_format", "path.format"),
    ],
)
def test_configuration_without_a_table_is_refused_by_its_key(overrides, code, key):
    with pytest.raises(ConfigError) as refused:
        sink_of(HdfsSinkConnector, {**CONFIG, **overrides})
    assert (refused.value.code, refused.value.config_path) == (code, key)


def test_tables_are_a_step_only_when_they_are_asked_for_and_tasks_tell_schemas_only_then():
    assert len(_steps()) == 1
    assert _steps(hive_integration="false") == []
    for wanted in ("true", "false"):
        context = RoleContext({**CONFIG, "hive.integration": wanted})
        plan = open_task_plan(HdfsSinkConfig.from_config(context.config), context)
        assert plan.value.tells_schema is (wanted == "true")


@pytest.mark.parametrize("path_format", ["'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "'dt'=YYYY-MM-dd"])
def test_any_names_of_times_will_do(path_format):
    assert isinstance(_step(**TIME, path_format=path_format), HiveTables)


def test_run_without_value_files_asks_no_metastore():
    _step()(_published("topics/t/partition=0/t+0+0+0.keys.avro", role="key"), None)


def test_late_records_in_a_side_directory_are_no_rows():
    plain = _step(**TIME, path_format="'dt'=YYYY", timestamp_extractor="Record", complete_directories="true")
    late = "topics/t/_late/dt=2024/t+0+0+0.avro"
    with_side = _step(
        **TIME,
        path_format="'dt'=YYYY",
        timestamp_extractor="Record",
        complete_directories="true",
        late_records="directory",
    )
    assert with_side._by_table(_published(late).files) == []
    assert len(plain._by_table(_published(late).files)) == 1


def test_directories_of_different_kinds_in_one_topic_are_refused():
    run = _published("topics/t/a=1/t+0+0+0.avro", "topics/t/b=1/t+0+1+1.avro")
    with pytest.raises(DataError, match="different kinds") as refused:
        _step()(run, None)
    assert refused.value.code == "hive.partition"
