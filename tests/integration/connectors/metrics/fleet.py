"""Simulated fleets: samplers of as many hosts as a test wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Self

from airflow_connect.connectors.metrics.sampler import Sample
from airflow_connect.errors import UnavailableError


class FleetSampler:
    """`fleet.hosts` hosts with `fleet.metrics` metrics each; every question is a line in the file `fleet.notes`."""

    is_local: ClassVar[bool] = False

    def __init__(self, hosts: int, metrics: int, notes: str, broken: str) -> None:
        self._hosts = hosts
        self._metrics = metrics
        self._notes = notes
        self._broken = broken
        self._shy = True

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        """From the connector's configuration."""
        hosts, metrics = int(config["fleet.hosts"]), int(config.get("fleet.metrics", "10"))
        return cls(hosts, metrics, config.get("fleet.notes", ""), config.get("fleet.broken", ""))

    def hosts(self) -> Iterable[str]:
        """In no order that anybody should rely on."""
        return [f"host-{n:05d}" for n in reversed(range(self._hosts))]

    def sample(self, host: str) -> Iterable[Sample]:
        """Numbers that say which host and metric they are of."""
        if self._notes:
            with Path(self._notes).open("a") as file:
                file.write(host + "\n")
        if host == self._broken:
            raise ValueError("it does not answer")
        if self._shy and host == "host-00003":
            self._shy = False
            raise UnavailableError("The host is busy.")
        number = int(host.removeprefix("host-"))
        return [Sample(f"metric.{n}", number * 100 + n, "bytes") for n in range(self._metrics)]

    def close(self) -> None:
        """Nothing is open."""


class RosterSampler:
    """Measures the hosts that stand in the file `roster.file`, one a line: the number in the name of each."""

    is_local: ClassVar[bool] = False

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        """From the connector's configuration."""
        return cls(config["roster.file"])

    def hosts(self) -> Iterable[str]:
        """As the file has them now."""
        return self._file.read_text().split()

    def sample(self, host: str) -> Iterable[Sample]:
        """One metric."""
        return [Sample("number", int(host.removeprefix("host-")))]

    def close(self) -> None:
        """Nothing is open."""
