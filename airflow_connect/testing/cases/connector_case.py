"""What sinks and sources under test have in common: a connector with its own topic, its runs, the comparison."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.config.keys.sink import CommonKeys
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics

if TYPE_CHECKING:
    from airflow_connect.testing.suites.connector_suite import ConnectorConformance

_WORKER = {
    "group.id": "conformance-workers",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "runs.storage.replication.factor": "1",
}


class ConnectorCase(ABC):
    """A connector with its own topic.

    Attributes:
        kind: `sink` or `source`, for its name.
        partitions: of the topic.
        worker: additional worker keys of this kind.
    """

    kind: ClassVar[str]
    partitions: ClassVar[int]
    worker: ClassVar[Mapping[str, str]]

    def __init__(self, suite: ConnectorConformance, bootstrap: str) -> None:
        """Create the topic on the broker `bootstrap`."""
        self._connector_class = suite.connector_class
        self._worker_config = suite.worker_config()
        self._bootstrap = bootstrap
        self.topics = Topics(bootstrap)
        self.topic = f"conformance-{uuid.uuid4().hex[:10]}"
        self.name = f"{self.kind}-{self.topic}"
        self.topics.create(self.topic, self.partitions)

    # --- what differs by kind --------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def is_once(self) -> bool:
        """Whether the connector promises that nothing is there twice, whatever crashes."""

    @abstractmethod
    def own_config(self) -> Mapping[str, str]:
        """The connector's own keys, and where it reads or writes."""

    @abstractmethod
    def add(self, count: int) -> None:
        """Add the next `count` values to the place that the connector reads."""

    @abstractmethod
    def wanted(self) -> Sequence[Any]:
        """Every value that must arrive, once."""

    @abstractmethod
    def found(self) -> Sequence[Any]:
        """Every value that is there now."""

    def perhaps(self) -> Sequence[Any]:
        """Values that may be there in addition to the wanted ones."""
        return ()

    # --- the connector --------------------------------------------------------------------------------------------

    @property
    def connector(self) -> type[Any]:
        """The class under test."""
        found: type[Any] = load_class(PluginKind.CONNECTOR, self._connector_class)
        return found

    def own_required_keys(self) -> list[str]:
        """Keys of `config` that the connector itself defines and requires."""
        shared, given = CommonKeys.config_def().keys, self.config()
        keys = self.connector.config_def.keys
        return [name for name, key in keys.items() if key.is_required and name in given and name not in shared]

    def config(self, **overrides: str | None) -> dict[str, str]:
        """The connector's configuration; `None` removes a key, `_` means `.`."""
        config: dict[str, str | None] = {
            "name": self.name,
            "connector.class": self._connector_class,
            **self.own_config(),
            **{key.replace("_", "."): value for key, value in overrides.items()},
        }
        return {key: value for key, value in config.items() if value is not None}

    def spec(self, **overrides: str | None) -> RunSpec:
        """A run of the connector."""
        worker = {"bootstrap.servers": self._bootstrap, **_WORKER, **self.worker, **self._worker_config}
        return RunSpec(self.config(**overrides), worker)

    def errors(self, without: str = "", **overrides: str | None) -> list[Mapping[str, Any]]:
        """The findings of validation after the key `without` was removed."""
        spec = self.spec(**overrides)
        spec = replace(spec, connector={key: value for key, value in spec.connector.items() if key != without})
        return [finding for finding in validate_connector(spec) if finding["level"] == "error"]

    # --- running --------------------------------------------------------------------------------------------------

    def try_run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """One run in this process, with any outcome."""
        return run_here(self.spec(**overrides), columnar=columnar)[0]

    def run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(columnar=columnar, **overrides)
        assert report.status in ("done", "empty"), f"The run failed: {report.error}"
        return report

    def start(self, crash_at: str = "", *, columnar: bool = True, **overrides: str | None) -> RunProcess:
        """One run in a separate process."""
        return RunProcess(self.spec(**overrides), crash_at, columnar=columnar)

    # --- checks ---------------------------------------------------------------------------------------------------

    def check_everything_arrived(self, *, once: bool | None = None) -> None:
        """Every value is there, and nothing else; once if `once` (default: what the connector promises)."""
        found, wanted = _counted(self.found()), _counted(self.wanted())
        most = wanted + _counted(self.perhaps())
        missing, unexpected = wanted - found, set(found) - set(most)
        assert not missing, f"{missing.total()} values are missing, such as {next(iter(missing))}"
        assert not unexpected, f"{len(unexpected)} values were never written, such as {next(iter(unexpected))}"
        twice = found - most
        may_repeat = not self.is_once if once is None else not once
        assert may_repeat or not twice, f"{twice.total()} values are there more than once, such as {next(iter(twice))}"


def _counted(values: Sequence[Any]) -> Counter[str]:
    return Counter(json.dumps(value, sort_keys=True) for value in values)
