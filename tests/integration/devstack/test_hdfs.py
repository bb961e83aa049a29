"""The real HDFS of tests: nodes go and come back with their data."""

from __future__ import annotations

import pytest

from airflow_connect.devstack.launching.errors import DevStackError
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files

pytestmark = pytest.mark.integration


def test_cluster_keeps_address_and_files_over_a_restart_and_over_a_kill():
    with HdfsCluster.start() as cluster:
        url, pid = cluster.url, cluster.pid
        hdfs_files.put(f"{url}/a/f", b"abc")
        cluster.namenode.kill()
        assert not cluster.is_running
        with pytest.raises(DevStackError, match="is not running"):
            assert cluster.namenode.pid
        with pytest.raises(OSError, match="refused"):
            cluster.metrics()
        cluster.datanodes[0].kill()
        cluster.restart()

        assert (cluster.url, cluster.pid != pid, cluster.is_running) == (url, True, True)
        assert hdfs_files.get(f"{url}/a/f") == b"abc"
        with pytest.raises(DevStackError, match="dfsadmin -nonsense failed"):
            cluster.admin("-nonsense")
        with pytest.raises(DevStackError, match="NameNode answered PUT"):
            cluster.set_owner("/no/such/file", "bob")
    assert not cluster.is_running
    assert not cluster.namenode.data_dir.exists()
    assert not cluster.datanodes[0].data_dir.exists()
