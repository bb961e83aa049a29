"""The two kinds of connectors, sinks and sources: what the driver and its callers do with each of them.

`kind_of` is the only place that chooses between them. What a method needs is imported when it is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.class_of_connector import names_source
from airflow_connect.runtime.spec import Observer, RunSpec, ignore_events

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.documents.run import Plan
    from airflow_connect.runtime.driver.offsets.altered import AlteredOffsets
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.driver.sink.run import SinkRun
    from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
    from airflow_connect.runtime.driver.source.run import SourceRun

Entries = list[dict[str, Any]]
"""Offsets in the form of Kafka Connect's REST API (KIP-875): `[{"partition": {...}, "offset": {...} or None}]`."""


@dataclass(frozen=True, slots=True)
class Kind(ABC):
    """What can be done with a connector. Every method raises ConnectError if the configuration is wrong.

    Attributes:
        spec: the connector and its worker.
    """

    spec: RunSpec

    @abstractmethod
    def configuration(self) -> SinkConfiguration | SourceConfiguration:
        """Both configurations, checked and typed."""

    @abstractmethod
    def findings(self) -> list[dict[str, Any]]:
        """Every finding about the configuration, offline; see `CheckedConfiguration.findings`."""

    @abstractmethod
    def run(self, observer: Observer, engine: Engine | None) -> SinkRun | SourceRun:
        """A bounded run, not started."""

    @abstractmethod
    def plan(self) -> Plan:
        """What a run would copy now. Writes nothing."""

    @abstractmethod
    def refuse_bounds(self) -> None:
        """Raise ConfigError if runs of this kind cannot be bound to the ranges of a plan."""

    @abstractmethod
    def committed_offsets(self) -> Entries:
        """What is committed, of every partition. Joins no group."""

    @abstractmethod
    def wanted_offsets(self, offsets: Any) -> tuple[Entries, Entries]:
        """What is committed, and what `set_offsets` would set. Writes nothing.

        Args:
            offsets: as `set_offsets` takes them; None: every offset is deleted.

        Raises:
            OffsetError: a partition does not exist, or an offset is outside its log.
        """

    @abstractmethod
    def set_offsets(self, offsets: Any) -> AlteredOffsets:
        """See `entry.set_offsets`."""

    @abstractmethod
    def reset_offsets(self, partitions: Any) -> AlteredOffsets:
        """See `entry.reset_offsets`."""


def _noting(configuration: SinkConfiguration | SourceConfiguration, plan: Plan) -> Plan:
    """The plan, with a note about what executors on other machines get of this environment."""
    from airflow_connect.runtime.machines import sentence_about

    sentence = "" if plan.is_empty else sentence_about(configuration.worker_spark)
    return replace(plan, notes=(*plan.notes, sentence)) if sentence else plan


class _Sink(Kind):
    """From topics to another system."""

    def configuration(self) -> SinkConfiguration:
        from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

        return SinkConfiguration.from_spec(self.spec)

    def findings(self) -> list[dict[str, Any]]:
        from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

        return SinkConfiguration.findings(self.spec)

    def run(self, observer: Observer, engine: Engine | None) -> SinkRun:
        from airflow_connect.runtime.driver.sink.run import SinkRun

        return SinkRun(self.configuration(), observer, engine)

    def plan(self) -> Plan:
        from airflow_connect.runtime.driver.checks.columns import note_on_columns
        from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
        from airflow_connect.runtime.driver.sink.run import SinkRun

        configuration = self.configuration()
        with configuration.references.hiding_errors(), configuration.sink, SinkSession(configuration) as kafka:
            view = kafka.peek()
            plan = SinkRun(configuration, ignore_events, None).plan_from(kafka, view, peek=True)[0]
            note = note_on_columns(configuration.resolved, configuration.sink)
            return _noting(configuration, replace(plan, notes=(*plan.notes, note)) if note else plan)

    def refuse_bounds(self) -> None:
        pass  # They can.

    def committed_offsets(self) -> Entries:
        from airflow_connect.planning.limits import RunLimits
        from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

        configuration = self.configuration()
        with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
            committed = kafka.log_state(RunLimits()).committed
        return [_entry(place, offset) for place, offset in sorted(committed.items())]

    def wanted_offsets(self, offsets: Any) -> tuple[Entries, Entries]:
        from airflow_connect.kafka.admin import watermarks
        from airflow_connect.planning.chosen_positions import parse_positions, resolve
        from airflow_connect.planning.limits import RunLimits
        from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

        configuration = self.configuration()
        positions = parse_positions(offsets, "offsets")
        with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
            log = kafka.log_state(RunLimits())
            wanted = resolve(positions, log, lambda tps, ms: watermarks.offsets_for_timestamp(kafka.admin, tps, ms))
        before = [_entry(place, offset) for place, offset in log.committed.items()]
        return before, [_entry(place, offset) for place, offset in wanted.items()]

    def set_offsets(self, offsets: Any) -> AlteredOffsets:
        from airflow_connect.planning.chosen_positions import parse_positions
        from airflow_connect.runtime.driver.offsets.of_sinks import alter

        return alter(self.configuration(), parse_positions(offsets, "offsets"))

    def reset_offsets(self, partitions: Any) -> AlteredOffsets:
        return self.set_offsets(None if partitions is None else dict.fromkeys(partitions))


