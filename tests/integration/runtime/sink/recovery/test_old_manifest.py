"""A manifest that an earlier release left open is rolled forward."""

import pytest
from confluent_kafka import Producer

from airflow_connect.kafka.state.state_documents import encode_document
from tests.support.copies.s3 import numbered
from tests.support.steps import Crashed


def test_open_manifest_of_version_1_is_published_and_committed(make_topic, produce, make_sink, steps, unique_name):
    topic, runs = make_topic(), f"runs-{unique_name}"
    produce(topic, numbered(0, 60)[0])
    sink = make_sink(topic, flush_size="2")
    sink.worker_config = {"runs.storage.topic": runs, "runs.storage.partitions": "1"}
    steps.crash("manifest.written")
    with pytest.raises(Crashed):
        sink.run()
    manifest = sink.view().manifest
    assert manifest is not None
    assert isinstance(manifest.to_json()["files"], str)
    old = {**manifest.to_json(), "v": 1, "files": [file.to_json() for file in manifest.files]}
    producer = Producer({"bootstrap.servers": sink.kafka.bootstrap})
    for key, value in encode_document("manifest", sink.name, old):
        producer.produce(runs, value, key, partition=0)
    assert producer.flush(30) == 0

    sink.run()

    assert len(sink.keys()) == 30
    assert sink.view().manifest is None
    sink.assert_exactly_once(numbered(0, 60)[1])
