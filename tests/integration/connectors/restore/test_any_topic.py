"""Any topic, backed up and restored, is the same topic: whole records byte for byte, values with the stated losses."""

from __future__ import annotations

import json
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.copies.backups import TIME_MS
from tests.support.copies.local import local_sink
from tests.support.copies.restore import local_restore_of, stored
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.session.searching import examples

pytestmark = [pytest.mark.integration, pytest.mark.budget(40)]

BYTES = st.none() | st.binary(max_size=5)
NAMES = st.sampled_from(["a", "b", "ü", ""])
HOURS = st.integers(1, 4).map(lambda hour: TIME_MS + hour * 3_600_000)
RECORDS = st.lists(
    st.tuples(st.integers(0, 1), BYTES, BYTES, HOURS, st.lists(st.tuples(NAMES, BYTES), max_size=3)), max_size=6
)
BATCHES = st.lists(st.tuples(st.sampled_from(["plain", "commit", "abort"]), RECORDS), min_size=1, max_size=4)
LAYOUTS = st.sampled_from([{}, {"partitioner.class": "HourlyPartitioner", "locale": "en", "timezone": "UTC",
                                "timestamp.extractor": "Record"}])  # fmt: skip
FORMATS = st.sampled_from(["ParquetFormat", "AvroFormat", "OrcFormat"])
JSON_VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=4) | st.floats(-1e6, 1e6)
DOCUMENTS = st.lists(
    st.tuples(st.integers(0, 1), st.dictionaries(st.text(max_size=3), JSON_VALUES | st.lists(JSON_VALUES, max_size=2),
                                                 max_size=3)), min_size=1, max_size=12
)  # fmt: skip
FEW = settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))


def fill(bootstrap: str, produce: Any, batches: list[Any]) -> str:
    topic = f"any-{uuid.uuid4().hex[:12]}"
    create_topic(bootstrap, topic, 2)
    for kind, records in batches:
        if kind == "plain":
            produce(topic, records)
        else:
            produce.transaction(topic, records, kind)
    return topic


@given(batches=BATCHES, more=BATCHES, layout=LAYOUTS, form=FORMATS, size=st.integers(1, 5), columnar=st.booleans())
@FEW
def test_whole_records_of_any_topic_come_back(
    kafka: Any, produce: Any, batches: Any, more: Any, layout: Any, form: str, size: int, *, columnar: bool
) -> None:
    topic = fill(kafka.bootstrap, produce, batches)
    with tempfile.TemporaryDirectory() as folder:
        sink = local_sink(kafka, Path(folder), topic)
        sink.config |= {"store.kafka.records": "true", "flush.size": str(size), "format.class": form, **layout}
        restore = local_restore_of(sink, f"{topic}-restored")
        produce(topic, [(0, b"first", None, TIME_MS, [])])  # a backup of nothing is refused
        for added in ([], more):
            for kind, records in added:
                produce(topic, records) if kind == "plain" else produce.transaction(topic, records, kind)
            sink.run()
            restore.run(columnar=columnar)
            assert stored(kafka.bootstrap, restore.target) == stored(kafka.bootstrap, topic)
    for name in (topic, restore.target):
        delete_topic(kafka.bootstrap, name)


@given(documents=DOCUMENTS, size=st.integers(1, 5), columnar=st.booleans())
@FEW
def test_json_values_of_any_topic_come_back(
    kafka: Any, produce: Any, documents: Any, size: int, *, columnar: bool
) -> None:
    rows = [(partition, None, json.dumps(one).encode(), TIME_MS, []) for partition, one in documents]
    topic = fill(kafka.bootstrap, produce, [("plain", rows)])
    converter = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    with tempfile.TemporaryDirectory() as folder:
        sink = local_sink(kafka, Path(folder), topic)
        sink.config |= {"flush.size": str(size), "format.class": "JsonFormat", **converter}
        sink.run()
        restore = local_restore_of(sink, f"{topic}-restored", **converter, **{"accept.loss": "timestamp,key,headers"})
        restore.run(columnar=columnar)
    found = [(one.partition, json.loads(one.value or b"")) for one in stored(kafka.bootstrap, restore.target)]
    assert found == sorted(documents, key=lambda one: one[0])
    for name in (topic, restore.target):
        delete_topic(kafka.bootstrap, name)
