"""Files that are being written when one of two DataNodes dies."""

from __future__ import annotations

import os

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import UnavailableError
from airflow_connect.stores.hdfs.publish import HdfsPublisher
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.staging import HdfsStager, HdfsStagingFile
from airflow_connect.stores.store import FileIdentity, Outcome
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.crash]


@pytest.mark.budget(30)  # a cluster of its own with two DataNodes, and hdfs-native's own waits for the lost one
def test_file_that_grew_is_staged_by_the_next_attempt_and_a_whole_one_is_written_again():
    """hdfs-native 0.14 does not always get over a lost node, so that a growing file may fail its task."""
    data = os.urandom(6 << 20)
    with HdfsCluster.start(datanodes=2, properties={"dfs.replication": "2"}) as cluster:
        settings = HdfsSettings(f"{cluster.url}/base", piece_bytes=1 << 20, retry_s=120)
        stager = HdfsStager(settings)
        growing, small = (stager.open(FileIdentity(f"t/f{n}", "t", 0, n, root="t/")) for n in range(2))
        growing.write(data[: 3 << 20])
        wait_until(lambda: hdfs_files.all_files(settings.url) != {}, "the file has begun to grow", 60)
        cluster.datanodes[0].kill()
        small.write(b"abc")
        staged = [small.close(2, 1).result(240), _finished(stager, growing, data)]
        stager.close()
        outcomes = HdfsPublisher(settings).publish(staged, lambda _: None)

        assert outcomes == {"t/f0": Outcome.PUBLISHED, "t/f1": Outcome.PUBLISHED}
        assert hdfs_files.visible_files(settings.url) == {"t/f0": data, "t/f1": b"abc"}
        assert not hdfs_files.exists(f"{settings.url}/t/+tmp")


def _finished(stager: HdfsStager, growing: HdfsStagingFile, data: bytes) -> StagedFile:
    """The rest of the file, or, as Spark's next attempt of the task would, all of it again."""
    try:
        growing.write(data[3 << 20 :])
        return growing.close(1, 1).result(240)
    except UnavailableError as error:
        message = error.message
    assert "+tmp/f0" in message
    growing.abort()
    again = stager.open(FileIdentity("t/f0", "t", 0, 0, root="t/"))
    again.write(data)
    return again.close(1, 1).result(240)
