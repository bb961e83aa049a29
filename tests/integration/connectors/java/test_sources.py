"""Runs of Java sources that fail, are late, or have something unusual."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.testing.runs import run_here
from airflow_connect.testing.topics import Topics
from tests.conftest import MakeTopic
from tests.integration.connectors.java.conftest import MakeConnector, in_java
from tests.support.copies.java_plugin import JavaConnector
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

TO_OWN_TOPIC = {
    "transforms": "own",
    "transforms.own.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.own.regex": ".*",
}
"""The plugins name their topics themselves."""
TWENTY = [f"v{n}" for n in range(20)]


def routed(connector: JavaConnector, topic: str) -> JavaConnector:
    """The connector with a topic of this test."""
    connector.config |= {**TO_OWN_TOPIC, "transforms.own.replacement": topic}
    return connector


def values(connector: JavaConnector, topic: str) -> list[str]:
    return [(message.value() or b"").decode() for message in Topics(connector.bootstrap).read(topic)]


def processes_with(mark: str) -> list[str]:
    """Processes whose command line has this text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # It has ended.
        if mark in command:
            found.append(command)
    return found


@pytest.mark.parametrize(
    ("plugin", "code", "words"),
    [
        ("FailingSources$ThrowsInPoll", "java.plugin_failed", "plugins.FailingSources$ThrowsInPoll"),
        ("FailingSources$ExitsInPoll", "java.jvm_gone", "exit code"),
        ("FailingSources$HangsInPoll", "java.blocked", "HangTask.misbehave"),
    ],
)
def test_failing_plugin_fails_the_run_after_what_was_committed_and_leaves_no_process(
    make_connector: MakeConnector, make_topic: MakeTopic, plugin: str, code: str, words: str
) -> None:
    topic, mark = make_topic(), f"-Dmark={uuid.uuid4().hex}"
    connector = routed(make_connector(plugin, airflow_java_options=mark), topic)
    report = connector.try_run(airflow_java_block_timeout_ms="2000")

    assert report.error is not None
    assert report.error["code"] == code, report.error
    assert words in report.error["message"]
    assert values(connector, topic) in ([], TWENTY[:10], TWENTY)  # of no poll, the first one, or both
    wait_until(lambda: not processes_with(mark), "the end of the hosts")


def test_error_that_a_connector_raises_in_a_thread_fails_the_run(
    make_connector: MakeConnector, make_topic: MakeTopic
) -> None:
    connector = routed(make_connector("FailingSources$ConnectorRaisesError", late="true"), make_topic())
    # Its tasks fail, too: whichever is seen first.
    report = connector.try_run()
    assert report.error is not None
    assert report.error["code"] in ("java.plugin_failed", "task.plugin_failed"), report.error


def test_source_that_starts_late_is_not_empty(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    connector = routed(make_connector("OddSources$StartsLate"), topic)
    connector.config["after_ms"] = "3000"  # It has no dot.
    report = connector.run(airflow_java_start_grace_ms="20000")
    assert report.records == 20
    assert values(connector, topic) == TWENTY


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [("record", [*TWENTY[:4], *TWENTY[4:14]]), ("batch", TWENTY), ("abort", [])],
)
def test_transactions_end_where_the_plugin_says(
    make_connector: MakeConnector, make_topic: MakeTopic, marks: str, wanted: list[str]
) -> None:
    """What follows the last mark is not committed, as in a worker that is stopped."""
    topic = make_topic()
    connector = routed(make_connector("OddSources$Marks", marks=marks, transaction_boundary="connector"), topic)
    report = connector.run()
    assert values(connector, topic) == wanted
    assert report.source is not None
    assert report.source.discarded == (17 if marks == "abort" else 0)


def test_keys_values_headers_partitions_and_times_are_those_of_the_plugin(
    make_connector: MakeConnector, make_topic: MakeTopic
) -> None:
    topic = make_topic(4)
    connector = routed(make_connector("OddSources$Varied"), topic)
    assert connector.run().records == 3
    found: dict[Any, Any] = {m.key(): m for m in Topics(connector.bootstrap).read(topic)}

    assert found[None].value() == b"value"
    assert found[None].timestamp()[1] == 7
    assert found[None].headers() == [("twice", b"a"), ("twice", b"b"), ("none", None)]
    assert (found[b""].value(), found[b""].partition(), found[b""].headers()) == (b"", 3, [("", b"")])
    assert found["ключ".encode()].value() is None
    assert found["ключ".encode()].timestamp()[1] > 1_700_000_000_000


