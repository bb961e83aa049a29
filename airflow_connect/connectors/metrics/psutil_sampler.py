"""Statistics of the host that the task runs on, by psutil (extra `metrics`)."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

from airflow_connect.connectors.metrics.sampler import SAMPLER_CLASS, Sample
from airflow_connect.errors import DataError, missing_package

CPU_INTERVAL_S = 0.1
"""How long processor usage is measured; psutil recommends at least this."""


class PsutilSampler:
    """Processors, memory, disks, network, load, processes and uptime of the host that it runs on.

    The name of a metric is its group, a dot, and psutil's name: `cpu.percent`, `memory.available`, `disk.used:/` (with
    the mount point after the colon), `network.bytes_sent`, `load.1m`. Totals since the host started are totals here
    too.
    """

    is_local: ClassVar[bool] = True

    def __init__(self) -> None:
        """Nothing is measured yet."""
        self._psutil = _psutil()
        self._host = socket.gethostname()

    def hosts(self) -> Iterable[str]:
        """The host that it runs on."""
        return [self._host]

    def sample(self, host: str) -> Iterable[Sample]:
        """Every statistic that this system provides."""
        if host != self._host:
            raise DataError(
                f"{host} cannot be measured from {self._host}: psutil sees only its own host.",
                suggestion="Set sampler.class to a sampler that reaches other hosts.",
            )
        for group in (_cpu, _load, _memory, _disks, _network, _system):
            yield from (sample for sample in group(self._psutil) if math.isfinite(sample.value))

    def close(self) -> None:
        """Nothing is open."""


def _psutil() -> ModuleType:
    try:
        return import_module("psutil")
    except ImportError as error:
        raise missing_package(
            "psutil",
            "metrics",
            purpose="The sampler of host metrics",
            where="where the driver and the executors run",
            config_path=SAMPLER_CLASS,
        ) from error


def _cpu(psutil: Any) -> Iterator[Sample]:
    # Without an interval psutil compares with its previous call, and the first result is always 0.
    yield Sample("cpu.percent", psutil.cpu_percent(interval=CPU_INTERVAL_S), "percent")
    yield Sample("cpu.count", psutil.cpu_count() or 0)
    for name, value in psutil.cpu_times()._asdict().items():
        yield Sample(f"cpu.{name}", value, "seconds")


def _load(psutil: Any) -> Iterator[Sample]:
    for name, value in zip(("1m", "5m", "15m"), psutil.getloadavg(), strict=True):
        yield Sample(f"load.{name}", value)


def _memory(psutil: Any) -> Iterator[Sample]:
    for group, read in (("memory", psutil.virtual_memory), ("swap", psutil.swap_memory)):
        for name, value in read()._asdict().items():
            yield Sample(f"{group}.{name}", value, "percent" if name == "percent" else "bytes")


def _disks(psutil: Any) -> Iterator[Sample]:
    for mount in dict.fromkeys(partition.mountpoint for partition in psutil.disk_partitions()):
        usage = _if_readable(partial(psutil.disk_usage, mount))
        for name, value in usage._asdict().items() if usage is not None else ():
            yield Sample(f"disk.{name}:{mount}", value, "percent" if name == "percent" else "bytes")
    counters = psutil.disk_io_counters()
    for name in ("read_bytes", "write_bytes") if counters is not None else ():
        yield Sample(f"disk.{name}", getattr(counters, name), "bytes")


def _network(psutil: Any) -> Iterator[Sample]:
    counters = psutil.net_io_counters()
    for name, value in counters._asdict().items() if counters is not None else ():
        yield Sample(f"network.{name}", value, "bytes" if name.startswith("bytes") else "")


def _system(psutil: Any) -> Iterator[Sample]:
    yield Sample("system.processes", len(psutil.pids()))
    yield Sample("system.uptime", time.time() - psutil.boot_time(), "seconds")


def _if_readable(read: Callable[[], Any]) -> Any:
    """The result of `read`; None for a mount that has gone or must not be read: it has no metrics."""
    try:
        return read()
    except OSError:
        return None
