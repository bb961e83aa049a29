"""Connector classes of the public API inside a run: what is refused, and what the driver asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    StagedFile,
    StagingSinkConnector,
)
from airflow_connect.api.errors import TaskFailedError
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.runtime.driver.configuration import RunConfiguration
from airflow_connect.runtime.driver.plugin_driver import PluginDriver, open_driver
from airflow_connect.runtime.driver.run import validate_connector
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


def driver_of(connector: type, **more: str) -> PluginDriver:
    return open_driver(RoleContext(config(connector, **more), run_id="run-1"))


def run_of(connector: type, **more: str) -> RunConfiguration:
    return RunConfiguration.from_spec(RunSpec(config(connector, **more), WORKER))


@pytest.mark.parametrize(
    ("connector", "text"),
    [
        (NoTask, "it lacks task_class"),
        (NotStaging, "declares delivery staged, which does not fit its class"),
        (HalfStaging, "it lacks abort, list_staged, publish"),
        (Raises, "validate failed with KeyError instead of saying what is wrong"),
    ],
)
def test_incomplete_connector_is_a_configuration_error(connector: type, text: str):
    with pytest.raises(ConfigError, match=text) as caught:
        driver_of(connector)
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
        (Idempotent, "exactly_once", "can be seen before the commit"),
        (Staging, "exactly_once", ""),
    ],
)
def test_guarantee_that_is_not_set_is_the_best_and_is_told(connector: type, guarantee: str, note: str):
    run = run_of(connector)
    assert run.delivery_guarantee == guarantee
    assert note in " ".join(run.delivery_notes)
    assert bool(run.delivery_notes) == bool(note)


def test_connector_without_configurations_of_its_own_gives_each_task_its_own_and_the_topics():
    run = run_of(Staging, tasks_max="2")
    settings = run.task_settings(0, schedule_expired=False)

    assert settings.task_configs == [{"topics": "t", "n": "0"}, {"topics": "t", "n": "1"}]
    assert Staging.calls == ["start", "task_configs", "stop"]


def test_fewer_configurations_make_fewer_tasks():
    Staging.answers["task_configs"] = lambda: [{"only": "one"}]
    assert run_of(Staging, tasks_max="4").tasks_max == 1


@pytest.mark.parametrize("count", [0, 3])
def test_no_configuration_or_too_many_fail_the_run(count: int):
    Staging.answers["task_configs"] = lambda: [{}] * count
    with pytest.raises(TaskFailedError, match=rf"returned {count} configurations and was asked for up to 2"):
        driver_of(Staging).task_configs(2)
    assert Staging.calls[-1] == "stop"


def test_publisher_starts_the_connector_once_and_stops_it_once():
    publisher = driver_of(Staging).publisher()
    assert Staging.calls == []
    assert publisher.publish([FILE], lambda done: None) == {"k": Outcome.PUBLISHED}
    assert publisher.abort([FILE]) == 1
    assert list(publisher.list_staged(())) == [LeftOver("k", {"id": 1})]
    publisher.close()
    publisher.close()
    assert Staging.calls == ["start", "publish", "abort", "list_staged", "stop"]


def test_publish_that_forgets_a_file_fails_the_run():
    Staging.answers["publish"] = dict
    with pytest.raises(TaskFailedError, match="said nothing about 1 of 1 files, k first"):
        driver_of(Staging).publisher().publish([FILE], lambda done: None)


def test_error_of_a_connector_becomes_a_sentence_and_it_is_stopped():
    def fail() -> None:
        raise OSError("disk full")

    Staging.answers["start"] = fail
    publisher = driver_of(Staging).publisher()
    with pytest.raises(TaskFailedError, match=r"Staging\.start failed with OSError: disk full"):
        publisher.preflight()
    publisher.close()
    assert Staging.calls == ["start", "stop"]


def test_error_that_a_connector_asks_for_fails_the_run():
    Staging.answers["raise_error"] = lambda: ConfigError("Not like this.", config_path="own.key")
    with pytest.raises(ConfigError, match="Not like this"):
        driver_of(Staging).publisher().preflight()


def test_store_is_told_by_keys_without_secrets():
    name = driver_of(Staging, own_secret="hush").store_name
    assert name == "Staging(own.key=1)"


def test_leftovers_of_a_staging_sink_are_all_that_it_lists_and_of_others_none():
    ranges = [OffsetRange("t", 0, 0, 1)]
    assert driver_of(Staging).leftovers(ranges).matches("any\nkey")
    assert not driver_of(AtLeastOnce).leftovers(ranges).matches("any")


def test_staged_file_of_a_sink_that_does_not_stage_is_never_published():
    publisher = driver_of(Idempotent).publisher()
    assert publisher.publish([], lambda done: None) == {}
    with pytest.raises(TaskFailedError, match="A task staged k, but its connector does not publish"):
        publisher.publish([FILE], lambda done: None)