def test_batch_larger_than_a_frame_is_one_transaction(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    connector = routed(make_connector("OddSources$BigPoll", rows="50000", bytes="10"), topic)
    assert connector.start(crash_points.SOURCE_TASK_SENT).wait() is None
    report = connector.run()

    assert report.source is not None
    assert (report.records, report.source.transactions) == (50_000, 1)
    assert len(values(connector, topic)) == 50_000


def test_record_without_an_offset_needs_none(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    connector = routed(make_connector("OddSources$NullOffsets"), topic)
    report = connector.run()
    assert report.records == 6
    assert report.source is not None
    assert [move.partition for move in report.source.offsets] == [{"file": "b"}]


def test_record_that_deletes_its_offset_fails_the_run_and_no_record_is_left_out(
    make_connector: MakeConnector, make_topic: MakeTopic
) -> None:
    """The poll was repeated, with the next records: those before were lost, and the run was green."""
    topic = make_topic()
    connector = routed(make_connector("OddSources$DeletesOffset"), topic)
    assert connector.run().records == 1
    report = connector.try_run()
    assert report.error is not None and report.error["code"] == "java.offset", report
    assert values(connector, topic) == ["kept"]


def test_dropped_and_failing_records_are_counted(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    connector = routed(make_connector("FailingSources$LeaksThread"), topic)
    connector.config |= {
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "transforms": "number,own",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "int32",
    }
    report = connector.run()
    assert report.source is not None
    assert (report.records, report.source.failed) == (0, 20)
    connector.config["errors.tolerance"] = "none"
    failed = connector.try_run(name=f"{connector.name}-2")
    assert failed.error is not None
    if not in_java(connector):
        place = r"number 1 of [12]0 that plugins\.FailingSources\$LeaksThread has returned together, for topic numbers"
        assert re.search(f"{place} failed in TRANSFORMATION", failed.error["message"])
        return
    assert failed.error["code"] == "java.record"
    assert "org.apache.kafka.connect.transforms.Cast$Value failed with" in failed.error["message"]
    assert "topic numbers, source partition {file=x}, offset {position=0} failed in TRANSFORMATION" in str(failed.error)


def test_offsets_that_json_cannot_hold_are_refused(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    connector = routed(make_connector("OddSources$BadOffsets", kind="nan"), make_topic())
    report = connector.try_run()
    assert report.error is not None
    assert "which JSON has no exact form for" in report.error["message"]


def test_plan_says_what_the_plugin_promises(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    from airflow_connect.runtime.driver.entry import plan_connector

    connector = routed(make_connector("OddSources$Marks", marks="batch"), make_topic())
    plan = plan_connector(connector.spec())
    assert not [note for note in plan.notes if "exactly once" in note]
    unknown = plan_connector(routed(make_connector("OddSources$Varied"), make_topic()).spec())
    assert any("does not declare support for exactly once" in note for note in unknown.notes)
    assert json.dumps(plan.to_json())


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_heartbeats_are_written_but_do_not_keep_a_run_from_ending(
    make_connector: MakeConnector, make_topic: MakeTopic, columnar: bool
) -> None:
    """They come by a clock, however little there is to read; here, in each poll."""
    source = routed(make_connector("LikeDebezium", connector_class="io.debezium.like.LikeDebezium"), make_topic())
    source.config |= {"step_ms": "100", "beats": "true", "run.max.seconds": "15"}
    report, _ = run_here(source.spec(), columnar=columnar)
    assert report.status == "done", report.error
    assert report.source is not None
    assert report.source.ended_by == {"end": 1}
    assert "row" in values(source, source.config["transforms.own.replacement"])


def test_secrets_are_hidden_in_what_a_plugin_prints_and_throws(
    make_connector: MakeConnector, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """As they are, in JSON, in URLs, in two pieces; also of keys that only the plugin's definition makes a secret."""
    (tmp_path / "values").write_text("where=from-a-file\n")
    caplog.set_level("INFO")
    connector = routed(make_connector("NoisySources$Noisy", how="secrets"), make_topic())
    connector.config |= {"password": 'pa"ss\\w/rd \u00fc&x', "quiet": "Tr0ub4dor"}
    connector.config["place"] = f"${{file:{tmp_path}/values:where}}"
    connector.worker_config |= {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    report = connector.try_run()

    printed = [line for line in caplog.messages if line.endswith(" END")]
    text = json.dumps(report.to_json()) + caplog.text
    assert len(printed) == 8, printed
    assert [line.split()[0] for line in printed if "[hidden]" not in line] == []
    assert [part for part in ("ss\\w", "ss\\\\w", "ss%5Cw", "Tr0ub4dor", "from-a-file") if part in text] == []
