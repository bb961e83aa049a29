"""One connector of a conformance run of sources: its topic, what it was fed, its runs, what arrived."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.plugins import PluginKind, load_class
from airflow_connect.api.run import RunReport
from airflow_connect.api.source import SourceConnector, SourceOffset, SourcePartition
from airflow_connect.runtime.driver.source_configuration import SourceConfiguration
from airflow_connect.runtime.driver.source_session import SourceSession
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics

if TYPE_CHECKING:
    from airflow_connect.testing.source_suite import SourceConformance


class SourceCase:
    """A connector with a topic of its own, of one partition, so that order can be seen."""

    def __init__(self, suite: SourceConformance, bootstrap: str, place: Any) -> None:
        """`place`: what the suite's `place` fixture gave."""
        self._suite = suite
        self._bootstrap = bootstrap
        self.place = place
        self.topics = Topics(bootstrap)
        self.topic = f"conformance-{uuid.uuid4().hex[:10]}"
        self.name = f"source-{self.topic}"
        self.fed: list[Any] = []
        self.topics.create(self.topic, 1)

    @property
    def connector(self) -> type[SourceConnector]:
        """The class under test."""
        found: type[SourceConnector] = load_class(PluginKind.CONNECTOR, self._suite.connector_class)
        return found

    # --- feeding and running --------------------------------------------------------------------------------------

    def feed(self, count: int) -> None:
        """Make the next `count` records appear in the source."""
        self.fed += self._suite.feed(self.place, len(self.fed), count)

    def config(self, **overrides: str | None) -> dict[str, str]:
        """The connector's configuration; `None` removes a key, `_` stands for `.`."""
        config: dict[str, str | None] = {
            "name": self.name,
            "connector.class": self._suite.connector_class,
            "tasks.max": "1",
            **self._suite.connector_config(self.place, self.topic),
        }
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def spec(self, **overrides: str | None) -> RunSpec:
        """A run of it."""
        worker = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "conformance-workers",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
            **self._suite.worker_config(),
        }
        return RunSpec(self.config(**overrides), worker)

    def try_run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """One run in this process, whatever comes of it."""
        return run_here(self.spec(**overrides), columnar=columnar)[0]

    def run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(columnar=columnar, **overrides)
        assert report.status in ("done", "empty"), f"The run failed: {report.error}"
        return report

    def start(self, crash_at: str = "", **overrides: str | None) -> RunProcess:
        """One run in a process of its own."""
        return RunProcess(self.spec(**overrides), crash_at)

    # --- looking --------------------------------------------------------------------------------------------------

    def arrived(self) -> list[Any]:
        """Every committed value of the topic, in order."""
        return [self._suite.value_of(json.loads(m.value() or b"null")) for m in self.topics.read(self.topic)]

    def offsets(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """Committed offsets."""
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            return list(session.read_offsets().items())

    def delete_offsets(self) -> None:
        """Delete every offset, as an operator would, the connector's consent included."""
        offsets = {tuple(sorted(partition.items())): None for partition, _ in self.offsets()}
        self.connector().alter_offsets(self.config(), offsets)
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            session.open_writer().fence()
            known = session.read_offsets()
            session.write_offsets(known, [(partition, None) for partition, _ in list(known.items())])

    def check_everything_arrived(self, *, once: bool = True) -> None:
        """Every value is there, and nothing else; once, unless the run promises less."""
        found, wanted = _counted(self.arrived()), _counted(self.fed)
        missing, unexpected = wanted - found, set(found) - set(wanted)
        assert not missing, f"{missing.total()} records are missing, such as {next(iter(missing))}"
        assert not unexpected, f"{len(unexpected)} records were never fed, such as {next(iter(unexpected))}"
        twice = found - wanted
        assert not (once and twice), f"{twice.total()} records are there more than once, such as {next(iter(twice))}"

    def check_order(self) -> None:
        """Records lie in the order in which they were fed."""
        arrived = self.arrived()
        for found, wanted in zip(arrived, self.fed, strict=True):
            assert found == wanted, f"{found} stands where {wanted} was expected"


def _counted(values: Sequence[Any]) -> Counter[str]:
    return Counter(json.dumps(value, sort_keys=True) for value in values)


def required_keys(config: Mapping[str, str], connector: type[SourceConnector]) -> list[str]:
    """Given keys that the connector itself defines and requires."""
    return [name for name, key in connector.config_def.keys.items() if key.is_required and name in config]
