"""The chain of one task: opened, applied, closed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_connect.api.record import SinkRecord
from airflow_connect.api.transform import Predicate, Transformation
from airflow_connect.config.resolved.sink import SinkConnectorConfig
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.executor.transforming import Stage, TransformChain

HERE = __name__


class Noted(Transformation):
    """Notes what happens to it."""

    events: list[str] = []  # noqa: RUF012 (of the class, so that tests see it)

    def configure(self, config: Any) -> None:
        """Opened."""
        self.events.append("configured")

    def apply(self, record: Any) -> Any:
        """Doubled."""
        return record.changed(value=record.value * 2)

    def close(self) -> None:
        """Closed."""
        self.events.append("closed")


class Refusing(Noted):
    """Cannot be configured."""

    def configure(self, config: Any) -> None:
        """Refuses."""
        raise KeyError("server")


class Untidy(Noted):
    """Cannot be closed."""

    def close(self) -> None:
        """Fails."""
        raise OSError("still in use")


class Wordy(Predicate):
    """Answers with something that is merely true."""

    def test(self, record: Any) -> Any:
        """The value."""
        return record.value


def opened(**types: str) -> TransformChain:
    config = {"name": "n", "connector.class": "S3SinkConnector", "topics": "t", "transforms": ",".join(types)}
    return TransformChain.open(
        SinkConnectorConfig.from_config(
            config | {f"transforms.{alias}.type": f"{HERE}:{name}" for alias, name in types.items()}
        ).transforms
    )


def record(value: Any = 1, **parts: Any) -> SinkRecord:
    return SinkRecord(topic="t", partition=0, offset=5, value=value, **parts)


@pytest.fixture(autouse=True)
def events() -> list[str]:
    """What happened in this test."""
    Noted.events.clear()
    return Noted.events


def test_open_and_close_each_stage_once(events: list[str]) -> None:
    chain = opened(a="Noted", b="Noted")
    assert [stage.alias for stage in chain.stages] == ["a", "b"]
    assert chain.stages[0].class_name == f"{HERE}:Noted"
    chain.close()
    assert events == ["configured", "configured", "closed", "closed"]


def test_open_failing_names_alias_and_key_and_closes_what_was_open(events: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(a="Noted", b="Refusing")
    assert caught.value.config_path == "transforms.b.type"
    assert f"transformation b ({HERE}:Refusing) cannot be configured: KeyError" in caught.value.message
    assert events == ["configured", "closed"]


def test_close_failing_is_logged_and_the_others_are_closed(events: list[str], caplog: pytest.LogCaptureFixture) -> None:
    chain = opened(a="Untidy", b="Noted")
    with caplog.at_level(logging.WARNING):
        chain.close()
    assert events[-1] == "closed"
    assert "Closing transformation a" in caplog.text and "still in use" in caplog.text


@pytest.mark.parametrize(("value", "negate", "expected"), [(3, False, 6), (3, True, 3), (0, False, 0), (0, True, 0)])
def test_predicate_any_truth_counts(value: int, negate: bool, expected: int) -> None:
    stage = Stage("a", "Noted", Noted(), Wordy(), negate)
    applied = stage.apply(record(value))
    assert applied is not None and applied.value == expected


def test_stage_that_returns_no_record_is_refused() -> None:
    class Wrong(Transformation):
        def apply(self, record: Any) -> Any:
            return record.value

    with pytest.raises(TypeError, match="it returned int instead of a record"):
        Stage("a", "Wrong", Wrong()).apply(record())


@pytest.mark.parametrize("change", [{"offset": 6}, {"original_topic": "u"}, {"original_partition": 9}])
def test_stage_that_moves_a_record_is_refused(change: dict[str, Any]) -> None:
    class Moving(Transformation):
        def apply(self, record: Any) -> Any:
            return record.changed(**change)

    with pytest.raises(TypeError, match="it changed the offset"):
        Stage("a", "Moving", Moving()).apply(record())


def test_stage_may_rename_topic_and_partition() -> None:
    class Renaming(Transformation):
        def apply(self, record: Any) -> Any:
            return record.changed(topic="u", partition=3)

    renamed = Stage("a", "Renaming", Renaming()).apply(record())
    assert renamed is not None
    assert (renamed.topic, renamed.partition, renamed.where) == ("u", 3, "t-0@5")
