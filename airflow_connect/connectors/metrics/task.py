"""The task of the metrics source: rounds over a range of hosts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SourceRecord
from airflow_connect.api.source import SourceTask
from airflow_connect.connectors.metrics.config import MetricsConfig
from airflow_connect.connectors.metrics.ranges import HostRange
from airflow_connect.connectors.metrics.sampler import Sample, Sampler, open_sampler
from airflow_connect.errors import ConnectError, DataError, TaskFailedError

HOST, METRIC, TIMESTAMP_MS = "host", "metric", "timestamp"
VALUE_SCHEMA = schemas.struct(
    (HOST, schemas.STRING),
    (METRIC, schemas.STRING),
    ("value", schemas.FLOAT64),
    ("unit", schemas.STRING),
    (TIMESTAMP_MS, schemas.timestamp()),
    name="airflow_connect.metrics.Sample",
    version=1,
)
WAIT_S = 0.2
"""How long one call waits for the next round."""


class MetricsSourceTask(SourceTask):
    """Measures the hosts of a range, each metric once in every round.

    Each round has the time at which it is due: the start of the run, then one interval later each time. That time is
    the offset of its samples, so an attempt that takes over from a dead one measures only what has no sample of the
    round yet. The number of rounds bounds a run.
    """

    _sampler: Sampler | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Find the hosts of this task."""
        self._config = MetricsConfig.from_config(config)
        self._sampler = open_sampler(config)
        mine = HostRange.of(config)
        self._hosts = sorted({host for host in self._sampler.hosts() if host in mine and host in self._config.hosts})
        self._round, self._next_host = 0, 0
        self._started_s = time.monotonic()

    def poll(self) -> Sequence[SourceRecord] | None:
        """The samples of the next hosts; None if the next round is not due yet."""
        if self.has_ended() or not self._is_due():
            return None
        records: list[SourceRecord] = []
        while self._next_host < len(self._hosts) and len(records) < self._config.batch_size:
            try:
                records += self._records(self._hosts[self._next_host])
            except ConnectError as error:
                if not error.retriable or not records:
                    raise
                return records  # The next call samples the failed host again.
            self._next_host += 1
        if self._next_host == len(self._hosts):
            self._round, self._next_host = self._round + 1, 0
        return records

    def has_ended(self) -> bool:
        """Whether all rounds are complete."""
        return not self._hosts or self._round >= self._config.rounds

    def stop(self) -> None:
        """See `Task`."""
        if self._sampler is not None:
            self._sampler.close()

    def _is_due(self) -> bool:
        """Whether the round may begin; waits a little if not."""
        due_s = self._started_s + self._round * self._config.interval_ms / 1000
        left_s = due_s - time.monotonic()
        if left_s > 0:
            time.sleep(min(left_s, WAIT_S))
        return left_s <= WAIT_S

    def _records(self, host: str) -> list[SourceRecord]:
        """Samples of a host that no earlier attempt of this round has committed."""
        due_ms = self.context.clock_ms + self._round * self._config.interval_ms
        measured = self._measure(host)
        now_ms = time.time_ns() // 1_000_000
        partitions = [{HOST: host, METRIC: metric} for metric in measured]
        committed = self.context.offset_reader.offsets(partitions)
        return [
            SourceRecord(
                topic=self._config.topic,
                key_schema=schemas.STRING,
                key=host,
                value_schema=VALUE_SCHEMA,
                value={
                    HOST: host,
                    METRIC: sample.metric,
                    "value": float(sample.value),
                    "unit": sample.unit,
                    TIMESTAMP_MS: now_ms,
                },
                timestamp=now_ms,
                source_partition=partition,
                source_offset={TIMESTAMP_MS: due_ms},
            )
            for sample, partition, offset in zip(measured.values(), partitions, committed, strict=True)
            if offset is None or offset[TIMESTAMP_MS] < due_ms
        ]

    def _measure(self, host: str) -> dict[str, Sample]:
        """The wanted samples of a host, by metric."""
        assert self._sampler is not None
        found: dict[str, Sample] = {}
        try:
            for sample in self._sampler.sample(host):
                if sample.metric in found:
                    raise DataError(f"The sampler returned the metric {sample.metric} of {host} twice.")
                if sample.metric in self._config.metrics:
                    found[sample.metric] = sample
        except ConnectError:
            raise
        except Exception as error:  # Third-party code: the message must name the host.
            raise TaskFailedError(
                f"{host} could not be measured: {type(error).__name__}: {error}.",
                code="task.plugin_failed",
                suggestion="Correct the class in sampler.class, or exclude the host with the key hosts.",
            ) from error
        return found
