"""Rows of Java plugins that do next to nothing: what it costs to run them, here and in a worker of Kafka Connect.

The peer is a standalone worker with the same plugins and the same configuration, from the connector's creation to the
last record in the topic, or the last committed offset: its start does not count, those of the JVMs of a run here do.
Its source copies at least once, those here exactly once.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench import sources
from tests.bench.peers import kafka_connect
from tests.bench.peers.watching import EVERY_S, LONGEST_S, committed, end_offsets
from tests.bench.processes import TreeSampler
from tests.bench.topics import Load
from tests.devstack.connect_worker import ConnectWorker
from tests.integration.jvm.conformance import conformance_plugins
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.waiting import wait_until

STORE = "java"
SOURCE, SINK = "plugins.Measured$Numbers", "plugins.Measured$Counts"
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_BYTES = 180
_BATCH = 2_000
_FIRST = 1_000_000_000
_PEER = {SOURCE: kafka_connect.FAST_PRODUCER, SINK: kafka_connect.FAST_CONSUMER}
_NUMBER = re.compile(rb"^(\d{10})x+$", re.MULTILINE)


class JavaPlugins:
    """The plugins, and the worker of Kafka Connect."""

    def __init__(self, stack: ExitStack, folder: Path, kafka: KafkaBroker) -> None:
        """Nothing is compiled or started before it is needed."""
        self._stack, self._folder, self._kafka = stack, folder / "java", kafka
        self._worker: ConnectWorker | None = None
        self._last: dict[str, str] = {}

    def worker(self) -> dict[str, str]:
        """Keys of a worker that runs the last connector."""
        return {"plugin.path": str(self._plugins)} if self._last else {}

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector with one task: a source whose topic has its name, or a sink of the topic of the load."""
        self._last = {
            "tasks.max": "1",
            "key.converter": _STRINGS,
            "value.converter": _STRINGS,
            **config,
            "name": name,
            **(self._source(name, load) if config["connector.class"] == SOURCE else self._sink(name, load)),
        }
        return dict(self._last)

    def check(self, name: str, load: Load) -> tuple[int, str]:
        """Bytes that were copied, and what is wrong: each record must be in the topic, or must be counted."""
        if self._last["connector.class"] == SINK:
            counted = sum(int(file.read_text()) for file in self._counts(name).iterdir())
            shutil.rmtree(self._counts(name))
            return load.records * 200, "" if counted == load.records else f"the plugin has got {counted} records"
        found = sources.check_topic(self._kafka.bootstrap, name, load.records, _numbers)
        delete_topic(self._kafka.bootstrap, name)
        return found

    def say_peer(self, load: Load, ours_cpu_s_per_million: float, ours_per_s: float) -> str:
        """Let Kafka Connect run the plugin of the last row, and print its figures; returns what went wrong."""
        name = f"peer-{self._last['name']}"
        kind = self._last["connector.class"]
        own = {key: value for key, value in self._last.items() if key not in ("name", "topic")}
        config = self.connector(name, load, {**own, **_PEER[kind]})
        begun = time.monotonic()
        peer = self._peer
        started = time.monotonic()
        with TreeSampler(peer.pid) as sampler:
            peer.rest.create(name, {key: value for key, value in config.items() if key != "name"})
            done = self._is_written if kind == SOURCE else self._is_committed
            wait_until(lambda: done(name, load), f"{load.records} records of {name}", LONGEST_S, EVERY_S)
            seconds = time.monotonic() - started
        peer.rest.stop(name)
        _, problem = self.check(name, load)
        rate, per_million = load.records / seconds, sampler.used_s / load.records * 1e6
        print(
            f"  peer: Kafka Connect, standalone: {rate:,.0f} records/s ({ours_per_s / rate:.2f} times as fast here),"
            f" CPU s/M {per_million:.2f} ({per_million / ours_cpu_s_per_million:.2f} times ours),"
            f" peak {sampler.peak_bytes >> 20} MB; its start, {started - begun:.1f} s, does not count",
            flush=True,
        )
        return f"Kafka Connect: {problem}" if problem else ""

    def _source(self, name: str, load: Load) -> dict[str, str]:
        create_topic(self._kafka.bootstrap, name)
        return {"topic": name, "rows": str(load.records), "batch": str(_BATCH), "bytes": str(_BYTES)}

    def _sink(self, name: str, load: Load) -> dict[str, str]:
        self._counts(name).mkdir(parents=True)
        return {"topics": load.topic, "folder": str(self._counts(name))}

    def _counts(self, name: str) -> Path:
        return self._folder / name

    @property
    def _plugins(self) -> Path:
        folder = self._folder / "plugins"
        return folder if folder.exists() else conformance_plugins(folder)

    @property
    def _peer(self) -> ConnectWorker:
        if self._worker is None:
            properties = {"plugin.path": str(self._plugins)}
            started = ConnectWorker.start_standalone(self._kafka.bootstrap, properties, heap_mb=1024)
            self._worker = self._stack.enter_context(started)
        return self._worker

    def _is_written(self, name: str, load: Load) -> bool:
        with end_offsets(self._kafka.bootstrap, name, 1) as written:
            return written() >= load.records

    def _is_committed(self, name: str, load: Load) -> bool:
        return committed(self._kafka.bootstrap, f"connect-{name}") >= load.records


def _numbers(values: Sequence[bytes]) -> NDArray[np.int64]:
    return np.array([int(number) for number in _NUMBER.findall(b"\n".join(values))], np.int64) - _FIRST
