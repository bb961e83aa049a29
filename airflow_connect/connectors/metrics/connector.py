"""The metrics source as a connector class."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from airflow_connect.api.source import ExactlyOnceSupport, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.metrics.config import MetricsConfig
from airflow_connect.connectors.metrics.ranges import HostRange, ranges_of
from airflow_connect.connectors.metrics.sampler import Sampler, open_sampler
from airflow_connect.connectors.metrics.task import HOST, METRIC, TIMESTAMP_MS, MetricsSourceTask
from airflow_connect.errors import ConfigError


class MetricsSourceConnector(SourceConnector):
    """Samples of hosts to a topic."""

    config_def = MetricsConfig.config_def()
    task_class = MetricsSourceTask
    version = "1.0"

    _sampler: Sampler | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """See `Connector`."""
        super().start(config)
        self._typed = MetricsConfig.from_config(config)
        self._sampler = open_sampler(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One range of hosts for each task: its size does not depend on how many hosts or metrics there are."""
        if self._sampler is None:
            raise RuntimeError("The connector was not started.")
        if self._sampler.is_local:
            # A second task could run on the same host as the first, and both would write the same source partitions.
            return [{**self.config, **HostRange().config()}]
        hosts = sorted({host for host in self._sampler.hosts() if host in self._typed.hosts})
        return [{**self.config, **part.config()} for part in ranges_of(hosts, max_tasks)]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Source partitions of the task's hosts that were measured before; new ones have no offset yet."""
        mine = HostRange.of(task_config)
        after = bisect_left(self._measured, mine.end, key=_host_of) if mine.end else len(self._measured)
        return self._measured[bisect_left(self._measured, mine.start, key=_host_of) : after]

    @cached_property
    def _measured(self) -> list[SourcePartition]:
        """Every source partition of a wanted metric of a host that has an offset, in the order of hosts."""
        committed = (dict(partition) for partition, _ in self.context.offset_reader.committed())
        wanted = [
            partition
            for partition in committed
            if isinstance(partition.get(HOST), str) and partition.get(METRIC) in self._typed.metrics
        ]
        return sorted(wanted, key=_host_of)

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """False: what was measured before cannot be measured again."""
        return False

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """A committed sample is never taken again; one that was not committed is taken again."""
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that are being altered."""
        for partition, offset in offsets.items():
            if offset is None:
                continue  # anything may be deleted, so that invalid offsets can be removed
            if set(dict(partition)) != {HOST, METRIC}:
                raise _refused(f"A source partition must have {HOST} and {METRIC}, not {sorted(dict(partition))}")
            instant = offset.get(TIMESTAMP_MS)
            if not isinstance(instant, int) or isinstance(instant, bool) or instant < 0:
                raise _refused(f"An offset must have {TIMESTAMP_MS}, milliseconds since the epoch, not {dict(offset)}")
        return True

    def stop(self) -> None:
        """See `Connector`."""
        if self._sampler is not None:
            self._sampler.close()


def _host_of(partition: SourcePartition) -> str:
    return str(partition[HOST])


def _refused(message: str) -> ConfigError:
    return ConfigError(
        message + ".",
        code="offset.refused",
        suggestion='Write partition {"host": "web-1", "metric": "cpu.percent"} and offset {"timestamp": 0}, or null to'
        " delete.",
    )
