"""Which rows have a peer, and how the peer is started and copies what the row copies.

Both copy the same topic or file, one after the other. A peer is started when it is needed, copies a little to warm up,
and has ended before the next row begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench.file_sinks import LineFiles
from tests.bench.mirrors import Mirrors
from tests.bench.peers import kafka_connect
from tests.bench.peers.spark_source import PARQUET, TEXT_DENSE, TEXT_FAST, SparkSource
from tests.bench.peers.watching import PeerRun
from tests.bench.rows import Row
from tests.bench.sources import LogLines
from tests.bench.topics import Load
from tests.devstack.connect_worker import ConnectWorker

Copy = Callable[[Row], PeerRun]


@dataclass(frozen=True, slots=True)
class Places:
    """Where both read and write: the broker, folders for files that are written and for logs, the second broker."""

    kafka: KafkaBroker
    files: Path
    logs: Path
    mirrors: Mirrors
    master: str


@dataclass(frozen=True, slots=True)
class Peer:
    """Who copies what a row copies.

    Attributes:
        name: with its version.
        start: enters what runs the copies, and gives the function that copies once.
    """

    name: str
    start: Callable[[Places], AbstractContextManager[Copy]]


@contextmanager
def _file_sink(places: Places) -> Iterator[Copy]:
    files = LineFiles(places.files)
    with kafka_connect.standalone(places.kafka) as worker:
        yield lambda row: kafka_connect.copy_to_file(worker, places.kafka, files, _topic(row))


@contextmanager
def _file_source(start: Callable[[KafkaBroker], ConnectWorker], places: Places) -> Iterator[Copy]:
    with start(places.kafka) as worker:
        yield lambda row: kafka_connect.copy_to_topic(worker, places.kafka, places.logs, _lines(row), row.config)


@contextmanager
def _mirror_maker(places: Places) -> Iterator[Copy]:
    with places.mirrors.start_peer() as worker:
        yield lambda row: places.mirrors.copy_with(worker, _topic(row))


@contextmanager
def _spark(form: tuple[str, Mapping[str, str]], places: Places) -> Iterator[Copy]:
    with SparkSource(places.kafka, places.files, places.master) as source:
        yield lambda row: source.copy(_topic(row), form)


def _topic(row: Row) -> Load:
    assert isinstance(row.load, Load)
    return row.load


def _lines(row: Row) -> LogLines:
    assert isinstance(row.load, LogLines)
    return row.load


_CONNECT, _SPARK = ConnectWorker.name, f"Spark {pyspark.__version__}, Kafka source"
PEERS: dict[str, Peer] = {
    "file-sink": Peer(f"{_CONNECT}, FileStreamSink", _file_sink),
    "source-plain": Peer(
        f"{_CONNECT}, FileStreamSource, exactly once", lambda places: _file_source(kafka_connect.exactly_once, places)
    ),
    "source-plain-alo": Peer(
        f"{_CONNECT}, FileStreamSource, at least once", lambda places: _file_source(kafka_connect.standalone, places)
    ),
    "mirror": Peer(f"MirrorMaker 2 of {KafkaBroker.name}, exactly once", _mirror_maker),
    "local-raw-gzip": Peer(f"{_SPARK}, text, gzip level 1", lambda places: _spark(TEXT_FAST, places)),
    "local-raw-dense": Peer(f"{_SPARK}, text, gzip level 6", lambda places: _spark(TEXT_DENSE, places)),
    "local-parquet": Peer(f"{_SPARK}, Parquet, zstd", lambda places: _spark(PARQUET, places)),
}
"""By the name of the row."""


def rows_with_peers(rows: Iterable[Row]) -> list[Row]:
    """Those of `rows` that have a peer, in the order of PEERS."""
    by_name = {row.name: row for row in rows}
    return [by_name[name] for name in PEERS if name in by_name]
