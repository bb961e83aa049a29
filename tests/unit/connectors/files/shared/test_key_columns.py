"""Files of keys beside those of values: both paths stage the same ones, whatever keys, formats and directories."""

from __future__ import annotations

import json
import struct
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.record import KafkaRecord
from airflow_connect.runtime.executor.sink import loop as sink_loop
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared import avro_messages
from tests.unit.connectors.files.shared.staging import JSON, NOW_MS, STRING, copy
from tests.unit.connectors.files.shared.test_column_configurations import FORMATS, KAFKA, SCHEMALESS, WITH_SCHEMA
from tests.unit.connectors.files.shared.test_columns import CONFIGS, ERRORS, HOURLY, ODD, TEXTS

KEY_SCHEMA = '{"type":"struct","optional":false,"fields":[{"field":"k","type":"int64","optional":true}]}'
OF_KEY = {key.replace("value", "key"): value for key, value in avro_messages.CONVERTER.items()}
JSON_KEYS = st.integers(-5, 5).map(lambda n: b'{"k":%d}' % n) | st.sampled_from(
    [b'{"k":1,"more":2}', b'{"k":1,"more":null}', b'{"k":null}', b"{}", b'{"k":9223372036854775808}', b'{"k":"1"}']
)
KEYS: dict[str, tuple[dict[str, str], st.SearchStrategy[Any]]] = {
    "string": ({"key.converter": STRING}, st.text(max_size=4).map(lambda text: text.encode("utf-8", "replace"))),
    "bytes": ({"key.converter": f"{KAFKA}.converters.ByteArrayConverter"}, st.binary(max_size=4)),
    "long": (
        {"key.converter": f"{KAFKA}.converters.LongConverter"},
        st.integers(-(2**63), 2**63 - 1).map(lambda n: struct.pack(">q", n)),
    ),
    "json": ({"key.converter": JSON, "key.converter.schemas.enable": "false"}, JSON_KEYS | st.just(b"7")),
    "json-schema": ({"key.converter": JSON, "key.converter.schema.content": KEY_SCHEMA}, JSON_KEYS),
    "avro": (OF_KEY, avro_messages.FIRST),
    "avro-evolving": (OF_KEY, avro_messages.FIRST | avro_messages.SECOND),
}
KEY = {
    "id": 1, "name": None, "ok": True, "at": 1, "day": None, "ratio": 0.5, "small": 1, "price": None, "kind": "a",
    "tags": None, "lines": [], "inner": None,
}  # fmt: skip
KEY_FORMATS = {name: {"keys.format.class": form["format.class"]} for name, form in FORMATS.items()}
STEPS = [
    {},
    {"transforms": "s", "transforms.s.type": f"{KAFKA}.transforms.ValueToKey", "transforms.s.fields": "id,ok"},
    {"transforms": "s", "transforms.s.type": f"{KAFKA}.transforms.HoistField$Key", "transforms.s.field": "wrapped"},
]
VALUES = {"json": SCHEMALESS, "json-schema": WITH_SCHEMA}


@st.composite
def batches(draw: st.DrawFn, keys: st.SearchStrategy[Any]) -> list[list[KafkaRecord]]:
    """Consecutive batches of one partition, most of them with a key and a value in each record."""
    usual = st.sampled_from(draw(st.lists(TEXTS, min_size=1, max_size=5)))
    of_keys = st.sampled_from(draw(st.lists(keys, min_size=1, max_size=5)))
    odd = draw(st.sampled_from([3, 30, 10**6]))
    found: list[list[KafkaRecord]] = []
    offset = 0
    for size in draw(st.lists(st.integers(1, 30), min_size=1, max_size=5)):
        records = []
        for _ in range(size):
            key, value = draw(of_keys), draw(usual)
            if draw(st.integers(0, odd)) == odd:
                key = draw(st.sampled_from([None, b"", b"{", b"\\xff", key]))
                value = draw(ODD | usual)
            stamp = NOW_MS - 10**7 + draw(st.integers(0, 3)) * 3_600_000
            records.append(KafkaRecord("t", 0, offset, key, value, stamp, 1, ()))
            offset += draw(st.sampled_from([1, 1, 1, 4]))
        found.append(records)
    return found


