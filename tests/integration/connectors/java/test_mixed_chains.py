"""Java classes in the chains of Python connectors, in runs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.runtime.driver.entry import validate_connector
from tests.integration.connectors.java.conftest import STRING
from tests.support.copies.java_plugin import JavaConnector
from tests.support.kafka_data import TopicProducer

pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]

COUNTS, MATCHES, REVERSES = (f"plugins.ChainStages${name}" for name in ("Counts", "Matches", "Reverses"))
JSON = "org.apache.kafka.connect.json.JsonConverter"
Mixed = Callable[..., JavaConnector]


@pytest.fixture
def mixed(kafka: KafkaBroker, plugin_path: Path, unique_name: str, tmp_path: Path) -> Mixed:
    """`mixed(topic, **keys)`: a sink that writes JSON into a directory; `_` in a key stands for `.`."""

    def make(topic: str, **keys: str) -> JavaConnector:
        config = {
            "connector.class": "LocalSinkConnector",
            "topics": topic,
            "store.url": f"file://{tmp_path}/out",
            "format.class": "JsonFormat",
            "flush.size": "1000",
            "airflow.java.heap.mb": "64",
        }
        config |= {key.replace("_", "."): value for key, value in keys.items()}
        worker = {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false"}
        return JavaConnector(kafka.bootstrap, f"mixed-{unique_name}", plugin_path, config, worker)

    return make


def written(tmp_path: Path) -> list[Any]:
    """The values of all records, by the names of their files."""
    files = sorted(path for path in (tmp_path / "out").rglob("*.json") if "+tmp" not in path.parts)
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def produced(make_topic: Callable[..., str], produce: TopicProducer, values: list[Any]) -> str:
    topic = make_topic(1)
    produce(topic, [(0, b"k", value if value is None else json.dumps(value).encode()) for value in values])
    return topic


def test_transformation_and_predicate_in_java_around_python(
    mixed: Mixed, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path
) -> None:
    values = [{"n": n, "say": "match-p" if n % 2 else ("drop-count" if n == 4 else "")} for n in range(12)]
    connector = mixed(
        produced(make_topic, produce, values),
        transforms="count,move,guarded",
        transforms_count_type=COUNTS,
        transforms_count_name="count",
        transforms_move_type="HeaderFrom$Value",
        transforms_move_fields="say",
        transforms_move_headers="said",
        transforms_move_operation="copy",
        transforms_guarded_type="InsertField$Value",
        transforms_guarded_static_field="by",
        transforms_guarded_static_value="python",
        transforms_guarded_predicate="p",
        predicates="p",
        predicates_p_type=MATCHES,
        predicates_p_name="p",
    )

    report = connector.run()

    assert (report.records, report.filtered) == (11, 1)
    found = written(tmp_path)
    # The predicate is true for each fifth call, too: record 5 and 11 say so themselves; the fifth of its calls is for 5.
    assert [row["n"] for row in found] == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert [row["n"] for row in found if "by" in row] == [1, 3, 5, 7, 9, 10, 11]
    named = f"Java classes run in a JVM beside each task, and records are not processed in columns: {COUNTS}, {MATCHES}."
    assert named in [note.replace(" and plugins", ", plugins") for note in report.notes]
