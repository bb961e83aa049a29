"""A run continues from documents of an earlier release, which had other members, and recovers its manifest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from airflow_connect.connectors.files.shared.publishing.state_document import KeptState
from airflow_connect.planning.limits import RunLimits
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
from tests.integration.complete_directories.conftest import HOURLY, T13, files_below, hour, markers
from tests.support.copies.local import LocalSink, local_sink

if TYPE_CHECKING:
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState

RECORDED = Path("tests/data/earlier_documents.json").read_text()
SCHEMA = {"type": "struct", "name": "reading", "version": 1, "fields": [{"field": "minute", "type": "double"}]}
CONFIG = {
    **HOURLY,
    "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
    "format.class": "io.confluent.connect.hdfs.avro.AvroFormat",
    "schema.compatibility": "BACKWARD",
    "late.records": "directory",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true",
}


@pytest.fixture
def sink(kafka: Any, make_topic: Any, tmp_path: Path) -> LocalSink:
    """The sink that was recorded: it wrote Avro files into directories of hours."""
    made = local_sink(kafka, tmp_path, make_topic())
    made.config = dict(CONFIG)
    return made


@pytest.fixture
def write(sink: LocalSink, produce: Any) -> Callable[..., None]:
    """`write(minutes...)`: records with times in minutes after 13:00."""

    def put(*minutes: float) -> None:
        values = [(minute, json.dumps({"schema": SCHEMA, "payload": {"minute": minute}})) for minute in minutes]
        produce(sink.topic, [(0, None, value, round(T13 + minute * 60_000)) for minute, value in values])

    return put


def write_recorded_documents(sink: LocalSink) -> None:
    """The connector's state and its open manifest, as the earlier release wrote them; the staged files are gone."""
    with SinkSession(SinkConfiguration.from_spec(sink.spec())) as kafka:
        topic_id = kafka.log_state(RunLimits()).topic_ids[sink.topic]
        text = RECORDED.replace("TOPIC_ID", topic_id).replace("TOPIC", sink.topic).replace("SINK", sink.name)
        recorded = json.loads(text.replace("/FOLDER", sink.bucket))
        kafka.journal.fence()
        kafka.journal.read()
        kafka.journal.begin(cast("ConnectorState", SimpleNamespace(to_json=lambda: recorded["state"])))
        kafka.journal.write_manifest(cast("Manifest", SimpleNamespace(to_json=lambda: recorded["manifest"])))


def test_manifest_of_an_earlier_release_is_recovered_and_the_next_run_continues(
    sink: LocalSink, write: Callable[..., None]
) -> None:
    write(1.0, 2.0, 61.0, 3.0, 62.0, 121.0)
    write_recorded_documents(sink)

    recovering = sink.run()

    # The record of 13:03 came after its hour was announced, so its file lies with those of late records, as before.
    assert files_below(sink, "topics/") == [
        f"topics/{sink.topic}/_late/year=2026/month=03/day=04/hour=13/{sink.topic}+0+0000000003+0000000003.avro",
        f"{hour(sink, 14)}/{sink.topic}+0+0000000004+0000000004.avro",
        f"{hour(sink, 15)}/{sink.topic}+0+0000000005+0000000005.avro",
    ]
    assert (recovering.recovered["records"], markers(sink)) == (3, [hour(sink, 14)])
    assert [(one["directory"], one["records"]) for one in recovering.complete] == [(hour(sink, 14), 2)]
    assert sink.offsets() == {0: 6}

    write(63.0, 122.0, 181.0)
    following = sink.run()

    assert following.late == 1
    assert [(one["directory"], one["records"]) for one in following.complete] == [(hour(sink, 15), 2)]
    kept = KeptState.from_json(sink.view().state.kept)  # type: ignore[union-attr]
    assert kept.time.boundaries == {sink.topic: T13 + 181 * 60_000}
    assert [json.loads(text)["name"] for text in kept.value_schemas.values()] == ["reading"]
