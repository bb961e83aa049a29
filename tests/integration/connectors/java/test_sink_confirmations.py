"""What Java sinks confirm in ways of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.testing.topics import Topics
from tests.conftest import MakeTopic, TopicProducer
from tests.integration.connectors.java.conftest import MakeConnector
from tests.integration.connectors.java.test_sinks import CAST, numbers
from tests.support.copies.java_plugin import JavaConnector

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

DROP_TOMBSTONES = {
    "transforms": "filter",
    "transforms.filter.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.filter.predicate": "gone",
    "predicates": "gone",
    "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
}


@pytest.fixture
def sink(make_connector: MakeConnector, make_topic: MakeTopic, tmp_path: Path) -> JavaConnector:
    """A sink that confirms the records that it has got, and nothing else."""
    made = make_connector("OddSinks$OwnPositions", topics=make_topic(), file=str(tmp_path / "out"))
    made.config["airflow.java.flush.timeout.ms"] = "3000"
    return made


def written(sink: JavaConnector) -> list[str]:
    file = Path(sink.config["file"])
    return file.read_text().splitlines() if file.exists() else []


def committed(sink: JavaConnector) -> dict[int, int]:
    return Topics(sink.bootstrap).committed(f"connect-{sink.name}", sink.config["topics"], 1)


def tombstones(count: int) -> list[tuple[int, None, None, int, list[object]]]:
    return [(0, None, None, 5, [])] * count


@pytest.mark.parametrize("good", [0, 4])
def test_records_that_a_plugin_never_gets_need_no_confirmation(
    sink: JavaConnector, produce: TopicProducer, good: int
) -> None:
    produce(sink.config["topics"], [*numbers(0, good), *tombstones(3)])
    sink.config |= DROP_TOMBSTONES
    report = sink.run()
    assert (report.records, written(sink)) == (good, [str(n) for n in range(good)])
    assert committed(sink) == {0: good + 3}


def test_failed_records_need_no_confirmation(sink: JavaConnector, produce: TopicProducer) -> None:
    produce(sink.config["topics"], [*numbers(0, 4), (0, None, b"bad", 5, [])])
    sink.config |= CAST | {
        "errors.tolerance": "all",
        "transforms": "number,text",
        "transforms.text.type": CAST["transforms.number.type"],
        "transforms.text.spec": "string",
    }
    sink.run()
    assert (written(sink), committed(sink)) == ([str(n) for n in range(4)], {0: 5})


@pytest.mark.parametrize("how", ["retries empty", "others", "late"])
def test_odd_sinks_write_everything_once(sink: JavaConnector, produce: TopicProducer, how: str) -> None:
    produce(sink.config["topics"], numbers(0, 10))
    sink.run(how=how)
    assert (written(sink), committed(sink)) == ([str(n) for n in range(10)], {0: 10})


def test_sink_that_goes_back_commits_nothing(sink: JavaConnector, produce: TopicProducer) -> None:
    """It wants the records of this put again, and confirms whatever it is asked for."""
    produce(sink.config["topics"], numbers(0, 10))
    report = sink.try_run(how="rewinds once")
    assert report.error is not None
    assert report.error["code"] == "offset.out_of_range"
    assert (written(sink), committed(sink)) == ([], {})


def test_offsets_that_a_sink_skips_are_in_the_report(sink: JavaConnector, produce: TopicProducer) -> None:
    produce(sink.config["topics"], numbers(0, 10))
    report = sink.run(how="skips")
    assert (report.records, written(sink), committed(sink)) == (5, [str(n) for n in range(5, 10)], {0: 10})
    assert any(f"skipped {sink.config['topics']}-0 from the offset 0 to 5" in note for note in report.notes)


def test_partition_that_is_paused_for_ever_is_left_for_the_next_run(
    sink: JavaConnector, produce: TopicProducer
) -> None:
    produce(sink.config["topics"], numbers(0, 10))
    report = sink.run(how="pauses")
    assert (report.records, report.left, written(sink), committed(sink)) == (0, 10, [], {0: 0})


@pytest.mark.parametrize(("how", "errant"), [("reports twice", [3]), ("reports in threads", [0, 3, 6, 9])])
def test_errant_records_count_once_whenever_they_are_reported(
    sink: JavaConnector, produce: TopicProducer, how: str, errant: list[int]
) -> None:
    produce(sink.config["topics"], numbers(0, 10))
    sink.config |= {"errors.tolerance": "all", "errors.log.enable": "true"}
    report = sink.run(how=how)
    good = [n for n in range(10) if n not in errant]
    assert (report.records, written(sink)) == (len(good), [str(n) for n in good])
