"""Keys of the metrics source, and its typed configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from re import compile as compile_pattern
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.metrics.sampler import BUILT_IN, SAMPLER_CLASS, check_path
from airflow_connect.errors import ConfigError

TOPIC, HOSTS, METRICS = "topic", "hosts", "metrics"
SAMPLES_PER_RUN, SAMPLE_INTERVAL_MS = "samples.per.run", "sample.interval.ms"
BATCH_SIZE = "batch.size"

_WHAT, _WHEN = "Metrics", "Sampling"


@cache
def config_def() -> ConfigDef:
    """Every key of the metrics source; those of every source are added by the runtime."""
    high, medium, low = Importance.HIGH, Importance.MEDIUM, Importance.LOW
    return ConfigDef().define(
        ConfigKey(TOPIC, Type.STRING, REQUIRED, "Topic that the samples go to.", NonEmptyString(), high, _WHAT),
        ConfigKey(
            HOSTS, Type.LIST, "*",
            "Hosts to measure: names, or patterns with * ? [abc]. Hosts that the sampler does not know are ignored.",
            Lambda(_check_patterns, "names and patterns"), medium, _WHAT,
        ),
        ConfigKey(
            METRICS, Type.LIST, "*",
            "Metrics to keep: names, or patterns with * ? [abc], such as cpu.*, memory.available.",
            Lambda(_check_patterns, "names and patterns"), medium, _WHAT,
        ),
        ConfigKey(
            SAMPLES_PER_RUN, Type.INT, 1,
            "How often a run measures each metric before it ends.",
            Range(1), medium, _WHEN,
        ),
        ConfigKey(
            SAMPLE_INTERVAL_MS, Type.LONG, 1000,
            "Milliseconds from one sample of a metric to the next of the same run; the next one begins later if"
            " measuring all hosts takes longer.",
            Range(1), medium, _WHEN,
        ),
        ConfigKey(
            SAMPLER_CLASS, Type.STRING, BUILT_IN,
            "Python class that measures, as package.module:Class. The built-in one measures the host that the task"
            " runs on, and no other.",
            Lambda(_check_class, "package.module:Class"), medium, _WHEN,
        ),
        ConfigKey(
            BATCH_SIZE, Type.INT, 2000,
            "Number of records after which a task returns a batch, which is one transaction with"
            " transaction.boundary=poll. All metrics of a host stay together.",
            Range(1), low, _WHEN,
        ),
    )  # fmt: skip


class Names:
    """Names and patterns of a list."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Compile them."""
        self._match = compile_pattern("|".join(f"(?:{translate(pattern)})" for pattern in patterns)).match

    def __contains__(self, name: object) -> bool:
        """Whether one of them matches; case-sensitive."""
        return isinstance(name, str) and self._match(name) is not None


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """What the source takes from its configuration.

    Attributes:
        topic: where samples go.
        hosts, metrics: which to measure and keep.
        rounds: samples of each metric in a run, > 0.
        interval_ms: between two of them.
        batch_size: approximate number of records of a batch.
    """

    topic: str
    hosts: Names
    metrics: Names
    rounds: int
    interval_ms: int
    batch_size: int

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> MetricsConfig:
        """Check and type a configuration.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = config_def().parse(raw)
        return cls(
            topic=parsed[TOPIC],
            hosts=Names(parsed[HOSTS]),
            metrics=Names(parsed[METRICS]),
            rounds=parsed[SAMPLES_PER_RUN],
            interval_ms=parsed[SAMPLE_INTERVAL_MS],
            batch_size=parsed[BATCH_SIZE],
        )


def _check_patterns(name: str, value: Any) -> None:
    if not value or not all(value):
        raise invalid(name, value, "Write at least one name or pattern; * matches all")


def _check_class(name: str, value: Any) -> None:
    try:
        check_path(name, value)
    except ConfigError:
        raise invalid(name, value, "Write it as package.module:Class") from None
