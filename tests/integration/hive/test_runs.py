"""Whole runs of the HDFS sink into a real metastore: tables, partitions, evolution, crashes, refusals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import orjson
import pytest

from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.runtime.crash_points import VARIABLE
from tests.devstack.hive_metastore import HiveMetastore
from tests.integration.hive.conftest import enveloped, member
from tests.support.processes.drivers import PROJECT

pytestmark = pytest.mark.integration

ID, CITY = member("id", "int64"), member("city", "string", optional=True)
FIELDS = {
    "partitioner_class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
    "partition_field_name": "city",
}


def test_default_partitioner_makes_a_table_with_a_partition_per_kafka_partition(make_topic, produce, make_hive_sink):
    topic = make_topic(2)
    produce(topic, enveloped([ID, CITY], [{"id": 1, "city": "Oslo"}]))
    produce(topic, enveloped([ID, CITY], [{"id": 2, "city": "Rome"}], partition=1))
    sink = make_hive_sink(topic)
    assert sink.run().records == 2
    table = sink.table()
    assert table.tableType == "EXTERNAL_TABLE"
    assert table.parameters["EXTERNAL"] == "TRUE"
    assert [(key.name, key.type) for key in table.partitionKeys] == [("partition", "string")]
    assert sink.columns() == [("id", "bigint"), ("city", "string")]
    assert table.sd.serdeInfo.serializationLib.endswith("ParquetHiveSerDe")
    assert sorted(sink.partitions()) == [("0",), ("1",)]
    directories = {str(path.parent) for path in sink.files()}
    assert {p.sd.location.removeprefix("file:") for p in sink.partitions().values()} == directories


def test_field_partitioner_takes_the_field_out_of_the_columns_and_keeps_odd_values(make_topic, produce, make_hive_sink):
    topic = make_topic()
    cities = ["São Paulo", "a/b", "x=y", "100%", "50%2F", "it's: #1?", "", None]
    produce(topic, enveloped([ID, CITY], [{"id": n, "city": city} for n, city in enumerate(cities)]))
    sink = make_hive_sink(topic, **FIELDS)
    sink.run()
    assert sink.columns() == [("id", "bigint")]
    values = {value for (value,) in sink.partitions()}
    assert values == {*(city for city in cities if city), "null", "__HIVE_DEFAULT_PARTITION__"}
    directories = {str(path.parent) for path in sink.files()}
    assert {p.sd.location.removeprefix("file:") for p in sink.partitions().values()} == directories


def test_time_partitioner_has_the_columns_of_path_format_and_a_second_run_adds_only_what_is_new(
    make_topic, produce, make_hive_sink
):
    topic = make_topic()
    sink = make_hive_sink(
        topic,
        partitioner_class="io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        partition_duration_ms="3600000",
        path_format="'dt'=YYYY-MM-dd/'hr'=HH",
        locale="en",
        timezone="UTC",
        timestamp_extractor="Record",
    )
    hour = 3_600_000
    produce(topic, [(0, None, enveloped([ID], [{"id": 1}])[0][2], 1_700_000_000_000)])
    sink.run()
    assert [key.name for key in sink.table().partitionKeys] == ["dt", "hr"]
    assert sorted(sink.partitions()) == [("2023-11-14", "22")]
    made = sink.table().createTime
    produce(topic, [(0, None, enveloped([ID], [{"id": 2}])[0][2], 1_700_000_000_000 + n * hour) for n in (0, 1)])
    sink.run()
    assert sorted(sink.partitions()) == [("2023-11-14", "22"), ("2023-11-14", "23")]
    assert sink.table().createTime == made


@pytest.mark.parametrize("file_format", ["parquet.ParquetFormat", "avro.AvroFormat", "orc.OrcFormat"])
def test_columns_follow_three_runs_and_an_old_schema_takes_nothing_away(
    make_topic, produce, make_hive_sink, file_format
):
    topic = make_topic()
    sink = make_hive_sink(topic, format_class=f"io.confluent.connect.hdfs.{file_format}", **FIELDS)
    produce(topic, enveloped([ID, CITY], [{"id": 1, "city": "Oslo"}]))
    sink.run()
    note = member("note", "string", optional=True)
    produce(topic, enveloped([note, ID, CITY], [{"id": 2, "city": "Rome", "note": "n"}], version=2))
    sink.run()
    grown = [("id", "bigint"), ("note", "string")]
    assert sink.columns() == grown
    for partition in sink.partitions().values():
        assert [(c.name, c.type) for c in partition.sd.cols] == grown, "old partitions follow"
    produce(topic, enveloped([ID, CITY], [{"id": 3, "city": "Bern"}]))
    sink.run()
    assert sink.columns() == grown
    assert sorted(sink.partitions()) == [("Bern",), ("Oslo",), ("Rome",)]


@pytest.mark.parametrize("before", [[], [ID]], ids=["struct-first", "struct-second"])
def test_struct_with_a_new_field_goes_through_although_the_metastore_refuses_it(
    make_topic, produce, make_hive_sink, before
):
    topic = make_topic()
    sink = make_hive_sink(topic)

    def address(*fields):
        return member("address", "struct", fields=list(fields))

    street, zip_code = member("street", "string"), member("zip", "string", optional=True)
    last = member("last", "int32")
    payload = {"id": 1, "address": {"street": "s", "zip": "z"}, "last": 1}
    produce(topic, enveloped([*before, address(street), last], [payload]))
    sink.run()
    produce(topic, enveloped([*before, address(street, zip_code), last], [payload], version=2))
    sink.run()
    kept = [("id", "bigint")] if before else []
    assert sink.columns() == [*kept, ("address", "struct<street:string,zip:string>"), ("last", "int")]
    assert "airflow_connect.columns" not in sink.table().parameters


def test_metastore_that_is_away_fails_the_run_retriably_and_the_next_run_goes_on(
    make_topic, produce, make_hive_sink, tmp_path
):
    topic = make_topic()
    produce(topic, enveloped([ID, CITY], [{"id": 1, "city": "Oslo"}]))
    with HiveMetastore(tmp_path / "metastore", heap_mb=256) as own:  # Not started yet.
        sink = make_hive_sink(topic, uris=own.uri)
        failed = sink.try_run()
        assert failed.status == "failed"
        assert failed.error["code"] == "hive.unavailable"
        assert failed.error["retriable"]
        assert own.uri in failed.error["message"]
        assert len(sink.files()) == 1, "the file is published"
        assert sink.try_run().status == "failed", "a run that recovers asks again"
        own.restart()
        done = sink.run()
        assert done.recovered_run_id == failed.run_id
        assert sorted(sink.partitions()) == [("0",)]
        assert len(sink.files()) == 1


def test_recovery_uses_the_address_of_now_and_may_do_without_tables(make_topic, produce, make_hive_sink, metastore):
    topic = make_topic()
    produce(topic, enveloped([ID, CITY], [{"id": 1, "city": "Oslo"}]))
    (port,) = free_ports(1)
    nobody = f"thrift://127.0.0.1:{port}"
    sink = make_hive_sink(topic)
    failed = sink.try_run(hive_metastore_uris=nobody)
    assert failed.error["code"] == "hive.unavailable"
    assert sink.run().recovered_run_id == failed.run_id
    assert sorted(sink.partitions()) == [("0",)]
    produce(topic, enveloped([ID, CITY], [{"id": 2, "city": "Rome"}]))
    failed = sink.try_run(hive_metastore_uris=nobody)
    assert sink.run(hive_integration="false", hive_metastore_uris=nobody).recovered_run_id == failed.run_id


def test_second_metastore_is_asked_when_the_first_does_not_answer(make_topic, produce, make_hive_sink, metastore):
    (port,) = free_ports(1)
    topic = make_topic()
    produce(topic, enveloped([ID], [{"id": 1}]))
    sink = make_hive_sink(topic, uris=f"thrift://127.0.0.1:{port},{metastore.uri}")
    sink.run()
    assert sorted(sink.partitions()) == [("0",)]


def test_run_killed_between_tables_and_commit_is_repeated_without_a_change(make_topic, produce, make_hive_sink):
    topic = make_topic()
    produce(topic, enveloped([ID, CITY], [{"id": n, "city": f"c{n % 3}"} for n in range(9)]))
    sink = make_hive_sink(topic, **FIELDS)
    victim = subprocess.run(
        [sys.executable, "-m", "tests.crash.run_in_process"],
        input=orjson.dumps(sink.spec().to_json()) + b"\n",
        cwd=PROJECT,
        env={**os.environ, VARIABLE: "published"},
        start_new_session=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert victim.returncode == -signal.SIGKILL, victim.stderr.decode()[-2000:]
    before = {value: (p.createTime, p.sd.location) for value, p in sink.partitions().items()}
    assert sorted(before) == [("c0",), ("c1",), ("c2",)]
    assert sink.run().recovered_run_id
    assert {value: (p.createTime, p.sd.location) for value, p in sink.partitions().items()} == before
    assert sink.run().status == "empty"


def test_dotted_topic_has_a_table_with_underscores_and_another_topic_cannot_take_it(
    make_topic, produce, make_hive_sink, unique_name
):
    dotted, dashed = make_topic(name=f"{unique_name}.orders"), make_topic(name=f"{unique_name}-orders")
    for topic in (dotted, dashed):
        produce(topic, enveloped([ID], [{"id": 1}]))
    sink = make_hive_sink(dotted)
    sink.run()
    assert sink.table(f"{unique_name.replace('-', '_')}_orders").sd.location.endswith(f"/topics/{dotted}")
    other = make_hive_sink(dashed)
    other.database = sink.database
    refused = other.try_run()
    assert refused.error["code"] == "hive.table_conflict"
    assert dashed in refused.error["message"]
    assert sink.store_url.removeprefix("file://") in refused.error["message"]
    assert other.run(hive_table_name="other_${topic}").recovered_run_id == refused.run_id


def test_column_whose_type_excludes_the_records_fails_with_both_types(make_topic, produce, make_hive_sink):
    topic = make_topic()
    sink = make_hive_sink(topic)
    produce(topic, enveloped([ID, member("x", "int32")], [{"id": 1, "x": 1}]))
    sink.run()
    table = sink.table()
    table.sd.cols[1].type = "array<int>"
    table.tableName = f"again_{sink.table_name}"
    with sink.client() as client:
        client.create_table(table)
    produce(topic, enveloped([ID, member("x", "int32")], [{"id": 2, "x": 2}]))
    refused = sink.try_run(hive_table_name="again_${topic}")
    assert refused.error["code"] == "hive.schema_conflict"
    assert "array<int>" in refused.error["message"] and " int" in refused.error["message"]


def test_values_without_schema_become_one_column(make_topic, produce, make_hive_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"a": 1}')])
    sink = make_hive_sink(
        topic,
        format_class="io.confluent.connect.hdfs.json.JsonFormat",
        value_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter_schemas_enable="false",
    )
    sink.run()
    assert sink.columns() == [("value", "string")]