class _Source(Kind):
    """From another system to topics."""

    def configuration(self) -> SourceConfiguration:
        from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

        return SourceConfiguration.from_spec(self.spec)

    def findings(self) -> list[dict[str, Any]]:
        from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

        return SourceConfiguration.findings(self.spec)

    def run(self, observer: Observer, engine: Engine | None) -> SourceRun:
        from airflow_connect.runtime.driver.source.run import SourceRun

        if self.spec.bounds:
            self.refuse_bounds()
        return SourceRun(self.configuration(), observer, engine)

    def plan(self) -> Plan:
        from airflow_connect.runtime.driver.source.kafka_session import SourceSession
        from airflow_connect.runtime.driver.source.run import SourceRun

        configuration = self.configuration()
        with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
            offsets = kafka.read_offsets()
            for partition, offset in kafka.changes_in_file(offsets):
                offsets.record(partition, offset)
            return _noting(configuration, SourceRun(configuration, ignore_events, None).plan_only(kafka, offsets))

    def refuse_bounds(self) -> None:
        raise ConfigError(
            f"Connector {self._name} is a source, and only runs of sinks can be bound to ranges.",
            suggestion="Limit a source with run.max.records, or set its offsets.",
            config_path="connector.class",
        )

    def committed_offsets(self) -> Entries:
        from airflow_connect.runtime.driver.source.kafka_session import SourceSession

        configuration = self.configuration()
        with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
            found = kafka.read_offsets().items()
            return [{"partition": dict(partition), "offset": dict(offset)} for partition, offset in found]

    def wanted_offsets(self, offsets: Any) -> tuple[Entries, Entries]:
        from airflow_connect.runtime.driver.offsets.of_sources import parse_offsets

        before = self.committed_offsets()
        if offsets is None:
            return before, [{"partition": entry["partition"], "offset": None} for entry in before]
        wanted = parse_offsets(offsets, self._name)
        return before, [{"partition": dict(place), "offset": offset} for place, offset in wanted]

    def set_offsets(self, offsets: Any) -> AlteredOffsets:
        from airflow_connect.runtime.driver.offsets.of_sources import alter, parse_offsets

        return alter(self.configuration(), parse_offsets(offsets, self._name))

    def reset_offsets(self, partitions: Sequence[Any] | None) -> AlteredOffsets:
        from airflow_connect.runtime.driver.offsets.of_sources import alter

        if partitions is None:
            return alter(self.configuration(), None)
        return self.set_offsets([{"partition": which, "offset": None} for which in partitions])

    @property
    def _name(self) -> Any:
        return self.spec.connector.get("name")


def kind_of(spec: RunSpec) -> Kind:
    """The kind of a connector; a class that cannot be looked up counts as a sink, whose check reports why."""
    return _Source(spec) if names_source(spec) else _Sink(spec)


def _entry(place: TopicPartition, offset: int | None) -> dict[str, Any]:
    return {
        "partition": {"kafka_topic": place.topic, "kafka_partition": place.partition},
        "offset": None if offset is None else {"kafka_offset": offset},
    }
