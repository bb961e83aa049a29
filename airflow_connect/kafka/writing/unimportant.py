"""Records whose loss does no harm: sent without waiting, by a producer that never delays or fails a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message

from airflow_connect.errors import ConnectError
from airflow_connect.kafka.clients.short_lived import QuickProducer, producer
from airflow_connect.kafka.writing import transaction_steps

if TYPE_CHECKING:
    from airflow_connect.kafka.writing.transactions import OutgoingRecord

TIMEOUT_MS = 10_000
"""A record that Kafka has not taken by then is given up."""


class UnimportantWriter:
    """Sends records outside any transaction, the newest one only: it sends nothing while a record is on its way."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Opens nothing. `settings`: librdkafka settings of a producer."""
        self._settings = {key: value for key, value in settings.items() if key not in transaction_steps.DECIDED}
        self._producer: QuickProducer | None = None
        self._problem = ""

    def send(self, record: OutgoingRecord) -> str:
        """Queue a record, unless one is still queued; returns at once.

        Returns:
            Why the last one was not delivered, or this one cannot be sent; or "".
        """
        try:
            if self._producer is None:
                own = {"acks": "1", "enable.idempotence": False, "message.timeout.ms": TIMEOUT_MS}
                self._producer = producer({**self._settings, **own}, linger_ms=0)
            self._producer.poll(0)
            if len(self._producer) == 0 and not self._problem:
                topic, partition, key, value = record
                self._producer.produce(topic, value, key, partition, on_delivery=self._delivered)
        except (ConnectError, KafkaException, BufferError) as error:
            self._problem = str(error)
        return self._problem

    def close(self) -> None:
        """Release the connections; what is still queued is discarded."""
        if self._producer is not None:
            transaction_steps.close(self._producer, "progress")
            self._producer = None

    def _delivered(self, error: KafkaError | None, _message: Message[Any, Any]) -> None:
        if error is not None:
            self._problem = error.str()
