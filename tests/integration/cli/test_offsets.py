"""`offsets` and `replay`, of registered connectors and of those that only a file describes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from airflow_connect.runtime.engine import spark
from airflow_connect.runtime.engine.in_process import InProcessEngine

pytestmark = pytest.mark.integration

PLACE = {"kafka_topic": "t", "kafka_partition": 0}


class Person(io.StringIO):
    """Somebody at a terminal, who answers."""

    def isatty(self):
        return True


class EngineHere(InProcessEngine):
    """In place of Spark, which would only decide where the same function runs."""

    def __init__(self, settings):
        super().__init__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing to close."""


@pytest.fixture
def topic(make_topic, produce):
    """Ten records, one a second from 1970-01-01T00:00:01Z on."""
    topic = make_topic()
    produce(topic, [(0, None, f"line {n}", n * 1000 + 1000) for n in range(10)])
    return topic


@pytest.fixture
def sink(topic, tmp_path):
    return {
        "connector_class": "LocalSinkConnector",
        "topics": topic,
        "store_url": f"file://{tmp_path}/out",
        "format_class": "JsonFormat",
        "flush_size": "4",
    }


def effects(done):
    return [(row["before"], row["after"], row["effect"]) for row in done.result["offsets"]]


def at(offset):
    return None if offset is None else {"kafka_offset": offset}


def test_offsets_of_a_registered_sink_are_compared_set_and_reset(
    over_kafka, connector_file, sink, unique_name, topic, monkeypatch
):
    name = unique_name
    over_kafka("connectors", "create", connector_file(name, **sink))
    assert over_kafka("offsets", "get", name).out == "No offsets.\n"
    running = over_kafka("offsets", "set", name, "--to", "3", "--yes")
    assert (running.exit_code, f"airflow-connect connectors stop {name} --worker" in running.err) == (2, True)
    over_kafka("connectors", "stop", name)

    assert effects(over_kafka("offsets", "diff", name, "--to", "latest", "--json")) == [(None, at(10), "starts at 10")]
    assert over_kafka("offsets", "get", name).out == "No offsets.\n"
    asked = over_kafka("offsets", "set", name, "--to", "latest")
    assert (asked.exit_code, "add --yes" in asked.err) == (2, True)
    assert over_kafka("offsets", "set", name, "--to", "latest", "--yes").exit_code == 0
    assert over_kafka("offsets", "get", name).out.split() == ["PARTITION", "OFFSET", f"{topic}-0", "10"]

    monkeypatch.setattr("sys.stdin", Person("no\n"))
    declined = over_kafka("offsets", "set", name, "--to", "earliest")
    assert (declined.out, declined.err.splitlines()[-1]) == (
        "Nothing was changed.\n",
        f"Change the offsets of {name}? [y/N] ",
    )
    assert "copies 10 offsets again" in declined.err
    monkeypatch.setattr("sys.stdin", Person("y\n"))
    back = over_kafka("offsets", "set", name, "--to", "1970-01-01T00:00:04Z")
    assert back.out.splitlines() == [
        f"PARTITION{' ' * (len(topic) + 2 - 9)}  OLD  NEW  EFFECT",
        f"{topic}-0   10    3  copies 7 offsets again",
        f"✓ {name}: 1 offset changed.",
    ]
    ahead = over_kafka("offsets", "diff", name, "--to", "8", "--partition", f"{topic}-0", "--json")
    assert effects(ahead) == [(at(3), at(8), "skips 5 offsets")]
    assert effects(over_kafka("offsets", "diff", name, "--to", "3", "--json")) == [(at(3), at(3), "no change")]
    outside = over_kafka("offsets", "set", name, "--to", "11", "--yes")
    assert (outside.exit_code, "outside the log" in outside.err) == (1, True)
    assert effects(over_kafka("offsets", "reset", name, "--yes", "--json")) == [
        (at(3), None, "starts as if it had never run (auto.offset.reset)")
    ]
    assert over_kafka("offsets", "get", name).out == "No offsets.\n"


