"""The contract of a sampler, and how to load one by its path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol

from airflow_connect.errors import ConfigError, ConnectError

SAMPLER_CLASS = "sampler.class"
BUILT_IN = "airflow_connect.connectors.metrics.psutil_sampler:PsutilSampler"
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Sample(NamedTuple):
    """One number.

    Attributes:
        metric: its name, such as `memory.used`; unique per host.
        value: the number.
        unit: `bytes`, `percent`, `seconds`, or "" for a count.
    """

    metric: str
    value: float
    unit: str = ""


class Sampler(Protocol):
    """Measures hosts.

    Created without arguments, or by a class method `from_config(config)`, in the driver and in tasks.

    Attributes:
        is_local: whether it sees only the host that it runs on. Then the driver does not use it, and a single task
            measures the host on which Spark runs it.
    """

    is_local: ClassVar[bool]

    def hosts(self) -> Iterable[str]:
        """Names of all hosts that it can measure, in any order; the same in the driver and in tasks, unless local."""

    def sample(self, host: str) -> Iterable[Sample]:
        """Measure a host now.

        Raises:
            RetriableError: the host is sampled again after a pause.
            Exception: anything else fails the task.
        """

    def close(self) -> None:
        """Release what is open."""


def open_sampler(config: Mapping[str, str]) -> Sampler:
    """The sampler that `sampler.class` names.

    Args:
        config: the connector's, for samplers that take settings from it.

    Raises:
        ConfigError: the class does not exist, or cannot be instantiated.
    """
    path = config.get(SAMPLER_CLASS) or BUILT_IN
    kind = _load(path)
    make = getattr(kind, "from_config", None)
    try:
        sampler: Sampler = kind() if make is None else make(config)
    except ConnectError:
        raise
    except Exception as error:  # Third-party code; the message is for the author of the configuration.
        raise ConfigError(
            f"The sampler {path} cannot be created from this configuration: {type(error).__name__}: {error}.",
            config_path=SAMPLER_CLASS,
            suggestion="Set the keys that this class requires.",
        ) from error
    return sampler


def check_path(name: str, value: Any) -> None:
    """Validator of `sampler.class`.

    Raises:
        ConfigError: it is not the path of a class.
    """
    if not _PATH.fullmatch(value or ""):
        raise ConfigError(f"Invalid value {value} for configuration {name}: Write it as package.module:Class")


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{SAMPLER_CLASS}={path} cannot be loaded: {error}.",
            config_path=SAMPLER_CLASS,
            suggestion="Install its package where the driver and the executors run, and write the path as"
            " package.module:Class.",
        ) from error
