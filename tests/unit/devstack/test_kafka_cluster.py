"""A cluster that does not form is started anew, and the error says what was wrong with the last one."""

import pytest

from airflow_connect.devstack.launching.errors import DevStackError
from tests.devstack.kafka_cluster import START_ATTEMPTS, KafkaCluster


@pytest.fixture
def attempts(monkeypatch):
    """The clusters that were started (none really is), and how many of them fail: `.failures`."""

    class Attempts(list):
        failures = 0

    seen = Attempts()

    def restart(cluster):
        seen.append(cluster)
        if len(seen) <= seen.failures:
            raise DevStackError(f"Attempt {len(seen)} found no leader.", code="devstack.start")

    monkeypatch.setattr(KafkaCluster, "restart", restart)
    return seen


def test_cluster_that_does_not_form_is_started_anew_on_other_ports(attempts):
    attempts.failures = START_ATTEMPTS - 1
    with KafkaCluster.start(3) as cluster:
        assert cluster is attempts[-1]
        assert len(attempts) == START_ATTEMPTS
        assert not any(node.data_dir.exists() for failed in attempts[:-1] for node in failed.nodes)
        assert all(node.data_dir.exists() for node in cluster.nodes)
        ids = {node.cluster_id for started in attempts for node in started.nodes}
        assert len(ids) == START_ATTEMPTS, "all nodes of a cluster have its id, and each cluster has its own"


def test_last_failure_is_reported(attempts):
    attempts.failures = START_ATTEMPTS
    with pytest.raises(DevStackError, match=f"Attempt {START_ATTEMPTS} found no leader"):
        KafkaCluster.start(3)
    assert not any(node.data_dir.exists() for failed in attempts for node in failed.nodes)


def test_error_of_a_cluster_that_is_not_in_sync_says_which_brokers_have_ended(monkeypatch):
    monkeypatch.setattr("tests.devstack.kafka_cluster.START_S", 0.0)
    monkeypatch.setattr(KafkaCluster, "_is_in_sync", lambda cluster: False)
    with KafkaCluster(2, {}, 64) as cluster:
        cluster.nodes[0].log_path.write_text("no leader was elected")
        with pytest.raises(DevStackError) as caught:
            cluster.wait_until_in_sync()
    assert "All brokers have ended." in caught.value.message
    assert "Broker 1: no leader was elected" in caught.value.message
    assert "Broker 2: (no log)" in caught.value.message