def test_offsets_over_rest_are_absolute_and_say_why(over_rest, connector_file, sink, unique_name, topic, tmp_path):
    name, wanted = unique_name, tmp_path / "offsets.json"
    over_rest("connectors", "create", connector_file(name, **sink), "--state", "STOPPED")
    wanted.write_text(json.dumps({"offsets": [{"partition": {**PLACE, "kafka_topic": topic}, "offset": at(4)}]}))
    assert over_rest("offsets", "set", name, "--file", wanted, "--yes").exit_code == 0
    assert effects(over_rest("offsets", "diff", name, "--to", "6", "--json")) == [(at(4), at(6), "skips 2 offsets")]
    refused = over_rest("offsets", "set", name, "--to", "earliest", "--yes")
    assert (refused.exit_code, "use --worker instead of --url" in refused.err) == (2, True)
    assert over_rest("offsets", "reset", name, "--yes").exit_code == 0
    assert over_rest("offsets", "get", name, "--json").result["offsets"] == []
    wanted.write_text("{")
    assert "is not JSON" in over_rest("offsets", "diff", name, "--file", wanted).err


def test_offsets_of_a_connector_that_is_not_registered(over_kafka, over_rest, connector_file, sink, unique_name):
    file = connector_file(unique_name, **sink)
    assert over_kafka("offsets", "set", file, "--to", "earliest", "--yes").exit_code == 0
    assert over_kafka("offsets", "get", file, "--json").result["offsets"][0]["offset"] == at(0)
    refused = over_rest("offsets", "get", file)
    assert (refused.exit_code, "needs the brokers" in refused.err) == (2, True)


def test_offsets_of_a_source(over_kafka, connector_file, unique_name, tmp_path, make_topic):
    lines = {"connector_class": "FileStreamSource", "file": f"{tmp_path}/in.txt", "topic": make_topic()}
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    file, wanted = connector_file(unique_name, **lines), tmp_path / "offsets.json"
    partition = {"filename": f"{tmp_path}/in.txt"}
    wanted.write_text(json.dumps([{"partition": partition, "offset": {"position": 4}}]))
    done = over_kafka("offsets", "set", file, "--file", wanted, "--yes", "--json")
    assert effects(done) == [(None, {"position": 4}, "continues there")]
    before = over_kafka("offsets", "get", file, "--json")
    assert before.result["offsets"][0]["offset"]["position"] == 4
    done = over_kafka("offsets", "reset", file, "--yes", "--json")
    assert [row["effect"] for row in done.result["offsets"]] == ["reads it from the beginning"]
    assert over_kafka("offsets", "get", file).out == "No offsets.\n"
    wanted.write_text(before.out)
    assert over_kafka("offsets", "set", file, "--file", wanted, "--yes").exit_code == 0
    assert over_kafka("offsets", "get", file, "--json").out == before.out


def test_a_range_is_replayed_into_another_directory_once(
    over_kafka, connector_file, sink, unique_name, topic, tmp_path, monkeypatch
):
    monkeypatch.setattr(spark, "SparkEngine", EngineHere)
    file = connector_file(unique_name, **sink)
    over_kafka("offsets", "set", file, "--to", "latest", "--yes")

    def again():
        files = sorted(Path(tmp_path, "out").rglob("*.json"))
        return [line for path in files for line in path.read_text().splitlines()]

    words = ("replay", file, "--from", "1970-01-01T00:00:03Z", "--to", "7", "--set", "topics.dir=again")
    first = over_kafka(*words, "--json")
    assert (first.exit_code, first.result["report"]["records"]) == (0, 5)
    assert again() == [f'"line {n}"' for n in range(2, 7)]
    assert over_kafka(*words, "--json").result["report"]["status"] == "empty"
    assert len(again()) == 5
    assert over_kafka("offsets", "get", file, "--json").result["offsets"][0]["offset"] == at(10)

    refused = over_kafka("replay", file, "--from", "earliest")
    assert (refused.exit_code, "replay.same_place" in refused.err) == (2, True)
    failed = over_kafka("replay", file, "--from", "999", "--set", "topics.dir=again")
    assert failed.exit_code == 1
