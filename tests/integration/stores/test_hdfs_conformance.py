"""HDFS does what every store must do, on a real NameNode and a real DataNode."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.store import Store
from airflow_connect.testing import StoreConformance
from tests.devstack.hdfs import HdfsCluster
from tests.support.hdfs_files import put, visible_files

pytestmark = [pytest.mark.integration, pytest.mark.soak]


class TestHdfsStore(StoreConformance):
    many_files: ClassVar[int] = 3000 if os.environ.get("AIRFLOW_CONNECT_SOAK") else 150

    @pytest.fixture
    def target(self, hdfs: HdfsCluster, unique_name: str) -> str:
        """A directory that is not there yet."""
        return f"{hdfs.url}/{unique_name}"

    def open_store(self, target: Any) -> Store:
        return HdfsStore(HdfsSettings(target, piece_bytes=4 << 20, retry_s=20))

    def visible(self, target: Any) -> Mapping[str, bytes]:
        return visible_files(target)

    def put_foreign(self, target: Any, key: str, data: bytes) -> None:
        put(f"{target}/{key}", data)

    def unusable_stores(self, target: Any) -> Iterable[Store]:
        (nobody,) = free_ports(1)
        settings = HdfsSettings(f"hdfs://127.0.0.1:{nobody}", retry_s=0)
        yield HdfsStore(settings)
        yield HdfsStore(replace(settings, url="hdfs://no-such-service"))
        yield HdfsStore(replace(settings, conf_dir="/no/such/folder"))
