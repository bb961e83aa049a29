"""Connector classes of the public API inside a run: what is refused, and what the driver asks of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from airflow_connect.api import (
    ConfigDef,
    ConfigError,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Delivery,
    LeftOver,
    OffsetRange,
    Outcome,
    PublishedRun,
    Publisher,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    Splitting,
    StagedFile,
    StagingSinkConnector,
    TopicPartition,
)
from airflow_connect.api.sink_state import CopiedRun, PlannedRun, PlannedState, StateAfter
from airflow_connect.connectors.files.local.connector import LocalSinkConnector
from airflow_connect.errors import TaskFailedError
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.driver.sink.started_sink import StartedSink
from airflow_connect.runtime.spec import RunSpec

WORKER = {"bootstrap.servers": "b:1", "key.converter": "StringConverter", "value.converter": "StringConverter"}
FILE = StagedFile("k", "t", 0, 0, 1, 1, 1)


class Task(SinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        pass

    def put(self, records: Sequence[SinkRecord]) -> None:
        pass

    def stop(self) -> None:
        pass


class AtLeastOnce(SinkConnector):
    task_class = Task
    config_def = ConfigDef().define(
        ConfigKey("own.key", ConfigType.INT), ConfigKey("own.secret", ConfigType.PASSWORD, None)
    )


class Idempotent(AtLeastOnce):
    delivery = Delivery.IDEMPOTENT

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValue]:
        values = super().validate(config)
        if config.get("own.key") == "13":
            next(v for v in values if v.name == "own.key").errors.append("13 brings bad luck.")
        return values


class Raises(AtLeastOnce):
    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValue]:
        raise KeyError("oh")


class NoTask(SinkConnector):
    pass


class NotStaging(SinkConnector):
    task_class = Task
    delivery = Delivery.STAGED


class HalfStaging(StagingSinkConnector):
    task_class = Task


class Source(SourceConnector):
    pass


class NoConnector:
    config_def = AtLeastOnce.config_def


class OwnPublisher(StagingSinkConnector):
    """Has neither `publish` nor `abort` nor `list_staged`."""

    task_class = Task
    config_def = AtLeastOnce.config_def

    def publisher(self) -> Any:
        return SimpleNamespace(
            possible_duplicates=True,
            preflight=lambda: None,
            publish=lambda files, progress: {f.key: Outcome.ALREADY_PUBLISHED for f in files},
            close=lambda: {}["left open"],
        )

    def first_offsets(self, partitions: Collection[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        raise OSError("no answer")

    def published(self, run: PublishedRun, publisher: Publisher) -> Sequence[str]:
        return (f"{run.run_id}: {publisher.possible_duplicates}",)


class Refusing(AtLeastOnce):
    def check_config(self, config: Mapping[str, str]) -> None:
        raise ConfigError(f"Not with {self.context.run_id}.", config_path="own.key")

    def start(self, config: Mapping[str, str]) -> None:
        raise AssertionError("A check starts nothing.")


class Staging(StagingSinkConnector):
    """Notes calls; `answers` says what the methods do."""

    task_class = Task
    config_def = AtLeastOnce.config_def
    calls: ClassVar[list[str]] = []
    answers: ClassVar[dict[str, Callable[[], Any]]] = {}

    def _called(self, name: str, answer: Any = None) -> Any:
        self.calls.append(name)
        return self.answers.get(name, lambda: answer)()

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._called("start")
        if "raise_error" in self.answers:
            self.context.raise_error(self.answers["raise_error"]())

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self.context.request_task_reconfiguration()
        found: Sequence[Mapping[str, str]] = self._called("task_configs", [{"n": str(n)} for n in range(max_tasks)])
        return found

    def publish(self, files: Sequence[StagedFile]) -> Mapping[str, Outcome]:
        found: Mapping[str, Outcome] = self._called("publish", {f.key: Outcome.PUBLISHED for f in files})
        return found

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        return int(self._called("abort", len(list(files))))

    def list_staged(self) -> Iterable[LeftOver]:
        found: Iterable[LeftOver] = self._called("list_staged", [LeftOver("k", {"id": 1})])
        return found

    def stop(self) -> None:
        self._called("stop")


@pytest.fixture(autouse=True)
def forget() -> None:
    Staging.calls.clear()
    Staging.answers.clear()


def config(connector: type, **more: str) -> dict[str, str]:
    changes = {key.replace("_", "."): value for key, value in more.items()}
    name = f"{__name__}:{connector.__name__}"
    return {"name": "n", "connector.class": name, "topics": "t", "own.key": "1", **changes}


def run_of(connector: type, **more: str) -> SinkConfiguration:
    return SinkConfiguration.from_spec(RunSpec(config(connector, **more), WORKER))


def sink_of(connector: type, **more: str) -> StartedSink:
    return run_of(connector, **more).sink


@pytest.mark.parametrize(
    ("connector", "text"),
    [
        (NoTask, "it lacks task_class"),
        (NotStaging, "declares delivery staged, which does not fit its class"),
        (HalfStaging, "it lacks abort, list_staged, publish"),
        (NoConnector, "is not a sink connector"),
        (Raises, "validate failed with KeyError instead of returning what is wrong"),
    ],
)
def test_incomplete_connector_is_a_configuration_error(connector: type, text: str):
    with pytest.raises(ConfigError, match=text) as caught:
        sink_of(connector)
    assert caught.value.config_path == "connector.class"


def test_keys_of_every_sink_are_added_to_the_connectors_own():
    run = run_of(AtLeastOnce, tasks_max="3")
    assert run.resolved.connector.tasks_max == 3
    assert "own.secret" in run.definition.secret_names
    assert "own.secret" not in run_of(AtLeastOnce, own_secret="hush").without_secrets()


def test_own_check_of_a_connector_is_found_by_validation():
    found = validate_connector(RunSpec(config(Idempotent, own_key="13"), WORKER))
    assert [(f["key"], f["level"]) for f in found] == [("own.key", "error")]
    assert "13 brings bad luck." in found[0]["message"]


def test_check_of_an_object_is_found_by_validation_without_a_start():
    assert [f["key"] for f in validate_connector(RunSpec(config(Refusing), WORKER))] == ["own.key"]
    with pytest.raises(ConfigError, match="Not with run-7"):
        SinkConfiguration.from_spec(RunSpec(config(Refusing), WORKER, run_id="run-7"))


@pytest.mark.parametrize(
    ("connector", "asked", "advice"),
    [
        (AtLeastOnce, "exactly_once", "Set delivery.guarantee=at_least_once"),
        (AtLeastOnce, "at_most_once", "Set delivery.guarantee=at_least_once"),
        (Idempotent, "at_most_once", "Set delivery.guarantee=exactly_once"),
    ],
)
def test_guarantee_that_a_sink_cannot_keep_is_refused_with_one_that_it_can(connector: type, asked: str, advice: str):
    with pytest.raises(ConfigError) as caught:
        run_of(connector, delivery_guarantee=asked)
    assert caught.value.config_path == "delivery.guarantee"
    assert advice in caught.value.suggestion


@pytest.mark.parametrize(
    ("connector", "guarantee", "note"),
    [
        (AtLeastOnce, "at_least_once", "delivers at least once"),
        (Idempotent, "exactly_once", "are visible before the commit"),
        (Staging, "exactly_once", ""),
    ],
)
def test_guarantee_that_is_not_set_is_the_best_and_is_told(connector: type, guarantee: str, note: str):
    run = run_of(connector)
    assert run.guarantee.name == guarantee
    assert note in " ".join(run.delivery_notes)
    assert bool(run.delivery_notes) == bool(note)


def test_connector_without_configurations_of_its_own_gives_each_task_its_own_and_the_topics():
    run = run_of(Staging, tasks_max="2")
    settings = run.task_settings(0)
    run.sink.stop()

    assert settings.task_configs == [{"topics": "t", "n": "0"}, {"topics": "t", "n": "1"}]
    assert Staging.calls == ["start", "task_configs", "stop"]


def test_tasks_that_are_all_configured_as_the_connector_get_no_copies_of_its_configuration():
    run = run_of(AtLeastOnce, tasks_max="3")
    assert (run.task_configs, run.tasks_max) == ((), 3)


def test_fewer_configurations_make_fewer_tasks():
    Staging.answers["task_configs"] = lambda: [{"only": "one"}]
    assert run_of(Staging, tasks_max="4").tasks_max == 1


@pytest.mark.parametrize("count", [0, 3])
def test_no_configuration_or_too_many_fail_the_run(count: int):
    Staging.answers["task_configs"] = lambda: [{}] * count
    with pytest.raises(TaskFailedError, match=rf"returned {count} configurations, but at most 2 were requested"):
        sink_of(Staging).task_configs(2)


def test_one_object_is_started_on_first_use_and_stopped_once():
    run = run_of(Staging, tasks_max="2")
    assert Staging.calls == []
    assert run.tasks_max == 2
    publisher = run.sink.publisher
    assert publisher.publish([FILE], lambda done: None) == {"k": Outcome.PUBLISHED}
    assert publisher.abort([FILE]) == 1
    assert list(publisher.list_staged(())) == [LeftOver("k", {"id": 1})]
    run.sink.stop()
    run.sink.stop()
    assert Staging.calls == ["start", "task_configs", "publish", "abort", "list_staged", "stop"]


@pytest.mark.parametrize("connector", [Staging, Idempotent])
def test_what_a_class_does_not_override_is_answered_without_starting_it(connector: type):
    sink = sink_of(connector)
    assert sink.first_offsets([TopicPartition("t", 0)], apply=True) == {}
    assert sink.plan_state(PlannedRun({"n": 1})) == PlannedState()
    assert sink.state_after(CopiedRun(PlannedRun({"n": 1}))) == StateAfter({"n": 1})
    assert sink.uses_current("key", {}) is False
    assert sink.splitting() == Splitting(f"{connector.__name__} does not allow it")
    assert sink.published(PublishedRun("r", 0, ()), sink.publisher) == ()
    sink.stop()
    assert Staging.calls == []


class Counting(Staging):
    """Keeps a document of its own."""

    document: ClassVar[Any] = None

    def plan_state(self, run: PlannedRun) -> PlannedState:
        return PlannedState(for_tasks=self.document)

    def state_after(self, run: CopiedRun) -> StateAfter:
        return StateAfter(run.for_tasks, counts={"lines": 1})


def test_a_document_is_given_on_as_json_reads_it_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Counting, "document", {"pairs": ((1, 2),)})
    assert sink_of(Counting).plan_state(PlannedRun()).for_tasks == {"pairs": [[1, 2]]}


@pytest.mark.parametrize("document", [{"a": b"bytes"}, {"a": float("nan")}, 5], ids=["bytes", "NaN", "number"])
def test_a_document_that_is_not_json_fails_the_run(document: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Counting, "document", document)
    with pytest.raises(TaskFailedError, match=r"Counting\.plan_state returned something that is not a JSON document"):
        sink_of(Counting).plan_state(PlannedRun())


def test_a_count_that_no_report_has_fails_the_run():
    with pytest.raises(
        TaskFailedError, match=r"Counting\.state_after returned the counts lines, but a report only has"
    ):
        sink_of(Counting).state_after(CopiedRun(PlannedRun()))


def test_publish_that_forgets_a_file_fails_the_run():
    Staging.answers["publish"] = dict
    with pytest.raises(TaskFailedError, match="returned no outcome for 1 of 1 file, such as k"):
        sink_of(Staging).publisher.publish([FILE], lambda done: None)


def test_error_of_a_connector_becomes_a_sentence_and_it_is_stopped():
    def fail() -> None:
        raise OSError("disk full")

    Staging.answers["start"] = fail
    sink = sink_of(Staging)
    with pytest.raises(TaskFailedError, match=r"Staging\.start failed with OSError: disk full"):
        sink.publisher.preflight()
    sink.stop()
    assert Staging.calls == ["start", "stop"]


def test_error_that_a_connector_asks_for_fails_the_run():
    Staging.answers["raise_error"] = lambda: ConfigError("Not like this.", config_path="own.key")
    with pytest.raises(ConfigError, match="Not like this"):
        sink_of(Staging).publisher.preflight()


def test_store_is_told_by_keys_without_secrets():
    name = sink_of(Staging, own_secret="hush").store_name
    assert name == "Staging(own.key=1)"


def test_leftovers_of_a_staging_sink_are_all_that_it_lists_and_of_others_none():
    ranges = [OffsetRange("t", 0, 0, 1)]
    assert sink_of(Staging).leftovers(ranges).matches("any\nkey")
    assert not sink_of(AtLeastOnce).leftovers(ranges).matches("any")


def test_staged_file_of_a_sink_that_does_not_stage_is_never_published():
    publisher = sink_of(Idempotent).publisher
    assert publisher.publish([], lambda done: None) == {}
    with pytest.raises(TaskFailedError, match="A task staged k, but its connector does not publish"):
        publisher.publish([FILE], lambda done: None)


def test_publisher_of_its_own_is_used_in_place_of_the_three_methods(caplog: pytest.LogCaptureFixture):
    sink = sink_of(OwnPublisher)
    assert sink.publisher.publish([FILE], lambda done: None) == {"k": Outcome.ALREADY_PUBLISHED}
    assert sink.publisher.possible_duplicates is True
    # It gets the connector's own publisher: that may have more methods.
    assert sink.published(PublishedRun("r", 0, ()), sink.publisher) == ("r: True",)
    sink.stop()
    assert "OwnPublisher.publisher failed with KeyError" in caplog.text


def test_error_of_a_hook_becomes_a_sentence():
    with pytest.raises(TaskFailedError, match=r"OwnPublisher\.first_offsets failed with OSError: no answer"):
        sink_of(OwnPublisher).first_offsets([TopicPartition("t", 0)], apply=True)


def test_defect_of_a_built_in_sink_stays_one_that_is_to_be_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(sink: LocalSinkConnector) -> None:
        raise TypeError("ours")

    monkeypatch.setattr(LocalSinkConnector, "publisher", fail)
    keys = {"name": "n", "topics": "t", "store.url": str(tmp_path), "flush.size": "1", "format.class": "JsonFormat"}
    local = {**keys, "connector.class": "LocalSink"}
    with pytest.raises(TypeError, match="ours"):
        SinkConfiguration.from_spec(RunSpec(local, WORKER)).sink.publisher.preflight()
