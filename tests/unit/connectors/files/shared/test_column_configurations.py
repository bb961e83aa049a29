"""Two speeds, one meaning, for whole configurations: converter, transformations with predicates, layout, format."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from airflow_connect.api.columns import RecordColumns
from airflow_connect.api.record import ConnectRecord, KafkaRecord, SinkRecord
from airflow_connect.api.transform import Predicate
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages, protobuf_messages
from tests.unit.connectors.files.shared.staging import HDFS, JSON, NOW_MS, STRING, copy
from tests.unit.connectors.files.shared.test_columns import CONFIGS, ERRORS, HOURLY, ODD, SCHEMA, TEXTS

KAFKA = "org.apache.kafka.connect"
SCHEMALESS = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
WITH_SCHEMA = {"value.converter": JSON, "value.converter.schema.content": SCHEMA}
BYTES = {"value.converter": f"{KAFKA}.converters.ByteArrayConverter"}
LONGS = {"value.converter": f"{KAFKA}.converters.LongConverter"}
DOUBLES = {"value.converter": f"{KAFKA}.converters.DoubleConverter"}
HDFS_PARQUET = {
    "connector.class": HDFS,
    "store.url": "hdfs://x:1",
    "storage.class": "HdfsStorage",
    "format.class": "ParquetFormat",
}
FORMATS = {
    name: {"format.class": f"io.confluent.connect.s3.format.{path}"}
    for name, path in {
        "json": "json.JsonFormat",
        "parquet": "parquet.ParquetFormat",
        "bytes": "bytearray.ByteArrayFormat",
        "avro": "avro.AvroFormat",
    }.items()
}
BY_FIELD = {**HOURLY, "timestamp.extractor": "RecordField"}
DIRECTORIES = st.sampled_from(
    [
        {},
        {},
        HOURLY,
        {**BY_FIELD, "timestamp.field": "at"},
        {**BY_FIELD, "timestamp.field": "name"},
        {**BY_FIELD, "timestamp.field": "inner.n"},
        {
            "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
            "partition.field.name": "ok,inner.n",
        },
        {
            "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
            "partition.field.name": "name",
        },
    ]
)


class EvenOffset(Predicate):
    """A predicate that holds for some records of a batch."""

    def test(self, record: ConnectRecord) -> bool:
        """Whether the record's offset is even."""
        assert isinstance(record, SinkRecord)
        return record.offset % 2 == 0

    def test_columns(self, batch: RecordColumns) -> NDArray[np.bool_]:
        """As `test`."""
        return batch.offsets % 2 == 0


STEPS: list[dict[str, str]] = [
    {"type": "InsertField$Value", "offset.field": "_offset!", "topic.field": "_topic"},
    {"type": "InsertField$Value", "timestamp.field": "_at", "partition.field": "_partition?"},
    {"type": "InsertField$Value", "static.field": "source", "static.value": "here"},
    {"type": "ReplaceField$Value", "renames": "id:number,name:title", "exclude": "small"},
    {"type": "ReplaceField$Value", "include": "id,ok,at,inner,name"},
    {"type": "MaskField$Value", "fields": "name"},
    {"type": "MaskField$Value", "fields": "id,ratio"},
    {"type": "Cast$Value", "spec": "id:string,small:int32,ok:int8"},
    {"type": "Cast$Value", "spec": "string"},
    {"type": "Flatten$Value", "delimiter": "_"},
    {"type": "ExtractField$Value", "field": "inner"},
    {"type": "ExtractField$Value", "field": "name"},
    {"type": "HoistField$Value", "field": "wrapped"},
    {"type": "SetSchemaMetadata$Value", "schema.name": "thing", "schema.version": "3"},
    {"type": "TimestampConverter$Value", "field": "at", "target.type": "unix"},
    {"type": "TimestampConverter$Value", "field": "at", "target.type": "Date"},
    {"type": "RegexRouter", "regex": "t", "replacement": "u"},
    {"type": "InsertHeader", "header": "h", "value.literal": "1"},
    {"type": "DropHeaders", "headers": "h"},
    {"type": "HeaderFrom$Value", "fields": "id", "headers": "h", "operation": "copy"},
    {"type": "HeaderFrom$Value", "fields": "id,name", "headers": "h,i", "operation": "move"},
    {"type": "ValueToKey", "fields": "id"},
    {"type": "TimestampRouter"},
    {"type": "TimestampRouter", "timestamp.format": "SSS"},
    {"type": "Filter"},
]
PREDICATES: dict[str, dict[str, str]] = {
    "even": {"type": f"{__name__}:EvenOffset"},
    "here": {"type": f"{KAFKA}.transforms.predicates.TopicNameMatches", "pattern": "t"},
    "there": {"type": f"{KAFKA}.transforms.predicates.TopicNameMatches", "pattern": "u.*"},
    "tombstone": {"type": f"{KAFKA}.transforms.predicates.RecordIsTombstone"},
}


