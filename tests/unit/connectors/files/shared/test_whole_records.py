"""Files of whole records: everything that Kafka has, the same on both paths."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaRecord,
)
from airflow_connect.api.whole_record import WHOLE_RECORD, whole_record
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.format import Format
from airflow_connect.formats.orc import OrcFormat
from airflow_connect.formats.parquet import ParquetFormat
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared.staging import HDFS, NOW_MS, copy
from tests.unit.formats.connect_values import Sink

S3 = {
    name: {"format.class": f"io.confluent.connect.s3.format.{name}.{name.capitalize()}Format"}
    for name in ("avro", "parquet")
}
ORC = {
    "connector.class": HDFS,
    "hdfs.url": "hdfs://x",
    "storage.class": "io.confluent.connect.hdfs.storage.HdfsStorage",
    "format.class": "io.confluent.connect.hdfs.orc.OrcFormat",
}
FORMS = {**S3, "orc": ORC}
HOURLY = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "locale": "en",
    "timezone": "Europe/Berlin",
    "timestamp.extractor": "Record",
}
BYTES = st.none() | st.just(b"") | st.binary(max_size=8)
NAMES = st.sampled_from(["", "a", "a-b", "é", "zero\0byte", "\U0001f600"])
HEADERS = st.lists(st.tuples(NAMES, BYTES), max_size=4).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> list[list[KafkaRecord]]:
    """Consecutive batches of one partition, with gaps, tombstones, and all kinds of headers and times."""
    found, offset, stamp = [], draw(st.integers(0, 3)), NOW_MS
    for size in draw(st.lists(st.integers(1, 30), min_size=1, max_size=5)):
        kind = draw(st.sampled_from([TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE]))
        records = []
        for _ in range(size):
            stamp += draw(st.sampled_from([0, 1, 600_000, 4_000_000, -5_000_000]))
            key, value, headers = draw(BYTES), draw(BYTES), draw(HEADERS)
            records.append(KafkaRecord("t", 0, offset, key, value, stamp if kind else None, kind, headers))
            offset += draw(st.sampled_from([1, 1, 1, 2, 7]))
        found.append(records)
    return found


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_both_paths_write_everything_that_kafka_has(form: str, data: st.DataObject) -> None:
    config = {**FORMS[form], "store.kafka.records": "true", **data.draw(st.sampled_from([{}, HOURLY]))}
    config["flush.size"] = data.draw(st.sampled_from(["1", "7", "1000"]))
    records = data.draw(batches())
    reference, _ = copy(config, records, columnar=False)
    columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    if not columnar.error:
        assert in_columns == sum(map(len, records)) == sum(file[3] for file in columnar.files)


@pytest.mark.parametrize("file_format", [AvroFormat(), ParquetFormat(), OrcFormat()], ids=["avro", "parquet", "orc"])
def test_file_gives_back_each_byte(file_format: Format) -> None:
    headers = (("a", b"1"), ("a", None), ("", b""), ("b", b"\xff"))
    records = [
        KafkaRecord("t", 3, 5, None, None, 0, TIMESTAMP_CREATE_TIME),
        KafkaRecord("t", 3, 9, b"", b"", 2**62, TIMESTAMP_LOG_APPEND_TIME, headers),
        KafkaRecord("t", 3, 10, b"\0\xff", b"\0\0\0\0\1x", None, TIMESTAMP_NOT_AVAILABLE),
    ]
    written = [whole_record(record) for record in records]
    assert [one["timestamp_type"] for one in written] == ["CreateTime", "LogAppendTime", None]
    assert _read_back(file_format, written) == written


def _read_back(file_format: Format, values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sink = Sink()
    encoder = file_format.open(sink, WHOLE_RECORD)
    encoder.append(values)
    encoder.finish()
    data = io.BytesIO(sink.getvalue())
    if isinstance(file_format, AvroFormat):
        return [dict(one) for one in fastavro.reader(data)]
    table = pq.read_table(data) if isinstance(file_format, ParquetFormat) else orc.ORCFile(data).read()
    return list(table.to_pylist())


def test_name_of_a_header_that_may_have_lost_bytes_is_an_error() -> None:
    record = KafkaRecord("t", 0, 7, None, b"", NOW_MS, TIMESTAMP_CREATE_TIME, (("a\ufffd", b""),))
    with pytest.raises(DataError, match="t-0@7 has a header whose name may not be UTF-8") as caught:
        whole_record(record)
    assert caught.value.code == "data.header_name"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"format.class": "JsonFormat"}, "store.kafka.records=true needs a format with fields of bytes"),
        ({"transforms": "a", "transforms.a.type": "HoistField$Value", "transforms.a.field": "x"}, "nothing can tran"),
        ({"store.kafka.keys": "true"}, "stores keys and headers in each record"),
        (
            {"store.kafka.records": "false", "store.kafka.records.schema.registry.url": "http://r"},
            "store.kafka.records.schema.registry.url is for backups only",
        ),
    ],
    ids=["format", "transforms", "keys", "registry"],
)
def test_what_would_change_records_is_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        copy({**S3["parquet"], "flush.size": "1", "store.kafka.records": "true", **more}, [], columnar=True)


def test_misspelt_key_of_the_registry_is_unknown() -> None:
    definition = S3SinkConfig.config_def()
    known = ("store.kafka.records.basic.auth.user.info", "store.kafka.records.schema.registry.ssl.keystore.key")
    wrong = ("store.kafka.records.shema.registry.url", "store.kafka.records.x")
    assert [key.name for key in definition.unknown_keys(dict.fromkeys((*known, *wrong), "x"))] == list(wrong)


def test_converters_have_no_effect() -> None:
    config = {**S3["parquet"], "flush.size": "1", "store.kafka.records": "true", "value.converter": "JsonConverter"}
    outcome, in_columns = copy(config, [[KafkaRecord("t", 0, 0, b"k", b"not JSON", NOW_MS)]], columnar=True)
    assert (outcome.error, in_columns) == ("", 1)


def test_no_converter_needs_to_be_set() -> None:
    config = {
        "name": "backup",
        "topics": "t",
        **S3["parquet"],
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "s3.bucket.name": "backups",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "flush.size": "1",
    }
    worker = {"bootstrap.servers": "kafka:9092", "group.id": "workers"}
    with pytest.raises(ConfigError, match=r"key\.converter"):
        load_connector_config(config, worker)
    resolved = load_connector_config({**config, "store.kafka.records": "true"}, worker)
    names = {resolved.key_converter.plugin.name, resolved.value_converter.plugin.name}
    assert names == {"org.apache.kafka.connect.converters.ByteArrayConverter"}
