"""The metrics source as a connector class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_connect.api.errors import ConfigError
from airflow_connect.api.source import ExactlyOnceSupport, SourceConnector, SourceOffset
from airflow_connect.connectors.metrics.config import MetricsConfig, config_def
from airflow_connect.connectors.metrics.ranges import HostRange, ranges_of
from airflow_connect.connectors.metrics.sampler import Sampler, open_sampler
from airflow_connect.connectors.metrics.task import HOST, METRIC, TIMESTAMP_MS, MetricsSourceTask


class MetricsSourceConnector(SourceConnector):
    """Samples of hosts to a topic."""

    config_def = config_def()
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
            # A second task could meet the first on one host, and both would write the same source partitions.
            return [{**self.config, **HostRange().config()}]
        hosts = sorted({host for host in self._sampler.hosts() if host in self._typed.hosts})
        return [{**self.config, **part.config()} for part in ranges_of(hosts, max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """A sample that was committed is not taken again; one that was not is taken anew."""
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that somebody sets."""
        for partition, offset in offsets.items():
            if offset is None:
                continue  # anything may be deleted, so that what is wrong can be got rid of
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


def _refused(message: str) -> ConfigError:
    return ConfigError(
        message + ".",
        code="offset.refused",
        suggestion='Write partition {"host": "web-1", "metric": "cpu.percent"} and offset {"timestamp": 0}, or null to'
        " delete.",
    )