@st.composite
def chains(draw: st.DrawFn) -> dict[str, str]:
    """Keys of up to three transformations, some with a predicate."""
    config: dict[str, str] = {}
    steps = draw(st.lists(st.sampled_from(STEPS), max_size=3))
    used = set()
    for number, step in enumerate(steps):
        prefix = f"transforms.s{number}."
        config |= {prefix + key: value for key, value in step.items()}
        config[prefix + "type"] = f"{KAFKA}.transforms.{step['type']}"
        # A Filter without a predicate leaves nothing to compare.
        predicate = draw(st.sampled_from([None, *PREDICATES] if step["type"] != "Filter" else [*PREDICATES]))
        if predicate is not None:
            used.add(predicate)
            config[prefix + "predicate"] = predicate
            config[prefix + "negate"] = draw(st.sampled_from(["true", "false"]))
    if steps:
        config["transforms"] = ",".join(f"s{number}" for number in range(len(steps)))
    if used:
        config["predicates"] = ",".join(sorted(used))
    config |= {f"predicates.{name}.{key}": value for name in used for key, value in PREDICATES[name].items()}
    return config


_NOT_JSON = ODD | st.just(b"\xff\xfe")
VALUES: dict[str, tuple[dict[str, str], st.SearchStrategy[Any]]] = {
    "json-schema": (WITH_SCHEMA, TEXTS),
    "json": (SCHEMALESS, TEXTS),
    "string": ({"value.converter": STRING}, st.text(max_size=8).map(lambda t: t.encode("utf-8", "replace"))),
    "bytes": (BYTES, st.binary(max_size=8)),
    "long": (LONGS, st.integers(-(2**63), 2**63 - 1).map(lambda n: struct.pack(">q", n))),
    "double": (DOUBLES, st.floats().map(lambda n: struct.pack(">d", n))),
    "avro": (avro_messages.CONVERTER, avro_messages.FIRST),
    "avro-evolving": (avro_messages.CONVERTER, avro_messages.FIRST | avro_messages.SECOND),
    "protobuf": (protobuf_messages.CONVERTER, protobuf_messages.FIRST),
    "protobuf-evolving": (protobuf_messages.CONVERTER, protobuf_messages.FIRST | protobuf_messages.SECOND),
}
REGISTERED: dict[str, tuple[st.SearchStrategy[Any], Callable[[], AbstractContextManager[None]]]] = {
    "avro": (avro_messages.BROKEN, avro_messages.known_schemas),
    "protobuf": (protobuf_messages.BROKEN, protobuf_messages.known_schemas),
}
"""Broken messages, and the registry of the others."""