@pytest.mark.parametrize("key_format", KEY_FORMATS)
@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_both_paths_stage_the_same_files_of_keys(key_format: str, data: st.DataObject) -> None:
    converter, keys = KEYS[data.draw(st.sampled_from(list(KEYS)))]
    values, form = data.draw(st.sampled_from([("json", "json"), ("json-schema", "parquet"), ("json-schema", "avro")]))
    config = {**VALUES[values], **FORMATS[form], **converter, **KEY_FORMATS[key_format], "store.kafka.keys": "true"}
    config |= {**data.draw(CONFIGS), **data.draw(st.sampled_from([{}, HOURLY])), **data.draw(ERRORS)}
    config |= data.draw(st.sampled_from(STEPS))
    if "rotate.schedule.interval.ms" in config:
        config |= {"timezone": "UTC"}
    records, flush_on_end = data.draw(batches(keys)), data.draw(st.booleans())
    smallest = data.draw(st.sampled_from([1, 4]))
    with avro_messages.known_schemas(), patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", smallest):
        reference, _ = copy(config, records, columnar=False, flush_on_end=flush_on_end)
        columnar, _ = copy(config, records, columnar=True, flush_on_end=flush_on_end)
    if "cannot write a value" in columnar.error and columnar.error != reference.error:
        assert reference.error or (not flush_on_end and any(report.left for report in reference.reports))
        return
    assert (columnar.error, columnar) == (reference.error, reference)


@pytest.mark.parametrize(
    "layout", [{}, HOURLY, {**HOURLY, "files.per.partition": "compact"}], ids=["one", "hours", "compact"]
)
@pytest.mark.parametrize("key_format", KEY_FORMATS)
def test_keys_are_all_written_in_columns(key_format: str, layout: dict[str, str]) -> None:
    converter = KEYS["bytes" if key_format == "bytes" else "string"][0]
    config = {**WITH_SCHEMA, **FORMATS["parquet"], **converter, **KEY_FORMATS[key_format], **layout}
    config |= {"store.kafka.keys": "true", "flush.size": "700"}
    records = [
        [
            KafkaRecord("t", 0, n, b"key %d" % (n % 7), json.dumps({"id": n, "ok": True}).encode(), _stamp(n))
            for n in range(start, start + 1000)
        ]
        for start in range(0, 3000, 1000)
    ]
    reference, _ = copy(config, records, columnar=False)
    columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    assert in_columns == 3000
    assert len([file for file in columnar.files if ".keys." in file[0]]) == len(columnar.files) // 2 > 0


def _stamp(n: int) -> int:
    return NOW_MS + n * 7919 % 5 * 3_600_000


@pytest.mark.parametrize("layout", [{}, {**HOURLY, "files.per.partition": "compact"}], ids=["one", "compact"])
@pytest.mark.parametrize("key_format", ["json", "parquet", "avro"])
def test_key_with_another_schema_begins_another_file(key_format: str, layout: dict[str, str]) -> None:
    """The file of the first one would lose the field that it does not have."""
    config = {**SCHEMALESS, **FORMATS["json"], **OF_KEY, **KEY_FORMATS[key_format], **layout}
    config |= {"store.kafka.keys": "true", "flush.size": "1000"}
    versions = [avro_messages.message(1, KEY), avro_messages.message(2, {**KEY, "note": "of the second"})]
    keys = [versions[0]] * 150 + [versions[1]] * 250
    records = [
        [KafkaRecord("t", 0, n, keys[n], b"{}", NOW_MS) for n in range(start, start + 100)]
        for start in range(0, 400, 100)
    ]
    with avro_messages.known_schemas():
        reference, _ = copy(config, records, columnar=False)
        columnar, in_columns = copy(config, records, columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    # Avro files with arrays are written record by record, and so is the middle of the batch with both schemas.
    assert in_columns == 0 if key_format == "avro" else 300 <= in_columns < 400
    of_keys = [file for file in columnar.files if ".keys." in file[0]]
    assert [file[1:4] for file in of_keys] == [(0, 150, 150), (150, 400, 250)]
    assert ["of the second" in str(file[4]) for file in of_keys] == [False, True]
