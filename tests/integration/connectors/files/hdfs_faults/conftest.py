"""A cluster that tests may damage, and connectors that lose patience sooner."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest

from airflow_connect.connectors.files.hdfs import config as hdfs_config
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.stores.hdfs.settings import HdfsSettings
from tests.devstack.hdfs import HdfsCluster
from tests.support.copies.hdfs import HdfsSink, hdfs_sink

MakeHdfsSink = Callable[..., HdfsSink]


@pytest.fixture(scope="package")
def cluster() -> Iterator[HdfsCluster]:
    """One cluster for all tests of this folder; each leaves it as it found it."""
    with HdfsCluster.start() as running:
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in this process give up after a second instead of two minutes."""
    _patience(monkeypatch, 1.0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in this process wait for a node that comes back on a busy machine, and write while files grow."""
    _patience(monkeypatch, 200.0)


@pytest.fixture
def make_hdfs_sink(kafka: KafkaBroker, cluster: HdfsCluster) -> MakeHdfsSink:
    """Make a connector on the cluster that may be damaged: `make_hdfs_sink(topic, **config)`."""
    return functools.partial(hdfs_sink, kafka, cluster)


def _patience(monkeypatch: pytest.MonkeyPatch, retry_s: float) -> None:
    changed = functools.partial(HdfsSettings, retry_s=retry_s, piece_bytes=1 << 20)
    monkeypatch.setattr(hdfs_config, "HdfsSettings", changed)
