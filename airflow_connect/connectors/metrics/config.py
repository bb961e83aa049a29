"""Keys of the metrics source, and its typed configuration."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import translate
from re import compile as compile_pattern
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda, NonEmptyString, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.metrics.sampler import BUILT_IN, SAMPLER_CLASS, check_path
from airflow_connect.errors import ConfigError

_WHAT, _WHEN = KeyGroup("Metrics"), KeyGroup("Sampling")


class Names:
    """Names and patterns of a list."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Compile them."""
        self._match = compile_pattern("|".join(f"(?:{translate(pattern)})" for pattern in patterns)).match

    def __contains__(self, name: object) -> bool:
        """Whether one of them matches; case-sensitive."""
        return isinstance(name, str) and self._match(name) is not None


def _check_patterns(name: str, value: Any) -> None:
    if not value or not all(value):
        raise invalid(name, value, "Write at least one name or pattern; * matches all")


def _check_class(name: str, value: Any) -> None:
    try:
        check_path(name, value)
    except ConfigError:
        raise invalid(name, value, "Write it as package.module:Class") from None


class MetricsConfig(TypedConfig):
    """The keys of the metrics source; those of every source are added by the runtime."""

    topic = _WHAT.high.text("topic", REQUIRED, "Topic that the samples go to.", NonEmptyString())
    hosts = _WHAT.medium.words(
        "hosts",
        "*",
        "Hosts to measure: names, or patterns with * ? [abc]. Hosts that the sampler does not know are ignored.",
        Lambda(_check_patterns, "names and patterns"),
    ).to(Names)
    metrics = _WHAT.medium.words(
        "metrics",
        "*",
        "Metrics to keep: names, or patterns with * ? [abc], such as cpu.*, memory.available.",
        Lambda(_check_patterns, "names and patterns"),
    ).to(Names)
    rounds = _WHEN.medium.integer(
        "samples.per.run", 1, "How often a run measures each metric before it ends.", Range(1)
    )
    interval_ms = _WHEN.medium.long(
        "sample.interval.ms",
        1000,
        "Milliseconds from one sample of a metric to the next of the same run; the next one begins later if"
        " measuring all hosts takes longer.",
        Range(1),
    )
    sampler_class = _WHEN.medium.text(
        SAMPLER_CLASS,
        BUILT_IN,
        "Python class that measures, as package.module:Class. The built-in one measures the host that the task"
        " runs on, and no other.",
        Lambda(_check_class, "package.module:Class"),
    )
    batch_size = _WHEN.low.integer(
        "batch.size",
        2000,
        "Number of records after which a task returns a batch, which is one transaction with"
        " transaction.boundary=poll. All metrics of a host stay together.",
        Range(1),
    )
