"""The fields of the trigger form that limit a run, and how they get into a connector's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Param

SECTION = "How much to copy"

_FIELDS: dict[str, dict[str, Any]] = {
    "run.max.records": {
        "type": ["null", "integer"],
        "minimum": 1,
        "title": "At most this many records",
        "description": "The run ends after this many records; the next run continues there. Empty: no limit.",
    },
    "run.max.bytes": {
        "type": ["null", "integer"],
        "minimum": 1,
        "title": "At most this many bytes",
        "description": "Size of keys and values as stored in Kafka, estimated at planning. Empty: no limit.",
    },
    "run.max.seconds": {
        "type": ["null", "integer"],
        "minimum": 1,
        "title": "At most this many seconds",
        "description": "The run stops reading after this time and publishes what it has. Empty: no limit.",
    },
    "run.until.timestamp": {
        "type": ["null", "string"],
        "format": "date-time",
        "title": "Only records before",
        "description": "Ends each partition before its first record of this time or later. Empty: now.",
    },
}
RUN_KEYS = tuple(_FIELDS)
_OF_SOURCES: dict[str, dict[str, Any]] = {
    "run.max.bytes": {"description": "Size of the keys and values that are written to Kafka. Empty: no limit."},
    "run.max.seconds": {"description": "Tasks stop polling after this time; their records are kept. Empty: no limit."},
}
ONLY_SINKS = frozenset({"run.until.timestamp"})


def run_params(*, source: bool = False) -> dict[str, Param]:
    """Parameters for `DAG(params=run_params())`: the trigger form asks how much to copy. All are optional.

    Args:
        source: for a DAG that runs a source connector; its records have no times by which a run could end.
    """
    from airflow.sdk import Param

    names = [name for name in RUN_KEYS if not (source and name in ONLY_SINKS)]
    texts = _OF_SOURCES if source else {}
    return {name: Param(None, section=SECTION, **_FIELDS[name] | texts.get(name, {})) for name in names}


def chosen_limits(params: Mapping[str, Any], conf: Mapping[str, Any], declared: Iterable[str]) -> dict[str, Any]:
    """The limits that were chosen for this DAG run.

    A DAG run's conf is for all tasks of its DAG. Keys that do not look like a misspelled limit belong to other tasks.

    Args:
        params: the merged parameters of the task; Airflow has put the run's conf into them.
        conf: the conf of the DAG run, as it was sent. Airflow accepts any key there.
        declared: names of the parameters of DAG and task, which other tasks may use.

    Returns:
        `run.*` keys with values, without empty ones.

    Raises:
        ConfigError: an undeclared key of the conf looks like a misspelled limit, the form would refuse a value, or
            Airflow is configured to ignore the conf.
    """
    known = {*RUN_KEYS, *declared}
    for key in conf:
        if key not in known and (meant := nearest(key, RUN_KEYS)):
            raise _misspelt_key(key, meant)
    chosen = {key: params[key] for key in RUN_KEYS if params.get(key) not in (None, "")}
    for key in RUN_KEYS:
        if conf.get(key) not in (None, "") and chosen.get(key) != conf[key]:
            raise _ignored_limit(key, conf[key])
    checks = run_params() if chosen else {}
    for key, value in chosen.items():
        _check(checks[key], key, value)
    return chosen


def _misspelt_key(key: str, meant: Iterable[str]) -> ConfigError:
    return ConfigError(
        f"The conf of this DAG run has the key {key!r}, which is not a parameter.",
        code="airflow.conf_unknown",
        config_path=key,
        suggestion=f"{did_you_mean(meant)} Declare it among the DAG's params if another task reads it.",
    )


def _ignored_limit(key: str, value: Any) -> ConfigError:
    return ConfigError(
        f"The conf of this DAG run sets {key} to {value!r}, but Airflow has not passed it on to the task.",
        code="airflow.conf_ignored",
        config_path=key,
        suggestion="Set dag_run_conf_overrides_params to True in the section [core] of Airflow's configuration, or"
        " start the DAG run without this key. Nothing was copied.",
    )


def _check(param: Param, key: str, value: Any) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    try:
        param.resolve(value)
    except ParamValidationError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"The value {value!r} of {key} is not valid: {reason}.",
            code="airflow.conf_invalid",
            config_path=key,
            suggestion=str(_FIELDS[key]["description"]),
        ) from error