@st.composite
def batches(
    draw: st.DrawFn, values: st.SearchStrategy[Any], broken: st.SearchStrategy[Any], odd: int
) -> list[list[KafkaRecord]]:
    """Consecutive batches of one partition; about one value in `odd` is `broken`.

    A few values are made up and used again and again: a value of its own for each record takes most of a search's time.
    """
    found: list[list[KafkaRecord]] = []
    usual = st.sampled_from(draw(st.lists(values, min_size=1, max_size=8)))
    unusual = st.sampled_from(draw(st.lists(broken, min_size=1, max_size=3)))
    offset, stamp = draw(st.integers(0, 3)), NOW_MS - 10**7
    for size in draw(st.lists(st.integers(1, 30), min_size=1, max_size=4)):
        records = []
        for _ in range(size):
            stamp += draw(st.sampled_from([0, 1000, 600_000, 4_000_000, -5_000_000]))
            value = draw(unusual if draw(st.integers(0, odd)) == odd else usual)
            records.append(KafkaRecord("t", 0, offset, None, value, stamp, 1, ()))
            offset += draw(st.sampled_from([1, 1, 1, 2]))
        found.append(records)
    return found


def _prepared(config: Mapping[str, str]) -> dict[str, str]:
    prepared = dict(config)
    if "rotate.schedule.interval.ms" in prepared:
        prepared.setdefault("timezone", "UTC")
    return prepared


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_configuration_stages_the_same_files_on_both_paths(
    kind: str, file_format: str, data: st.DataObject
) -> None:
    converter, values = VALUES[kind]
    layout = {**data.draw(CONFIGS), **data.draw(DIRECTORIES), **data.draw(ERRORS)}
    if kind.endswith("-evolving"):
        layout["schema.compatibility"] = data.draw(st.sampled_from(["NONE", "BACKWARD", "FORWARD", "FULL"]))
    config = _prepared({**converter, **FORMATS[file_format], **layout, **data.draw(chains())})
    broken, registry = REGISTERED.get(kind.removesuffix("-evolving"), (_NOT_JSON, nullcontext))
    records = data.draw(batches(values, broken, data.draw(st.sampled_from([5, 30, 10**6]))))
    flush_on_end = data.draw(st.booleans())
    smallest = data.draw(st.sampled_from([1, 4]))
    with registry(), patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", smallest):
        reference, _ = copy(config, records, columnar=False, flush_on_end=flush_on_end)
        columnar, _ = copy(config, records, columnar=True, flush_on_end=flush_on_end)
    assert (columnar.error, columnar) == (reference.error, reference)


THREE_STEPS = {
    "transforms": "o,r,m",
    "transforms.o.type": f"{KAFKA}.transforms.InsertField$Value",
    "transforms.o.offset.field": "offset",
    "transforms.r.type": f"{KAFKA}.transforms.ReplaceField$Value",
    "transforms.r.renames": "id:number",
    "transforms.m.type": f"{KAFKA}.transforms.MaskField$Value",
    "transforms.m.fields": "name",
}
DROP_EVEN = {
    "transforms": "f",
    "transforms.f.type": f"{KAFKA}.transforms.Filter",
    "transforms.f.predicate": "even",
    "predicates": "even",
    "predicates.even.type": f"{__name__}:EvenOffset",
}


def _vectorizable(count: int) -> list[list[KafkaRecord]]:
    values = [json.dumps({"id": n, "ok": n % 2 == 0, "name": f"n{n % 7}", "at": n}).encode() for n in range(count)]
    return [
        [KafkaRecord("t", 0, n, None, values[n], NOW_MS + n) for n in range(start, start + 1000)]
        for start in range(0, count, 1000)
    ]


