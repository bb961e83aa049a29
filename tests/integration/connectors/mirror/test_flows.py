"""The flows of a MirrorMaker 2 properties file, run once between two real clusters."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.mirror.flows.maker_config import connectors_of
from airflow_connect.connectors.mirror.protocol.records import Heartbeat
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.java.properties_file import parse_properties
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.integration.connectors.mirror.conftest import commit, committed, records_of
from tests.support.kafka_data import create_topic, every_record, produce

pytestmark = pytest.mark.integration


# It may be the one that starts the broker.
@pytest.mark.budget(25)
def test_round_copies_records_heartbeats_and_groups(
    own_kafka: KafkaBroker, kafka: KafkaBroker, unique_name: str
) -> None:
    west, east, topic, group = own_kafka.bootstrap, kafka.bootstrap, unique_name, f"app-{unique_name}"
    # Names of clusters are part of the names of topics, so each test has its own.
    w, e = f"w{unique_name}".replace(".", ""), f"e{unique_name}".replace(".", "")
    file = f"""
        clusters = {w}, {e}
        {w}.bootstrap.servers = {west}
        {e}.bootstrap.servers = {east}
        topics = {topic}
        groups = {group}
        replication.factor = 1
        offset-syncs.topic.replication.factor = 1
        checkpoints.topic.replication.factor = 1
        heartbeats.topic.replication.factor = 1
        offset.storage.replication.factor = 1
        offset.storage.partitions = 1
        config.storage.replication.factor = 1
        sync.group.offsets.enabled = true
        {w}->{e}.enabled = true
    """

    def round_() -> list[RunReport]:
        found = connectors_of(parse_properties(file), "mm2.properties")
        reports = [run_here(RunSpec(one.config, one.worker))[0] for one in found]
        assert [report.error for report in reports] == [None] * 4
        return reports

    create_topic(west, topic, 2)
    produce(west, topic, [(n % 2, str(n), str(n), 1000 + n) for n in range(10)])
    commit(west, group, topic, {0: 3, 1: 5})
    first = round_()
    produce(west, topic, [(n % 2, str(n), str(n), 1000 + n) for n in range(4)])
    second = round_()

    # Heartbeats are written both ways. Those in the source cluster are copied with the records of the same round.
    assert [report.records for report in first] == [1, 1, 11, 2]
    # The group was at the end of partition 1. Its copy of what came then is after the marker of a transaction.
    assert [report.records for report in second] == [1, 1, 5, 1]
    assert records_of(east, f"{w}.{topic}") == records_of(west, topic)
    assert committed(east, group, f"{w}.{topic}") == {0: (3, ""), 1: (6, "")}
    beats = [key for key, _ in every_record(east, f"{w}.heartbeats")]
    assert beats.count(Heartbeat(e, w, 0).key()) == 2
