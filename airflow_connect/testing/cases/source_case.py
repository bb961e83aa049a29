"""A source under test: its topic, what it was fed, its runs, and what arrived."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.source import ColumnarSourceTask, ExactlyOnceSupport, SourceOffset, SourcePartition
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from airflow_connect.testing.cases.connector_case import ConnectorCase
from airflow_connect.testing.runs import RunProcess

if TYPE_CHECKING:
    from airflow_connect.testing.suites.source_suite import SourceConformance


class SourceCase(ConnectorCase):
    """The topic has one partition, so that the order can be checked.

    Attributes:
        due: values that the next run must copy.
        copied: values that completed runs had to copy, in order.
    """

    kind = "source"
    partitions = 1
    worker: ClassVar[Mapping[str, str]] = {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "offset.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
    }

    def __init__(self, suite: SourceConformance, bootstrap: str, place: Any) -> None:
        """`place`: the suite's fixture `place`."""
        super().__init__(suite, bootstrap)
        self._suite = suite
        self.place = place
        self.due: list[Any] = []
        self.copied: list[Any] = []
        self._fed: list[Any] = []
        self._perhaps: list[Any] = []

    @property
    def is_once(self) -> bool:
        """See `ConnectorCase`."""
        return self.exactly_once_support is not ExactlyOnceSupport.UNSUPPORTED

    @property
    def has_columns(self) -> bool:
        """Whether its task can return records in columns."""
        return issubclass(self.connector.task_class, ColumnarSourceTask)

    @property
    def exactly_once_support(self) -> ExactlyOnceSupport | None:
        """Whether the connector supports exactly once with its configuration."""
        support: ExactlyOnceSupport | None = self.connector().exactly_once_support(self.config())
        return support

    def own_config(self) -> Mapping[str, str]:
        """See `ConnectorCase`."""
        return {"tasks.max": "1", **self._suite.connector_config(self.place, self.topic)}

    def add(self, count: int) -> None:
        """Add the next `count` records to the source."""
        values = self._suite.feed(self.place, len(self._fed), count)
        self._fed += values
        self.due += values

    def run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """See `ConnectorCase`; nothing is due afterwards, unless every run measures again."""
        report = super().run(columnar=columnar, **overrides)
        self.copied += self.due
        if not self._suite.measures:
            self.due = []
        return report

    def start(self, crash_at: str = "", *, columnar: bool = True, **overrides: str | None) -> RunProcess:
        """See `ConnectorCase`. What is due stays due: the run may be killed."""
        if self._suite.measures:
            self._perhaps += self.due
        return super().start(crash_at, columnar=columnar, **overrides)

    def wanted(self) -> Sequence[Any]:
        """See `ConnectorCase`."""
        return self.copied

    def perhaps(self) -> Sequence[Any]:
        """Values that a killed run may have committed, and that the next run measures again."""
        return self._perhaps

    def found(self) -> Sequence[Any]:
        """Every committed value of the topic, in order."""
        return [self._suite.value_of(json.loads(m.value() or b"null")) for m in self.topics.read(self.topic)]

    def offsets(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """Committed offsets."""
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            return list(session.read_offsets().items())

    def delete_offsets(self) -> None:
        """Delete every offset, as an operator does, after asking the connector."""
        offsets = {tuple(sorted(partition.items())): None for partition, _ in self.offsets()}
        self.connector().alter_offsets(self.config(), offsets)
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            session.open_writer().fence()
            known = session.read_offsets()
            session.write_offsets(known, [(partition, None) for partition, _ in list(known.items())])
        self.due = list(self._fed)

    def check_order(self) -> None:
        """Check that records are in the order in which they were due."""
        for found, wanted in zip(self.found(), self.copied, strict=True):
            assert found == wanted, f"{found} was found where {wanted} was expected"
