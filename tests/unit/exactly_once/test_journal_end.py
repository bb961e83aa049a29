"""`KafkaJournal.tell_end` never writes after a write whose outcome is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.exactly_once.kafka_journal import JournalClients, KafkaJournal
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.kafka.state.runs_topic import RunsTopic
from airflow_connect.kafka.writing.transaction_steps import CommitUnknownError

END = {"run_id": "20260101T000000-000000", "status": "failed", "started_ms": 0, "ended_ms": 1}


class Writer:
    """A transactional producer whose next commit may fail."""

    def __init__(self) -> None:
        self.written: list[list[Any]] = []
        self.fails = False

    def fence(self) -> None:
        """There is no other."""

    def commit(self, records: list[Any], *_: Any) -> None:
        self.written.append(records)
        if self.fails:
            raise CommitUnknownError("Kafka did not confirm a transaction.")


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def journal(writer: Writer) -> KafkaJournal:
    clients: Any = JournalClients(None, {}, writer, RunsTopic("connect-runs", 1), None)  # type: ignore[arg-type]
    return KafkaJournal("orders", clients)


def test_end_is_written_after_the_fence(journal: KafkaJournal, writer: Writer) -> None:
    journal.tell_end(END)
    assert writer.written == []
    journal.fence()
    journal.tell_end(END)
    assert len(writer.written) == 1


def test_nothing_is_written_after_a_write_of_unknown_outcome(journal: KafkaJournal, writer: Writer) -> None:
    journal.fence()
    writer.fails = True
    with pytest.raises(CommitUnknownError):
        journal.begin(ConnectorState("orders", "run", "copying", 0))
    writer.fails = False
    journal.tell_end(END)
    assert len(writer.written) == 1
