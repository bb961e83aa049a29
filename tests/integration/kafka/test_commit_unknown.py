"""A broker that keeps its connections and answers nothing: what a writer says, and that it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin.consumer_group import group_metadata, read_committed_offsets
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, latest_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.writing import transaction_steps, transactions
from airflow_connect.kafka.writing.transactions import CommitUnknownError, TransactionalWriter
from tests.support.kafka_data import create_topic
from tests.support.processes.proc import freeze as freeze_process
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own_broker() -> Iterator[KafkaBroker]:
    """A broker that may be frozen.

    Its own controller does not take it for dead meanwhile: what happens when coordinators move is shown elsewhere
    (`test_cluster.py`), and a broker that moves them in the middle of a commit may keep offsets open for good.
    """
    with KafkaBroker.start(properties={"broker.session.timeout.ms": "60000"}) as own:
        yield own


@pytest.fixture
def broker(own_broker: KafkaBroker, unique_name: str) -> Iterator[KafkaBroker]:
    """The same, with a topic; it goes on when the test is over."""
    create_topic(own_broker.bootstrap, unique_name)
    yield own_broker
    wake(own_broker)


def fenced_writer(broker: KafkaBroker, name: str) -> TransactionalWriter:
    writer = TransactionalWriter({"bootstrap.servers": broker.bootstrap}, name, transaction_timeout_ms=5000)
    writer.fence()
    return writer


def next_writer(broker: KafkaBroker, name: str) -> TransactionalWriter:
    """The writer of the next run. The broker may answer once, and not again until its controller lets it."""
    found: list[TransactionalWriter] = []

    def is_fenced() -> bool:
        try:
            found.append(fenced_writer(broker, name))
        except UnavailableError:
            return False
        return True

    wait_until(is_fenced, "a writer to be fenced", 90)
    return found[0]


def wake(broker: KafkaBroker) -> None:
    """Let it go on. After so long its own controller has to let it in again, which takes some seconds."""

    def answers() -> bool:
        try:
            admin_client({"bootstrap.servers": broker.bootstrap})
        except UnavailableError:
            return False
        return True

    os.kill(broker.pid, signal.SIGCONT)
    wait_until(answers, "the broker answers again", 60)


def freeze_before(broker: KafkaBroker, writer: TransactionalWriter, step: str, patch: pytest.MonkeyPatch) -> None:
    """The broker stops answering when the writer comes to one of its steps."""
    go_on = getattr(writer, step)

    def freeze(*arguments: object) -> None:
        freeze_process(broker.pid)
        go_on(*arguments)

    patch.setattr(writer, step, freeze)


def test_commit_that_is_not_answered_is_unknown_until_the_state_is_read(
    broker: KafkaBroker, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, tp = {"bootstrap.servers": broker.bootstrap}, TopicPartition(unique_name, 0)
    group, writer = group_metadata(unique_name, settings), fenced_writer(broker, unique_name)
    monkeypatch.setattr(transactions, "API_TIMEOUT_S", 2.0)
    monkeypatch.setattr(transaction_steps, "CLOSE_TIMEOUT_S", 0.5)
    freeze_before(broker, writer, "_commit", monkeypatch)
    with pytest.raises(CommitUnknownError, match="did not confirm a transaction of") as raised:
        writer.commit([(unique_name, 0, b"k", b"v")], {tp: 17}, group)
    writer.close()
    monkeypatch.undo()
    wake(broker)

    successor = next_writer(broker, unique_name)
    successor.commit([(unique_name, 0, b"k", b"after")])
    successor.close()
    # A commit is confirmed before its markers are written; the next writer is fenced in after that.
    fenced_writer(broker, unique_name).close()
    admin = admin_client(settings)
    end = latest_offsets(admin, [tp], READ_COMMITTED)[tp]
    batches = RangeReader(settings, [OffsetRange(*tp, 0, end)]).columns()
    values = [value for batch in batches for value in batch.values.to_pylist()]
    offsets = read_committed_offsets(admin, unique_name, [tp])
    group.close()

    assert raised.value.retriable
    assert (values, offsets) in (([b"v", b"after"], {tp: 17}), ([b"after"], {}))


def test_writer_whose_abort_is_not_answered_can_still_be_closed(
    broker: KafkaBroker, unique_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client would abort the open transaction first, however long that takes."""
    writer = fenced_writer(broker, unique_name)
    group = group_metadata(unique_name, {"bootstrap.servers": broker.bootstrap})
    monkeypatch.setattr(transactions, "API_TIMEOUT_S", 1.0)
    monkeypatch.setattr(transaction_steps, "CLOSE_TIMEOUT_S", 0.5)
    freeze_before(broker, writer, "_send_offsets", monkeypatch)
    with pytest.raises(UnavailableError, match=f"offsets of group {unique_name}"):
        writer.commit([(unique_name, 0, b"k", b"v")], {TopicPartition(unique_name, 0): 17}, group)
    writer.close()
    group.close()

    assert f"Kafka did not answer while the producer of {unique_name} was closed." in caplog.messages
