"""Spark SQL reads the tables through the metastore: every format, files of three ages, in HDFS and in a directory."""

from __future__ import annotations

import pytest

from tests.integration.hive.conftest import enveloped, member
from tests.support.spark_sql import spark_sql

pytestmark = pytest.mark.integration

ID, CITY = member("id", "int32"), member("city", "string", optional=True)
WIDE_ID = member("id", "int64")
NOTE = member("note", "string", optional=True)
AMOUNT = member(
    "amount", "bytes", optional=True, name="org.apache.kafka.connect.data.Decimal", version=1, parameters={"scale": "2"}
)
AT = member("at", "int64", optional=True, name="org.apache.kafka.connect.data.Timestamp", version=1)
FIELDS = {
    "partitioner_class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
    "partition_field_name": "city",
}


def test_spark_sql_sees_every_row_once_with_its_values(make_topic, produce, make_hive_sink, metastore, hdfs, tmp_path):
    sinks = {}
    for name, file_format, store_url in (
        ("parquet", "parquet.ParquetFormat", ""),
        ("orc", "orc.OrcFormat", ""),
        ("avro", "avro.AvroFormat", f"{hdfs.url}/{tmp_path.name}"),
    ):
        topic = make_topic()
        sink = sinks[name] = make_hive_sink(
            topic, store_url=store_url, format_class=f"io.confluent.connect.hdfs.{file_format}", **FIELDS
        )
        produce(topic, enveloped([ID, CITY], [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "a/b %2F"}]))
        sink.run()
        second = {"id": 3, "city": "Oslo", "note": "n", "amount": "ATE=", "at": 1_700_000_000_123}
        produce(topic, enveloped([NOTE, ID, CITY, AMOUNT, AT], [second], version=2))
        sink.run()
        produce(topic, enveloped([ID, CITY], [{"id": 4, "city": "Rome"}]))
        sink.run()
    text = sinks["text"] = make_hive_sink(
        make_topic(),
        format_class="io.confluent.connect.hdfs.string.StringFormat",
        value_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter_schemas_enable="false",
    )
    produce(text.topic, [(0, None, '"one\\u0001two,three"')])
    text.run()
    tables = {name: f"{sink.database}.{sink.table_name}" for name, sink in sinks.items()}
    queries = [
        f"SELECT id, city, note, amount, at FROM {tables[name]} ORDER BY id" for name in ("parquet", "orc", "avro")
    ]
    queries += [f"SELECT id FROM {tables[name]} WHERE city = 'Oslo' ORDER BY id" for name in ("parquet", "orc", "avro")]
    queries.append(f"SELECT value, partition FROM {tables['text']}")
    answers = spark_sql(queries, tmp_path, metastore.uri)
    rows = [
        ["1", "Oslo", None, None, None],
        ["2", "a/b %2F", None, None, None],
        ["3", "Oslo", "n", "3.05", "2023-11-14 22:13:20.123000"],
        ["4", "Rome", None, None, None],
    ]
    for name, answer in zip(("parquet", "orc", "avro"), answers, strict=False):
        assert answer == rows, name
    assert answers[3:6] == [[["1"], ["3"]]] * 3, "partitions are pruned by value"
    assert answers[6] == [["one\x01two,three", "0"]]
