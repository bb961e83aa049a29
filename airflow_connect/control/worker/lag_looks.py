"""Which connectors have enough to copy: looks at Kafka for all of them at once, without a run and without a JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from airflow_connect.control.worker.due import Due
from airflow_connect.errors import ConnectError
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.observe.watches.reader import ClusterReader, Watch
from airflow_connect.observe.watches.target import Cluster, Target, target_of
from airflow_connect.runtime.spec import RunSpec


class LagLooks:
    """Remembers targets and clients between looks. Used by one thread."""

    def __init__(self, spec_of: Callable[[Mapping[str, str | None]], RunSpec]) -> None:
        """`spec_of`: the specification of a run with a configuration."""
        self._spec_of = spec_of
        self._targets: dict[str, tuple[int, Target]] = {}
        self._readers: dict[Cluster, ClusterReader] = {}

    def reached(self, waiting: Sequence[Due]) -> set[str]:
        """Names of those whose condition holds, and of those that cannot be looked at: their run tells why.

        One that is early and cannot be looked at is left to its interval.

        Args:
            waiting: connectors with a condition; others are forgotten.
        """
        found: set[str] = set()
        early = {due.name for due in waiting if due.is_early}
        watches: dict[Cluster, list[Watch]] = defaultdict(list)
        self._targets = {due.name: self._targets[due.name] for due in waiting if due.name in self._targets}
        for due in waiting:
            assert due.lag is not None
            try:
                target = self._target(due)
            except ConnectError:
                if not due.is_early:
                    found.add(due.name)
                continue
            watches[target.cluster].append(Watch(target, due.lag))
        self._readers = {cluster: self._readers.get(cluster) or ClusterReader(cluster) for cluster in watches}
        for cluster, of_cluster in watches.items():
            try:
                answers = self._readers[cluster].observe(of_cluster)
            except ConnectError as error:  # One cluster that does not answer must not stop the connectors of others.
                answers = [error] * len(of_cluster)
            for watch, answer in zip(of_cluster, answers, strict=True):
                name = watch.target.name
                if isinstance(answer, Observation):
                    found.update([name] if answer.is_reached else [])
                    continue
                del self._targets[name]  # A reference of its configuration may have another value by now.
                found.update([name] if name not in early else [])
        return found

    def _target(self, due: Due) -> Target:
        offset, target = self._targets.get(due.name, (-1, None))
        if target is None or offset != due.offset:
            target = target_of(self._spec_of(due.config))
            self._targets[due.name] = due.offset, target
        return target
