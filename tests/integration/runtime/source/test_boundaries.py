"""Where transactions end, what guarantees mean, what happens to records that fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from airflow_connect.api import SourceRecord
from tests.integration.runtime.source.conftest import NUMBERS, Numbers
from tests.integration.runtime.source.numbers import NumbersConnector, NumbersTask

MARKS = f"{__name__}:MarkingConnector"


class MarkingTask(NumbersTask):
    """Ends a transaction with every number that ends in 4, discards one with every number that ends in 9."""

    def poll(self) -> Sequence[SourceRecord] | None:
        records = super().poll()
        marks = self.context.transaction
        assert marks is not None
        for record in records or ():
            if record.value["n"] % 10 == 4:
                marks.commit_transaction(record)
            if record.value["n"] % 10 == 9:
                marks.abort_transaction(record)
        return records


class MarkingConnector(NumbersConnector):
    task_class = MarkingTask


def offset_gaps(numbers: Numbers) -> int:
    """Transaction markers, seen as gaps in the offsets of the topic's first partition."""
    offsets = [m.offset() for m in numbers.messages() if m.partition() == 0]
    return sum(1 for a, b in pairwise(offsets) if b != a + 1)


def test_boundary_poll_is_a_transaction_for_each_batch(numbers: Numbers):
    numbers.feed(20)
    report = numbers.run(numbers_batch="5", tasks_max="1")
    assert report.source is not None
    assert (report.source.transactions, offset_gaps(numbers)) == (4, 3)


def test_boundary_interval_is_one_transaction_where_time_is_short(numbers: Numbers):
    numbers.feed(20)
    report = numbers.run(numbers_batch="5", tasks_max="1", transaction_boundary="interval")
    assert report.source is not None
    assert (report.source.transactions, offset_gaps(numbers)) == (1, 0)


def test_boundary_connector_commits_and_discards_where_the_task_says(numbers: Numbers):
    numbers.feed(27)
    numbers.config |= {
        "connector.class": MARKS,
        "transaction.boundary": "connector",
        "numbers.boundaries": "true",
        "tasks.max": "1",
    }

    first = numbers.run()
    kept = [n for n in range(25) if n % 10 <= 4]
    assert numbers.values() == {0: kept}
    assert first.source is not None
    assert (first.records, first.source.discarded) == (15, 10)

    numbers.feed(35)
    numbers.run()
    assert numbers.values() == {0: [*kept, 30, 31, 32, 33, 34]}


@pytest.mark.parametrize("guarantee", ["at_least_once", "at_most_once"])
def test_other_guarantees_write_outside_transactions(numbers: Numbers, guarantee: str):
    numbers.feed(20, 10)
    report = numbers.run(delivery_guarantee=guarantee)
    numbers.feed(21, 10)
    numbers.run(delivery_guarantee=guarantee)

    assert report.delivery_guarantee == guarantee
    assert any(guarantee.replace("_", " ") in note for note in report.notes)
    assert offset_gaps(numbers) == 0
    numbers.assert_exactly_once(21, 10)


@pytest.mark.parametrize(
    ("guarantee", "point"),
    [("at_least_once", "source.task.sent"), ("at_most_once", "source.task.stored")],
)
def test_killed_run_keeps_what_its_guarantee_says(numbers: Numbers, guarantee: str, point: str):
    numbers.feed(30)
    assert numbers.start(crash_at=point, delivery_guarantee=guarantee, tasks_max="1").wait() is None
    numbers.run(delivery_guarantee=guarantee)

    found = numbers.values()[0]
    assert set(found) <= set(range(30))
    if guarantee == "at_least_once":
        assert set(found) == set(range(30))
    else:
        assert len(found) == len(set(found))


def test_offsets_of_dropped_and_failed_records_move_on(numbers: Numbers):
    numbers.feed(10)
    numbers.config |= {
        "tasks.max": "1",
        "transforms": "drop",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    }
    dropped = numbers.run()
    again = numbers.run()
    assert (dropped.status, dropped.records, dropped.filtered) == ("done", 0, 10)
    assert (again.status, again.filtered) == ("empty", 0)

    numbers.feed(15)
    numbers.config |= {"transforms.drop.type": "org.apache.kafka.connect.transforms.ExtractField$Value"}
    numbers.config |= {
        "transforms.drop.field": "p",
        "value.converter": "org.apache.kafka.connect.converters.LongConverter",
    }
    failing = numbers.try_run(value_converter="org.apache.kafka.connect.converters.ByteArrayConverter")
    assert failing.error is not None and "VALUE_CONVERTER" in failing.error["message"]
    tolerant = numbers.run(
        value_converter="org.apache.kafka.connect.converters.ByteArrayConverter", errors_tolerance="all"
    )
    assert tolerant.source is not None
    assert (tolerant.records, tolerant.source.failed) == (0, 5)
    assert numbers.run().status == "empty"


def test_limits_end_a_run_after_a_batch_and_the_next_goes_on(numbers: Numbers):
    numbers.feed(40)
    limited = numbers.run(run_max_records="10", numbers_batch="4", tasks_max="1")
    assert limited.source is not None
    assert (limited.records, limited.source.ended_by) == (12, {"run.max.records": 1})
    numbers.run()
    numbers.assert_exactly_once(40)


