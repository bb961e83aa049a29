"""A commit that nobody confirms: neither "done" nor "nothing happened" may be said of it."""

from __future__ import annotations

import os
import signal

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.batch_reader import RangeReader
from airflow_connect.kafka.clients import admin_client
from airflow_connect.kafka.consumer_group import group_metadata, read_committed_offsets
from airflow_connect.kafka.transactions import CommitUnknownError, TransactionalWriter
from airflow_connect.kafka.watermarks import READ_COMMITTED, latest_offsets
from tests.support.kafka_data import create_topic

pytestmark = pytest.mark.integration


def test_commit_to_a_broker_that_stops_answering_is_unknown_until_the_state_is_read(
    unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KafkaBroker.start() as broker:
        settings = {"bootstrap.servers": broker.bootstrap}
        create_topic(broker.bootstrap, unique_name)
        tp = TopicPartition(unique_name, 0)
        group = group_metadata(unique_name, settings)
        writer = TransactionalWriter(settings, unique_name, transaction_timeout_ms=2000)
        writer.fence()
        send_commit = writer._commit

        def freeze_first(deadline: float) -> None:
            os.kill(broker.pid, signal.SIGSTOP)
            send_commit(deadline)

        monkeypatch.setattr(writer, "_commit", freeze_first)
        with pytest.raises(CommitUnknownError, match="did not confirm a transaction of") as raised:
            writer.commit([(unique_name, 0, b"k", b"v")], {tp: 17}, group)
        os.kill(broker.pid, signal.SIGCONT)

        successor = TransactionalWriter(settings, unique_name)
        successor.fence()
        successor.commit([(unique_name, 0, b"k", b"after")], {}, None)
        admin = admin_client(settings)
        end = latest_offsets(admin, [tp], READ_COMMITTED)[tp]
        batches = RangeReader(settings, [OffsetRange(*tp, 0, end)]).columns()
        values = [value for batch in batches for value in batch.values.to_pylist()]
        offsets = read_committed_offsets(admin, unique_name, [tp])
        for client in (writer, successor, group):
            client.close()

    assert raised.value.retriable
    assert (values, offsets) in (([b"v", b"after"], {tp: 17}), ([b"after"], {}))
