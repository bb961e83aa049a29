"""Records without a value among others: the others are columns, and the result is that of record by record."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_connect.api.columns import NullValues
from airflow_connect.api.record import KafkaRecord
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.sink import loop as sink_loop
from airflow_connect.runtime.executor.sink.null_values import left_to_sink
from tests.support.session.searching import examples
from tests.unit.connectors.files.shared.staging import JSON, NOW_MS, STRING, columns_of, copy
from tests.unit.connectors.files.shared.test_column_configurations import (
    FORMATS,
    HDFS_PARQUET,
    SCHEMALESS,
    WITH_SCHEMA,
    chains,
)
from tests.unit.connectors.files.shared.test_columns import HOURLY, TEXTS

FORMS = {
    "json": {**FORMATS["json"], **SCHEMALESS},
    "parquet": {**FORMATS["parquet"], **WITH_SCHEMA},
    "avro": {**FORMATS["avro"], **WITH_SCHEMA},
    "hdfs": {**HDFS_PARQUET, **WITH_SCHEMA},
    "hourly": {**FORMATS["json"], **WITH_SCHEMA, **HOURLY},
    "strings": {**FORMATS["json"], "value.converter": STRING},
}
TOMBSTONES = {
    "transforms": "drop",
    "transforms.drop.type": "Filter",
    "transforms.drop.predicate": "gone",
    "predicates": "gone",
    "predicates.gone.type": "RecordIsTombstone",
}
HOISTED = {"transforms": "h", "transforms.h.type": "HoistField$Value", "transforms.h.field": "v"}
QUEUE = {"errors.deadletterqueue.topic.name": "letters", "errors.tolerance": "all"}
NULLS = st.fixed_dictionaries(
    {
        "behavior.on.null.values": st.sampled_from(["ignore", "ignore", "ignore", "fail"]),
        "report.null.values.to.dlq": st.sampled_from(["true", "false"]),
    }
)
ERRORS = st.sampled_from([{}, {"errors.tolerance": "all"}, QUEUE, {"errors.deadletterqueue.topic.name": "letters"}])
KEYS = {"key.converter": JSON, "key.converter.schema.content": (
    '{"type":"struct","fields":[{"field":"k","type":"int64","optional":false}]}'
)}  # fmt: skip


def both(config: dict[str, str], records: list[KafkaRecord], smallest: int = 1) -> int:
    """Compare both paths; returns how many records were in batches that were written in columns."""
    reference, _ = copy(config, [records], columnar=False)
    with patch.object(sink_loop, "SMALLEST_COLUMN_BATCH", smallest):
        columnar, in_columns = copy(config, [records], columnar=True)
    assert (columnar.error, columnar) == (reference.error, reference)
    return in_columns


def records_of(values: list[bytes | None], key: bytes | None = b'{"k":1}') -> list[KafkaRecord]:
    return [KafkaRecord("t", 0, 10 + 3 * n, key, value, NOW_MS + n) for n, value in enumerate(values)]


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    chain=chains() | st.just(TOMBSTONES),
    nulls=NULLS,
    errors=ERRORS,
    values=st.lists(st.none() | TEXTS, min_size=1, max_size=12),
    keys=st.sampled_from([{}, KEYS]),
    key=st.sampled_from([None, b"k", b'{"k":1}', b'{"k":1,"more":2}']),
)
@example(HOISTED, {"behavior.on.null.values": "ignore"}, {}, [None, b'{"id":1}', None], {}, b"k")
@example({}, {"behavior.on.null.values": "ignore"}, {}, [None, b'{"id":1}', None], KEYS, b'{"k":1,"more":2}')
@example({}, {"behavior.on.null.values": "ignore"}, QUEUE, [None, b'{"id":1}', None], KEYS, b"k")
def test_both_paths_write_the_same_files(
    form: str, chain: Any, nulls: Any, errors: Any, values: list[bytes | None], keys: Any, key: bytes | None
) -> None:
    both({"flush.size": "3", **FORMS[form], **chain, **nulls, **errors, **keys}, records_of(values, key))


def mixed(count: int) -> list[bytes | None]:
    value = b'{"id":%d,"ok":true,"at":1700000000000,"inner":{"n":1}}'
    return [None if n % 3 == 1 else value % n for n in range(count)]


IGNORED = {"behavior.on.null.values": "ignore", "flush.size": "100"}
LINES = {**FORMATS["json"], **SCHEMALESS}
MASKED = {"transforms": "m", "transforms.m.type": "RegexRouter", "transforms.m.regex": "t"}
MASKED["transforms.m.replacement"] = "u"


@pytest.mark.parametrize(
    ("config", "in_columns"),
    [
        (IGNORED, True),
        ({**IGNORED, **MASKED}, True),
        ({**IGNORED, **TOMBSTONES}, True),
        ({**IGNORED, **KEYS}, True),
        ({**IGNORED, "errors.tolerance": "all"}, True),
        ({**IGNORED, **QUEUE, "report.null.values.to.dlq": "false"}, True),
        ({**IGNORED, **QUEUE}, False),
        ({**IGNORED, **HOISTED}, False),
        ({**IGNORED, "behavior.on.null.values": "fail"}, False),
        ({**TOMBSTONES, "flush.size": "100"}, True),
    ],
    ids=[
        "ignored", "transformed", "dropped", "keys", "tolerated", "unreported", "queue", "given values", "failing",
        "dropped before they fail",
    ],
)  # fmt: skip
def test_values_among_nulls_are_columns_where_nulls_are_only_left_out(config: dict[str, str], in_columns: bool) -> None:
    found = both({**LINES, **config}, records_of(mixed(600)), smallest=64)
    assert found == (600 if in_columns else 0)


def test_a_batch_of_nulls_only_is_left_out_as_a_whole() -> None:
    assert both({**LINES, **IGNORED}, records_of([None] * 200), smallest=64) == 200


def test_members_that_the_schema_of_keys_does_not_have_are_counted_once() -> None:
    config = {**FORMATS["json"], **SCHEMALESS, **KEYS, **IGNORED}
    records = records_of(mixed(9), b'{"k":1,"more":2}')
    for chain in ({}, MASKED):
        outcome, in_columns = copy({**config, **chain}, [records], columnar=True)
        assert in_columns == 9
        assert [note for note in outcome.notes if note.endswith("Records: 9.")] == list(outcome.notes)
        assert len(outcome.notes) == 1


def test_members_of_keys_are_not_counted_for_other_records() -> None:
    records = [
        KafkaRecord("t", 0, 0, b'{"k":1}', b'{"id":1,"id":2}', NOW_MS),  # not vectorizable
        KafkaRecord("t", 0, 1, b'{"k":1,"more":2}', None, NOW_MS),
    ]
    config = {**FORMATS["json"], **WITH_SCHEMA, **KEYS, **IGNORED, **MASKED, "errors.tolerance": "all"}
    assert both(config, records, smallest=64) == 0
    outcome, _ = copy(config, [records], columnar=True)
    assert [note for note in outcome.notes if "more" in note and note.endswith("Records: 1.")]


def test_offsets_of_nulls_are_those_that_reach_the_sink() -> None:
    batch = columns_of(records_of(mixed(9), b"k"))
    for chain, offsets in (({}, [13, 22, 31]), (MASKED, [13, 22, 31]), (TOMBSTONES, [])):
        connector = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "/f", **chain}
        worker = {"bootstrap.servers": "x:1", "key.converter": STRING, "value.converter": STRING}
        converter = RecordConverter(load_connector_config(connector, worker))
        found = left_to_sink(batch, converter, NullValues.LEFT_OUT, has_queue=True)
        assert found is not None and found.tolist() == offsets
        for nulls, has_queue in ((NullValues.NEEDED, False), (NullValues.REPORTED, True)):
            refused = left_to_sink(batch, converter, nulls, has_queue=has_queue)
            assert (refused is None) is bool(offsets)


def test_a_refused_key_of_a_record_without_value_is_an_error_on_both_paths() -> None:
    records = records_of(mixed(6))
    records[1] = KafkaRecord("t", 0, records[1].offset, b"no JSON", None, NOW_MS)
    config = {**LINES, **KEYS, **IGNORED}
    assert both(config, records, smallest=64) == 0
    assert both({**config, "errors.tolerance": "all"}, records) > 0
    assert "no JSON" not in json.dumps(copy(config, [records], columnar=True)[0].error)
