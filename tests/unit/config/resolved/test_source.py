"""Keys of sources: defaults, groups of topics, what a worker adds."""

from __future__ import annotations

import pytest

from airflow_connect.config.resolved.source import SourceConnectorConfig, load_source_config
from airflow_connect.documents.source_run import OffsetMove, SourcePlan, SourceRunReport, SourceTaskReport
from airflow_connect.errors import ConfigError

MINIMAL = {"name": "src", "connector.class": "FileStreamSource"}
CREATION = {"topic.creation.default.partitions": "4", "topic.creation.default.replication.factor": "-1"}
WORKER = {
    "bootstrap.servers": "b:9092",
    "group.id": "workers",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


def test_defaults_are_those_of_kafka_connect():
    config = SourceConnectorConfig.from_config(MINIMAL)
    assert (config.boundary, config.boundary_interval_ms, config.requires_exactly_once) == ("poll", None, False)
    assert (config.offsets_topic, config.topic_groups, config.delivery_guarantee) == ("", (), "")
    assert (config.run_idle_polls, config.run_max_records, config.tasks_max) == (None, 0, 1)


def test_values_in_any_case_as_in_kafka_connect():
    raw = {**MINIMAL, "transaction.boundary": "INTERVAL", "exactly.once.support": "Required"}
    config = SourceConnectorConfig.from_config(raw)
    assert (config.boundary, config.requires_exactly_once) == ("interval", True)


def test_groups_of_topics_are_asked_in_their_order_and_inherit_from_default():
    raw = {
        **MINIMAL,
        **CREATION,
        "topic.creation.groups": "logs, rest",
        "topic.creation.logs.include": "log-.*,audit",
        "topic.creation.logs.exclude": "log-private.*",
        "topic.creation.logs.partitions": "7",
        "topic.creation.logs.cleanup.policy": "compact",
        "topic.creation.rest.include": "rest.*",
    }
    groups = SourceConnectorConfig.from_config(raw).topic_groups

    assert [group.name for group in groups] == ["logs", "rest", "default"]
    logs, rest, default = groups
    assert (logs.partitions, logs.replication_factor, logs.settings) == (7, -1, {"cleanup.policy": "compact"})
    assert (rest.partitions, default.partitions) == (4, 4)
    taken = {t: next(g.name for g in groups if g.takes(t)) for t in ("log-a", "audit", "log-private-x", "rest1", "x")}
    assert taken == {"log-a": "logs", "audit": "logs", "log-private-x": "default", "rest1": "rest", "x": "default"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"topic.creation.groups": "a"}, "topic.creation.default.replication.factor"),
        ({**CREATION, "topic.creation.groups": "a,a"}, "values must not be duplicated"),
        ({**CREATION, "topic.creation.groups": "default"}, "The group `default` must not be listed"),
        ({**CREATION, "topic.creation.default.partitions": "0"}, "Value must be at least 1, or -1"),
        ({**CREATION, "topic.creation.groups": "a", "topic.creation.a.include": "("}, "Invalid regex"),
        ({"transaction.boundary.interval.ms": "-1"}, "Value must be at least 0"),
        ({"offsets.storage.topic": " "}, "String must be non-empty"),
        ({"delivery.guarantee": "twice"}, "String must be one of: exactly_once, at_least_once, at_most_once"),
        ({"run.idle.polls": "0"}, "Value must be at least 1"),
    ],
    ids=lambda value: ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_wrong_values_are_named(keys: dict[str, str], message: str):
    with pytest.raises(ConfigError) as caught:
        SourceConnectorConfig.from_config({**MINIMAL, **keys})
    assert message in str(caught.value)


def test_worker_gives_what_the_connector_does_not_say():
    own = load_source_config({**MINIMAL, "offsets.storage.topic": "mine"}, WORKER)
    assert own.offsets_topics == ("mine", "connect-offsets")
    assert own.task_transactional_id(3) == "workers-src-3"
    assert own.boundary_interval_ms == 60_000
    other = load_source_config(
        {**MINIMAL, "offsets.storage.topic": "connect-offsets", "transaction.boundary.interval.ms": "5"}, WORKER
    )
    assert (other.offsets_topics, other.boundary_interval_ms) == (("connect-offsets",), 5)


def test_converter_that_nobody_sets_is_named():
    worker = {key: value for key, value in WORKER.items() if key != "value.converter"}
    with pytest.raises(ConfigError, match=r'Missing required configuration "value\.converter"'):
        load_source_config(MINIMAL, worker)


def test_overrides_are_held_against_the_workers_policy():
    worker = {**WORKER, "connector.client.config.override.policy": "None"}
    with pytest.raises(ConfigError, match=r"producer\.override\.linger\.ms"):
        load_source_config({**MINIMAL, "producer.override.linger.ms": "9"}, worker)


def test_reports_of_tasks_add_up_and_show_a_bounded_number_of_offsets():
    moves = tuple(OffsetMove({"p": n}, None, {"n": n}) for n in range(80))
    tasks = [SourceTaskReport(5, 1, 2, 100, 3, {"t": 5}, 50_000, moves, "end")] * 2

    report = SourceRunReport.of(tasks, settled=4, failed=1)

    assert (report.transactions, report.discarded, report.partitions, report.topics) == (6, 4, 100_000, {"t": 10})
    assert (len(report.offsets), report.ended_by, report.settled) == (100, {"end": 2}, 4)
    assert SourceTaskReport.from_json(tasks[0].to_json()) == tasks[0]


def test_documents_survive_json():
    from dataclasses import asdict

    plan = SourcePlan((OffsetMove({"p": 1}, {"n": 2}),), 1, "exactly_once", "poll", ("connect-offsets",))
    assert SourcePlan.from_json(asdict(plan)) == plan
    report = SourceRunReport.of([SourceTaskReport(1, ended_by="idle")], 0, 0)
    assert SourceRunReport.from_json(asdict(report)) == report


def test_converters_of_the_worker_are_those_that_the_connector_does_not_set():
    worker = {**WORKER, "value.converter.converter.encoding": "UTF-16", "header.converter": WORKER["key.converter"]}
    expected = {key: worker[key] for key in worker if key.startswith(("key.", "value."))}
    assert load_source_config(MINIMAL, worker).worker_converters == expected
    own = {**MINIMAL, "value.converter": WORKER["value.converter"], "key.converter": WORKER["key.converter"]}
    assert load_source_config(own, worker).worker_converters == {}
