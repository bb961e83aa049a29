"""Lines that a real broker refuses: the run fails and skips nothing, or leaves them out where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.file_stream.source.conftest import Lines, MakeLines

GUARANTEES = ["exactly_once", "at_least_once", "at_most_once"]
FAULTS = {
    "no key in a compacted topic": ("cleanup.policy", "compact", "delete", "INVALID_RECORD"),
    "a record that is too large": ("max.message.bytes", "4000", "1048588", "larger than Kafka accepts"),
}
SetTopic = Callable[[Lines, str, str], None]


@pytest.fixture
def set_topic() -> SetTopic:
    def change(source: Lines, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, source.topic, incremental_configs=[entry])
        admin = admin_client({"bootstrap.servers": source.bootstrap})
        for done in admin.incremental_alter_configs([resource]).values():
            done.result(30)

    return change


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("fault", FAULTS)
def test_run_fails_and_the_next_one_reads_the_refused_lines_again(
    make_lines: MakeLines, set_topic: SetTopic, tmp_path: Path, fault: str, guarantee: str, columnar: bool
):
    key, broken, mended, said = FAULTS[fault]
    lines = [*(f"line {n}" for n in range(50)), "x" * 9000]
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    source = make_lines(tmp_path / "a.log", delivery_guarantee=guarantee)
    set_topic(source, key, broken)

    report = source.try_run(columnar=columnar)
    assert report.status == "failed"
    assert report.error is not None
    assert said in str(report.error)
    assert "line 1" not in str(report.error) and "xxx" not in str(report.error)

    set_topic(source, key, mended)
    source.run(columnar=columnar)
    arrived = set(source.lines())
    assert arrived == set(lines) if guarantee != "at_most_once" else arrived <= set(lines)
    assert guarantee != "exactly_once" or source.lines() == lines


@pytest.mark.parametrize("guarantee", ["at_least_once", "at_most_once"])
def test_tolerated_lines_are_left_out_and_counted_and_no_other(
    make_lines: MakeLines, set_topic: SetTopic, tmp_path: Path, guarantee: str
):
    """As in Kafka Connect (KIP-779); a batch that is too large for the topic says nothing about its records."""
    lines = [f"line {n} {'y' * 100}" for n in range(500)]
    lines[17] = lines[400] = "x" * 9000
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    source = make_lines(tmp_path / "a.log", delivery_guarantee=guarantee, errors_tolerance="all")
    set_topic(source, "max.message.bytes", "4000")

    report = source.run()
    assert sorted(source.lines()) == sorted(line for line in lines if len(line) < 9000)
    assert (report.records, report.filtered) == (498, 0)
    assert report.source is not None
    assert report.source.failed == 2
    assert source.run().status == "empty"


def test_exactly_once_tolerates_no_refused_line(make_lines: MakeLines, set_topic: SetTopic, tmp_path: Path):
    (tmp_path / "a.log").write_text("one\n" + "x" * 9000 + "\n")
    source = make_lines(tmp_path / "a.log", errors_tolerance="all")
    set_topic(source, "max.message.bytes", "4000")
    assert source.try_run().status == "failed"
    assert source.lines() == []


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
def test_small_batches_go_into_a_topic_of_small_batches(
    make_lines: MakeLines, set_topic: SetTopic, tmp_path: Path, columnar: bool
):
    lines = [f"line {n} {'y' * 100}" for n in range(500)]
    (tmp_path / "a.log").write_text("".join(f"{line}\n" for line in lines))
    source = make_lines(tmp_path / "a.log")
    set_topic(source, "max.message.bytes", "4000")
    report = source.try_run(columnar=columnar)
    assert report.error is not None
    assert (report.error["code"], report.status) == ("kafka.too_large", "failed"), report.error
    assert "producer.override.batch.size below max.message.bytes" in str(report.error)
    source.run(columnar=columnar, producer_override_batch_size="2000")
    assert source.lines() == lines