def test_own_offsets_topic_counts_and_the_workers_gets_a_copy(numbers: Numbers):
    from airflow_connect.kafka.clients.short_lived import admin_client
    from airflow_connect.kafka.state import compacted_topics

    admin = admin_client({"bootstrap.servers": numbers.bootstrap})
    numbers.feed(5)
    own = f"{numbers.topic}-offsets"
    numbers.run(offsets_storage_topic=own, tasks_max="1")
    key = json.dumps([numbers.name, {"p": 0}], separators=(",", ":")).encode()
    for topic in (own, "connect-offsets"):
        found: dict[bytes | None, bytes | None] = {}
        compacted_topics.read(admin, {"bootstrap.servers": numbers.bootstrap}, topic, found.__setitem__)
        assert found[key] == b'{"n":5}', topic

    numbers.feed(8)
    assert numbers.run(offsets_storage_topic=own).records == 3
    # The connector's own topic is dropped from the configuration: the copy goes on.
    numbers.feed(9)
    assert numbers.run().records == 1
    numbers.assert_exactly_once(9)


def test_topics_are_created_as_the_groups_say(numbers: Numbers):
    from airflow_connect.kafka.admin.new_topics import partition_count
    from airflow_connect.kafka.clients.short_lived import admin_client

    numbers.feed(6)
    numbers.topic, numbers.topic_partitions = f"{numbers.topic}-new", 3
    report = numbers.run(
        topic_creation_groups="wide",
        topic_creation_wide_include=".*-new",
        topic_creation_wide_partitions="3",
        topic_creation_default_partitions="1",
        topic_creation_default_replication_factor="1",
    )
    assert report.records == 6
    assert partition_count(admin_client({"bootstrap.servers": numbers.bootstrap}), numbers.topic) == 3
    numbers.assert_exactly_once(6)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"exactly.once.support": "required", "numbers.support": "unsupported"},
            "The connector does not support exactly-once semantics with the provided configuration.",
        ),
        (
            {"exactly.once.support": "required", "numbers.support": ""},
            "The connector does not implement the API required for preflight validation",
        ),
        (
            {"transaction.boundary": "connector"},
            "The connector does not support connector-defined transaction boundaries with the given configuration.",
        ),
        ({"topic.creation.groups": "a"}, "topic.creation.default.replication.factor"),
        ({"transaction.boundary": "never"}, "String must be one of (case insensitive): POLL, INTERVAL, CONNECTOR"),
        ({"run.until.timestamp": "2026-11-22T00:00:00Z"}, "run.until.timestamp limits runs of sinks only"),
        ({"numbers.file": None}, 'Missing required configuration "numbers.file"'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, Mapping) else "",
)
def test_wrong_configurations_are_refused_with_connects_sentences(
    numbers: Numbers, config: dict[str, str | None], message: str
):
    from airflow_connect.runtime.driver.entry import validate_connector

    numbers.feed(1)
    spec = numbers.spec(**{key.replace(".", "_"): value for key, value in config.items()})
    found = [f["message"] for f in validate_connector(spec) if f["level"] == "error"]
    assert any(message in text for text in found), found
    assert NUMBERS in spec.connector["connector.class"]


def test_plan_shows_offsets_and_writes_nothing(numbers: Numbers):
    from airflow_connect.runtime.driver.entry import plan_connector
    from airflow_connect.runtime.reporting.presentation import plan_table, report_line

    numbers.feed(3, 2)
    before = plan_connector(numbers.spec())
    assert before.source is not None and before.source.offsets == ()
    report = numbers.run()
    after = plan_connector(numbers.spec())

    assert after.source is not None
    offsets = sorted((m.partition["p"], m.before) for m in after.source.offsets)
    assert offsets == [(0, {"n": 3}), (1, {"n": 2})]
    assert ['{"p":0}', '{"n":3}'] in [line.split() for line in plan_table(after)]
    assert "2 tasks, exactly_once, a transaction per poll, offsets in connect-offsets." in plan_table(after)[-1]
    assert f"5 records to {numbers.topic}" in report_line(report)
    assert numbers.run().status == "empty"


def test_offsets_file_of_a_standalone_worker_is_taken_over_and_kept(numbers: Numbers):
    from airflow_connect.kafka.state.offsets import java_offsets_file
    from airflow_connect.runtime.driver.entry import plan_connector

    file = str(numbers.file.with_name("standalone.offsets"))
    key = json.dumps([numbers.name, {"p": 0}], separators=(",", ":")).encode()
    java_offsets_file.write(file, {key: b'{"n":4}', b'["other",{"p":0}]': b'{"n":9}'})
    numbers.worker_config["offset.storage.file.filename"] = file
    numbers.feed(6)

    plan = plan_connector(numbers.spec())
    assert plan.source is not None and [m.before for m in plan.source.offsets] == [{"n": 4}]
    report = numbers.run()

    assert numbers.values() == {0: [4, 5]}
    assert any("1 offset was taken over" in note for note in report.notes)
    kept = java_offsets_file.read(file)
    assert (kept[key], kept[b'["other",{"p":0}]']) == (b'{"n":6}', b'{"n":9}')
    assert numbers.run().status == "empty"
