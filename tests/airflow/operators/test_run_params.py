"""The trigger form's fields and how they reach a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.definitions.param import ParamsDict

from airflow_connect.airflow.run_params import RUN_KEYS, chosen_limits, run_params
from airflow_connect.errors import ConfigError


def test_form_has_every_key_with_a_title_and_a_description() -> None:
    params = run_params()
    assert tuple(params) == RUN_KEYS
    assert [key for key, param in params.items() if not (param.schema["title"] and param.schema["section"])] == []
    assert [key for key, param in params.items() if not str(param.description).endswith(".")] == []


def test_form_of_a_source_has_no_time_of_records_and_speaks_of_what_it_writes() -> None:
    params, of_sinks = run_params(source=True), run_params()
    assert tuple(params) == ("run.max.records", "run.max.bytes", "run.max.seconds")
    assert "written to Kafka" in str(params["run.max.bytes"].description)
    assert "estimated" in str(of_sinks["run.max.bytes"].description)
    assert chosen_limits(ParamsDict(params).validate(), {}, params) == {}


def test_empty_form_bounds_nothing() -> None:
    values = ParamsDict(run_params()).validate()
    assert chosen_limits(values, {}, RUN_KEYS) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run.max.records", 1),
        ("run.max.bytes", 10_000_000_000),
        ("run.max.seconds", 60),
        ("run.until.timestamp", "2026-03-29T01:30:00+01:00"),
    ],
)
def test_valid_value_is_passed_on(key: str, value: Any) -> None:
    assert chosen_limits({key: value, "other": 1}, {key: value}, ()) == {key: value}


@pytest.mark.parametrize(
    ("key", "value"),
    [("run.max.records", 0), ("run.max.records", "many"), ("run.max.seconds", -5), ("run.max.bytes", 1.5)],
)
def test_invalid_value_is_refused_even_without_a_form(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"of {key} is not valid") as caught:
        chosen_limits({key: value}, {key: value}, ())
    assert caught.value.config_path == key


@pytest.mark.parametrize("passed_on", [{}, {"run.max.records": None}, {"run.max.records": 7}])
def test_limit_that_airflow_does_not_pass_on_is_not_ignored(passed_on: dict[str, Any]) -> None:
    """With `[core] dag_run_conf_overrides_params = False`, the conf would have no effect."""
    with pytest.raises(ConfigError, match=r"sets run\.max\.records to 5") as caught:
        chosen_limits(passed_on, {"run.max.records": 5}, RUN_KEYS)
    assert caught.value.code == "airflow.conf_ignored"
    assert chosen_limits(passed_on, {"run.max.records": passed_on.get("run.max.records")}, RUN_KEYS) is not None


def test_conf_key_of_another_task_is_accepted_when_declared() -> None:
    assert chosen_limits({"report": "x"}, {"report": "x"}, ("report",)) == {}


@pytest.mark.parametrize(
    ("key", "hint"),
    [("run.max.record", "Did you mean run.max.records?"), ("run_max_bytes", "Did you mean run.max.bytes?")],
)
def test_unknown_conf_key_is_refused_with_the_nearest(key: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        chosen_limits({}, {key: 5}, ())
    assert hint in caught.value.suggestion


@pytest.mark.parametrize("key", ["date", "report_to", "max_active", "run", "dry.run", "full_refresh"])
def test_conf_key_of_another_task_that_nobody_declared_is_left_to_it(key: str) -> None:
    assert chosen_limits({key: 5, "run.max.records": 7}, {key: 5}, ()) == {"run.max.records": 7}