@pytest.mark.parametrize(
    "config",
    [
        {**WITH_SCHEMA, **FORMATS["json"]},
        {**WITH_SCHEMA, **FORMATS["parquet"], **THREE_STEPS},
        {**WITH_SCHEMA, **FORMATS["json"], **THREE_STEPS},
        {**WITH_SCHEMA, **FORMATS["parquet"], **BY_FIELD, "timestamp.field": "at"},
        {**SCHEMALESS, **FORMATS["json"], **BY_FIELD, "timestamp.field": "at"},
        {**SCHEMALESS, **FORMATS["json"], **DROP_EVEN},
        {"value.converter": STRING, **FORMATS["json"]},
    ],
    ids=["schema-json", "three-steps-parquet", "three-steps-json", "field-time", "schemaless-time", "drop", "string"],
)
def test_vectorizable_records_of_these_configurations_all_go_in_columns(config: dict[str, str]) -> None:
    reference, _ = copy({**config, "flush.size": "700"}, _vectorizable(3000), columnar=False)
    columnar, in_columns = copy({**config, "flush.size": "700"}, _vectorizable(3000), columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert in_columns == 3000 and columnar.files


@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_avro_of_two_schemas_goes_in_columns_through_transformations(file_format: str) -> None:
    config = {**avro_messages.CONVERTER, **FORMATS[file_format], **THREE_STEPS, **HOURLY, "flush.size": "900"}
    value = {"name": "n", "at": NOW_MS, "day": 1, "ratio": 0.5, "small": 1, "price": None, "kind": "a", "inner": None}
    messages = [
        avro_messages.message(
            1 if n < 1500 else 2, {**value, "id": n, "ok": n % 2 == 0, "note": "x", "sizes": {"a": n, "b": None}}
        )
        for n in range(3000)
    ]
    records = [[KafkaRecord("t", 0, n, b"k", data, NOW_MS + n * 10_000) for n, data in enumerate(messages)]]
    with avro_messages.known_schemas():
        reference, _ = copy(config, records, columnar=False)
        columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert in_columns == 3000 and len(columnar.files) > 3


@pytest.mark.parametrize("file_format", FORMATS)
def test_protobuf_goes_in_columns_through_transformations(file_format: str) -> None:
    config = {**protobuf_messages.CONVERTER, **FORMATS[file_format], **THREE_STEPS, **HOURLY, "flush.size": "900"}
    value = {"name": "n", "at": {"seconds": NOW_MS // 1000}, "ratio": 0.5, "tags": ["a", "b"], "inner": {"n": 1}}
    value["sizes"] = {"x": 1, "a": 2}
    messages = [
        protobuf_messages.message(2, {**value, "id": n, "ok": n % 2 == 0, **({"text": "t"} if n % 3 else {})})
        for n in range(3000)
    ]
    records = [[KafkaRecord("t", 0, n, b"k", data, NOW_MS + n * 10_000) for n, data in enumerate(messages)]]
    with protobuf_messages.known_schemas():
        reference, _ = copy(config, records, columnar=False)
        columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert in_columns == (0 if file_format == "bytes" else 3000)
    assert bool(columnar.files) == (file_format != "bytes")


@pytest.mark.parametrize("file_format", ["json", "parquet", "avro"])
def test_records_that_a_predicate_chooses_stay_in_columns_with_the_others(file_format: str) -> None:
    """Columns of Protobuf say which fields are never null; those that a transformation has made do not."""
    mask = {f"transforms.m.{key}": value for key, value in {"fields": "name", "predicate": "even"}.items()}
    config = {**protobuf_messages.CONVERTER, **FORMATS[file_format], "flush.size": "90", "transforms": "m", **mask}
    config |= {"transforms.m.type": f"{KAFKA}.transforms.MaskField$Value", "predicates": "even"}
    config["predicates.even.type"] = PREDICATES["even"]["type"]
    values = [{"id": n, "ok": True, "name": f"n{n}", "lines": [{"n": n}], "sizes": {"a": n}} for n in range(300)]
    records = [KafkaRecord("t", 0, n, None, protobuf_messages.message(2, v), NOW_MS) for n, v in enumerate(values)]
    with protobuf_messages.known_schemas():
        reference, _ = copy(config, [records], columnar=False)
        columnar, in_columns = copy(config, [records], columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert in_columns == 300 and columnar.files


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("connector", ["S3", "HDFS"])
def test_refused_record_takes_no_other_with_it(connector: str, columnar: bool) -> None:
    hoist_odd = {
        "transforms": "h",
        "transforms.h.type": f"{KAFKA}.transforms.HoistField$Value",
        "transforms.h.field": "wrapped",
        "transforms.h.predicate": "even",
        "transforms.h.negate": "true",
        "predicates": "even",
        "predicates.even.type": f"{__name__}:EvenOffset",
    }
    config = {
        "value.converter": STRING,
        **FORMATS["parquet"],
        **hoist_odd,
        "flush.size": "2",
        "errors.tolerance": "all",
    }
    if connector == "HDFS":
        config |= HDFS_PARQUET
    # Strings are nothing that Parquet can hold, and one of them comes first.
    records = [[KafkaRecord("t", 0, n, None, b"text", NOW_MS)] for n in range(9)]
    with patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", 1):
        outcome, _ = copy(config, records, columnar=columnar)
    (report,) = outcome.reports
    assert (outcome.error, report.written) == ("", 4)
    # As in Confluent's sinks, the other schema ends files before it is found to be none for them.
    assert [(file[1], file[3]) for file in outcome.files] == [(n, 1) for n in (1, 3, 5, 7)]


def test_record_left_out_before_a_file_is_committed_wherever_lists_of_records_end() -> None:
    config = {**WITH_SCHEMA, **FORMATS["json"], **BY_FIELD, "timestamp.field": "at", "errors.tolerance": "all"}
    values = [
        b'{"id":0,"ok":false}',
        b'{"id":0,"ok":false,"at":0}',
        b'{"id":0,"ok":false}',
        b'{"id":0,"ok":false,"at":1}',
    ]
    records = [KafkaRecord("t", 0, n, None, value, NOW_MS) for n, value in enumerate(values)]
    outcomes = []
    for columnar in (False, True):
        for batches in ([records], [[record] for record in records]):
            with patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", 1):
                outcomes.append(copy({**config, "flush.size": "9"}, batches, columnar=columnar, flush_on_end=False)[0])
    (report,) = outcomes[0].reports
    assert (report.commit_offset, report.filtered, report.left) == (1, 1, 3)
    assert outcomes == [outcomes[0]] * 4


def test_dropped_records_count_where_they_stand() -> None:
    config = {**SCHEMALESS, **FORMATS["json"], **DROP_EVEN, "flush.size": "100"}
    outcome, in_columns = copy(config, _vectorizable(1000), columnar=True, flush_on_end=False)
    (report,) = outcome.reports
    assert in_columns == 1000
    assert (report.read, report.written, report.filtered, report.left) == (1000, 500, 500, 0)
    assert [(f[1], f[2]) for f in outcome.files[:2]] == [(1, 200), (201, 400)]


def test_configuration_of_which_nothing_is_vectorizable_is_tried_less_and_less() -> None:
    records = [[KafkaRecord("t", 0, n, None, b'{"id":"x"}', NOW_MS)] for n in range(200)]
    config = {**WITH_SCHEMA, **FORMATS["json"], "flush.size": "10", "errors.tolerance": "all"}
    with (
        patch("airflow_connect.runtime.executor.sink.coalescing.PARTITION_RECORDS", 1),
        patch("airflow_connect.converters.json.converter.JsonConverter.to_columns", return_value=None) as tried,
    ):
        outcome, in_columns = copy(config, records, columnar=True)
    assert in_columns == 0 and outcome.reports[0].written == 200
    assert 5 < tried.call_count < 20


@pytest.mark.parametrize(("odd", "expected"), [(3, range(4, 200)), (1, [1200])])
def test_batches_of_which_less_than_half_goes_in_columns_are_tried_less_and_less(
    odd: int, expected: Sequence[int]
) -> None:
    """Of each batch, `odd` quarters have a message that is not vectorizable."""
    batch = [b'{"id":"x"}' if n < 4 * odd and n % 4 == 0 else b'{"id":1,"ok":true}' for n in range(16)]
    records = [[KafkaRecord("t", 0, 16 * n + i, None, batch[i], NOW_MS) for i in range(16)] for n in range(100)]
    config = {**WITH_SCHEMA, **FORMATS["json"], "flush.size": "1000", "errors.tolerance": "all"}
    with (
        patch("airflow_connect.runtime.executor.sink.coalescing.PARTITION_RECORDS", 1),
        patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", 4),
    ):
        reference, _ = copy(config, records, columnar=False)
        columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert in_columns in expected
