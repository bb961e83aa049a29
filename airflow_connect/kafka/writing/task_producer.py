"""The producer of one source task: many records, with or without transactions, fast and with bounded memory.

How each step handles librdkafka's errors: transaction_steps.py. After any failure, the producer is not used again. The
next attempt of the task begins with `init_transactions`, which ends what this one left open, and then reads its
offsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConnectError, FencedError, UnavailableError
from airflow_connect.kafka.clients.librdkafka import NotDirectError
from airflow_connect.kafka.clients.short_lived import (
    API_TIMEOUT_S,
    NO_TOPIC,
    QuickProducer,
    earlier_fatal_error,
    ensure_reachable,
    producer,
    translate,
)
from airflow_connect.kafka.writing import transaction_steps
from airflow_connect.kafka.writing.direct_produce import CHUNK, DirectProduce, direct_produce
from airflow_connect.kafka.writing.missing_topics import TopicWatch, what_is_missing
from airflow_connect.kafka.writing.produced import (
    ProducedColumns,
    ProducedRecord,
    columns_of,
    first_odd_name,
    header_bytes,
    header_pairs,
    odd_name,
    value_bytes,
)
from airflow_connect.kafka.writing.refused_records import (
    LARGEST_MESSAGE_BYTES,
    PURGED,
    RECORD_AT_FAULT,
    Delivered,
    Refused,
    ReturnedRecord,
    is_more_specific,
    record_refusal,
    refusal,
    unwritable_name,
)
from airflow_connect.kafka.writing.transactions import ANY_PARTITION

QUEUE_KILOBYTES = 64 * 1024
QUEUE_MESSAGES = 500_000
_UNKNOWN = "The next attempt reads the offsets from Kafka and resumes from what was committed."
_DECIDED = transaction_steps.DECIDED | {"partitioner"}
MOST_RETURNED = 1_000
"""Maximum number of refused records that are kept before each is sent again alone."""


class TaskProducer:
    """Writes the records of one task.

    Args:
        settings: librdkafka settings, including the connector's overrides.
        transactional_id: `<group.id>-<connector>-<task>`; "": no transactions.
        timeout_ms: time after which the cluster ends an open transaction by itself.
        tells_deliveries: whether `send` may get a function that is called when a record was delivered.
        keeps_first: whether `first` is kept.

    Attributes:
        first: offset of the first record of the transaction in each partition, as far as Kafka has confirmed them.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        transactional_id: str,
        timeout_ms: int,
        *,
        tells_deliveries: bool = False,
        keeps_first: bool = False,
    ) -> None:
        own = {key: value for key, value in settings.items() if key not in _DECIDED}
        own.setdefault("queue.buffering.max.kbytes", QUEUE_KILOBYTES)
        own.setdefault("queue.buffering.max.messages", QUEUE_MESSAGES)
        own.setdefault("message.max.bytes", LARGEST_MESSAGE_BYTES)
        own |= {"acks": "all", "enable.idempotence": True, "partitioner": "murmur2_random"}
        own |= {"delivery.report.only.error": not (tells_deliveries or keeps_first), "on_delivery": self._refused}
        if transactional_id:
            own |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        else:
            own.pop("transaction.timeout.ms", None)
        self.transactional_id = transactional_id
        self._timeout_s = timeout_ms / 1000
        self.first: dict[TopicPartition, int] = {}
        self._problem: KafkaError | None = None
        self._returned: list[ReturnedRecord] = []
        self._topics: dict[str, int] = {}  # with the highest partition that was asked for
        self._deadline = 0.0
        self._in_transaction = False
        self._queue_messages = int(own["queue.buffering.max.messages"])
        self._queue_bytes = int(own["queue.buffering.max.kbytes"]) * 1024
        self._bytes_per_record = 1.0
        self._producer: QuickProducer = producer(own)
        # Reported deliveries fill the queue until the client is polled, so records are then sent one by one.
        is_open = not tells_deliveries or keeps_first
        self._direct, self._not_direct = self._opened_direct() if is_open else (None, "")
        if self._direct is not None and keeps_first:
            self._direct.first = self.first
        self._is_direct = False
        self._took_slow_path = False

    def _opened_direct(self) -> tuple[DirectProduce | None, str]:
        """The fast path for columns, or why there is none."""
        try:
            return direct_produce(self._producer), ""
        except NotDirectError as error:
            return None, str(error)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the report of the run."""
        slow = f"Columns were sent to Kafka record by record, which is slower: {self._not_direct}."
        return (slow,) if self._took_slow_path and self._not_direct else ()

    def fence(self) -> None:
        """Fence every older producer with the same id, including an earlier attempt of this task.

        Raises:
            UnavailableError, AccessError: Kafka did not allow it.
        """
        if self.transactional_id:
            transaction_steps.fence_older(self._producer, f"fencing older tasks of {self.transactional_id}")
        else:
            ensure_reachable(self._producer)

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Enqueue a record; begins a transaction if there is none. Waits while the queue is full.

        Args:
            delivered: called by a later method of this object when the record is in Kafka.
            refused: called by this or a later method if Kafka refuses this record; its exceptions are raised there.
                None: such a record fails the following calls, as it always does in a transaction.

        Raises:
            FencedError: a newer producer of the same id has taken over.
            UnavailableError: an earlier record could not be written.
            ConfigError: the record is too large.
            DataError: Kafka refused this or an earlier record because of its content.
        """
        self.begin()
        name = odd_name(record.headers)
        if name is not None:
            self._send_below(record, name, delivered)
            return
        self._switch_to_client()
        self._write_to(record.topic, record.partition)
        if self.transactional_id:
            refused = None
        if len(self._returned) >= MOST_RETURNED:
            self.flush()
        self._produce(record, self._telling(record, delivered, refused), refused)

    def _send_below(self, record: ProducedRecord, name: str, delivered: Delivered | None) -> None:
        """Send a record that the Python client cannot write, as a column."""
        if self._direct is None or delivered is not None:
            raise unwritable_name(record.topic, name, self._not_direct or "deliveries are reported one by one")
        self._send_chunk(columns_of(record))

    def _produce(self, record: ProducedRecord, on_delivery: Any, refused: Refused | None) -> None:
        more: dict[str, Any] = {} if on_delivery is None else {"on_delivery": on_delivery}
        if record.headers:
            more["headers"] = list(record.headers)
        if record.timestamp is not None:
            more["timestamp"] = record.timestamp
        partition = ANY_PARTITION if record.partition is None else record.partition
        doing = f"writing to topic {record.topic}"
        while True:
            try:
                self._producer.produce(record.topic, record.value, record.key, partition, **more)
                return
            except BufferError:
                self._make_room()
            except KafkaException as error:
                problem = error.args[0]
                if refused is None or problem.code() not in RECORD_AT_FAULT:
                    raise self._failed(error, doing) from error
                refused(record_refusal(problem, doing))
                return

    def send_columns(self, columns: ProducedColumns) -> int:
        """Enqueue many records of one topic, keeping nulls; returns their size in bytes.

        Args:
            columns: the records.

        Raises:
            ConnectError: as `send`.
        """
        self.begin()
        self._write_to(columns.topic, columns.partition)
        return sum(self._send_chunk(columns.slice(start, CHUNK)) for start in range(0, len(columns.values), CHUNK))

    def _send_chunk(self, columns: ProducedColumns) -> int:
        topic, keys, values = columns.topic, columns.keys, columns.values
        size = value_bytes(values) + (0 if keys is None else value_bytes(keys))
        with_headers = size + (0 if columns.headers is None else header_bytes(columns.headers))
        if self._direct is None or with_headers > self._queue_bytes // 4 or len(values) > self._queue_messages // 4:
            return self._send_each(columns)
        self._switch_to_direct()
        self._bytes_per_record = max(1.0, with_headers / max(1, len(values)))
        self._wait_for_room(len(values), with_headers)
        if columns.partition is None and columns.timestamps is None and columns.headers is None:
            taken = self._direct.send(topic, keys, values)
        else:
            taken = self._direct.send_placed(
                topic, keys, values, columns.partition, columns.timestamps, columns.headers
            )
        if taken < len(values):
            # Later ones may have been accepted: the order is lost, and only a new attempt restores it.
            self._await_report()
            self._refuse_problem()
            reason = self._direct.refusal
            # A partition that the client knows not to exist is refused at once, without a report.
            if reason is not None and reason.code() in RECORD_AT_FAULT | NO_TOPIC:
                refused = KafkaException(reason)
                raise self._failed(refused, f"writing to topic {topic}") from refused
            raise UnavailableError(
                f"Kafka's client accepted {taken} of {len(values)} records for topic {topic}. None of them was"
                f" committed.",
                suggestion="Another attempt resumes from the last commit.",
            )
        return size

    def _wait_for_room(self, count: int, size: int) -> None:
        """Wait until a chunk fits into half of the queue along with what is in it."""
        deadline = time.monotonic() + max(self._timeout_s, API_TIMEOUT_S)
        watch = TopicWatch(self._producer)
        self._serve(0)
        while True:
            self._refuse_problem()
            watch.refuse_missing(self._topics)
            waiting = len(self._producer)
            full = waiting + count > self._queue_messages // 2
            if not full and waiting * self._bytes_per_record + size <= self._queue_bytes // 2:
                return
            if time.monotonic() >= deadline:
                raise UnavailableError(
                    f"Kafka did not accept {waiting} records of a task in time. None of them was committed.",
                    suggestion="Run again when the cluster is healthy.",
                )
            self._serve(0.005)

    def _switch_to_direct(self) -> None:
        """From now on `DirectProduce` reads delivery reports; all reports of earlier records have arrived."""
        if not self._is_direct and len(self._producer):
            self.flush()
        self._is_direct = True

    def _switch_to_client(self) -> None:
        """From now on the Python client reads delivery reports; all reports of earlier records have arrived."""
        # In a transaction, too: the Python client drops reports of records that it has not sent, and with them the
        # reason why a transaction has failed.
        if self._is_direct:
            self.flush()
        self._is_direct = False

    def _serve(self, timeout_s: float) -> None:
        """Process what Kafka has confirmed and refused, waiting for the first report."""
        if not self._is_direct or self._direct is None:
            self._call_client(lambda: self._producer.poll(timeout_s))
        elif problem := self._direct.serve(timeout_s):
            self._refused(problem, None)

    def _send_each(self, columns: ProducedColumns) -> int:
        name = None if columns.headers is None else first_odd_name(columns.headers)
        if name is not None:
            half = len(columns.values) // 2
            if self._direct is None or not half:
                raise unwritable_name(columns.topic, name, self._not_direct or "the record is too large")
            parts = columns.slice(0, half), columns.slice(half, len(columns.values) - half)
            return sum(self._send_chunk(part) for part in parts)
        self._switch_to_client()
        self._took_slow_path = True
        produce, size, topic = self._producer.produce, 0, columns.topic
        values = columns.values.to_pylist()
        keys = columns.keys.to_pylist() if columns.keys is not None else [None] * len(values)
        partition = ANY_PARTITION if columns.partition is None else columns.partition
        # The client takes 0 as the current time.
        stamps: list[Any] = columns.timestamps.to_pylist() if columns.timestamps is not None else [0] * len(values)
        headers: Any = repeat(None)
        if columns.headers is not None:
            headers = [header_pairs(one or ()) for one in columns.headers.to_pylist()]
        for key, value, stamp, pairs in zip(keys, values, stamps, headers):  # noqa: B905 (headers may be endless)
            size += len(value or b"") + len(key or b"")
            while True:
                try:
                    produce(topic, value, key, partition, timestamp=stamp, headers=pairs)
                    break
                except BufferError:
                    self._make_room()
                except KafkaException as error:
                    raise self._failed(error, f"writing to topic {topic}") from error
        return size

    def begin(self) -> None:
        """Begin a transaction, unless one is open or transactions are not used."""
        if self._in_transaction or not self.transactional_id:
            return
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._failed(error, "beginning a transaction") from error
        self._in_transaction = True
        self.first.clear()
        self._deadline = time.monotonic() + self._timeout_s

    def flush(self) -> None:
        """Wait until everything sent is in Kafka, or was refused and may be skipped.

        Raises:
            UnavailableError: it is not, or this is unknown.
            DataError: Kafka refused a record because of its content.
        """
        self._wait_for_all()
        while self._returned:
            returned, self._returned = self._returned, []
            for one in returned:
                self._send_alone(one)

    def _send_alone(self, returned: ReturnedRecord) -> None:
        """Send a record again that was refused with its batch. If it is refused alone, its content is the reason."""
        record, delivered, refused = returned
        answers: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message[Any, Any]) -> None:
            if error is None:
                if delivered is not None:
                    delivered(message)
            elif error.code() in RECORD_AT_FAULT:
                answers.append(error)
            else:
                self._refused(error, message)

        self._produce(record, on_delivery, refused)
        self._wait_for_all()
        if answers:
            refused(record_refusal(answers[0], f"writing to topic {record.topic}"))

    def _wait_for_all(self) -> None:
        deadline = time.monotonic() + max(self._timeout_s, API_TIMEOUT_S)
        watch = TopicWatch(self._producer)
        while self._is_waiting():
            self._refuse_problem()
            watch.refuse_missing(self._topics)
            if time.monotonic() >= deadline:
                raise UnavailableError(
                    f"Kafka did not accept {len(self._producer)} records of a task in time.",
                    suggestion="No offset beyond what Kafka has confirmed was committed. Run again.",
                )
        self._refuse_problem()

    def _is_waiting(self) -> bool:
        """Wait a moment for records in flight; returns whether there still are any."""
        if not self._is_direct:
            return self._call_client(lambda: self._producer.flush(1.0)) > 0
        if len(self._producer):
            self._serve(1.0)
        return len(self._producer) > 0

    def _call_client(self, call: Callable[[], int]) -> int:
        """Call the client where it reports deliveries, which raises a fatal error."""
        try:
            return call()
        except KafkaException as error:
            raise self._failed(error, "writing the records of a task") from error

    def commit(self) -> None:
        """End the transaction: everything sent since `begin` becomes visible, all or nothing.

        Raises:
            FencedError: a newer producer of the same id has taken over, or the transaction was open for too long.
            CommitUnknownError: the commit was sent, but its outcome is unknown.
            UnavailableError: nothing was committed.
        """
        watch = TopicWatch(self._producer)
        while self._problem is None and time.monotonic() < self._deadline and self._is_waiting():
            watch.refuse_missing(self._topics)
        refused = transaction_steps.commit(self._producer, self.transactional_id, self._deadline, _UNKNOWN)
        if refused is not None:
            raise self._failed(refused, f"committing a transaction of {self.transactional_id}") from refused
        self._in_transaction = self._is_direct = False
        self._topics.clear()

    def abort(self) -> None:
        """Discard everything sent since `begin`.

        Raises:
            FencedError, UnavailableError: as above; nothing was committed.
        """
        if not self._in_transaction:
            return
        try:
            # Empty the queue first: librdkafka 2.16 may purge messages of the next transaction along with it.
            self._producer.flush(self._timeout_s)
            self._producer.abort_transaction(API_TIMEOUT_S)
        except KafkaException as error:
            raise self._failed(error, f"aborting a transaction of {self.transactional_id}") from error
        self._in_transaction = self._is_direct = False
        self._problem = None

    def close(self) -> None:
        """Release the connections; records outside a committed transaction are discarded. Waits `CLOSE_TIMEOUT_S`."""
        if self._direct is not None:
            self._direct.close()
        transaction_steps.close(self._producer, self.transactional_id or "a task")

    def _write_to(self, topic: str, partition: int | None) -> None:
        self._topics[topic] = max(self._topics.get(topic, 0), partition or 0)

    def _make_room(self) -> None:
        self._serve(0.05)
        self._refuse_problem()

    def _refused(self, error: KafkaError | None, message: Message[Any, Any] | None) -> None:
        if error is None and message is not None:  # a delivery
            self.first.setdefault(TopicPartition(str(message.topic()), message.partition() or 0), message.offset() or 0)
        if error is not None and is_more_specific(error, self._problem):
            self._problem = error

    def _telling(
        self, record: ProducedRecord, delivered: Delivered | None, refused: Refused | None
    ) -> Callable[[KafkaError | None, Message[Any, Any]], None] | None:
        """The callback for a delivery; None: only a refusal is reported, and it ends the task."""
        if delivered is None and refused is None:
            return None

        def tell(error: KafkaError | None, message: Message[Any, Any]) -> None:
            if error is None:
                self._refused(None, message)
                if delivered is not None:
                    delivered(message)
            elif refused is not None and error.code() in RECORD_AT_FAULT:
                self._returned.append(ReturnedRecord(record, delivered, refused))
            else:
                self._refused(error, message)

        return tell

    def _refuse_problem(self) -> None:
        if self._problem is not None:
            self._await_report()
            problem = KafkaException(self._problem)
            raise self._failed(problem, "writing the records of a task") from problem

    def _await_report(self) -> None:
        def is_known() -> bool:
            return self._problem is not None and self._problem.code() not in PURGED

        transaction_steps.await_report(self._producer, is_known, self._serve)

    def _failed(self, error: KafkaException, doing: str) -> ConnectError:
        """Our error; if the client's error is less specific than that of the first refused record, the latter's."""
        if transaction_steps.has_failed(error):
            self._await_report()
        if self._in_transaction:
            error = transaction_steps.reason_of(self._producer, error)
        problem = self._problem if self._problem and self._problem.code() not in PURGED else None
        fatal = earlier_fatal_error(self._producer, error)
        ours = refusal(fatal.args[0], doing) if isinstance(fatal.args[0], KafkaError) else translate(fatal, doing)
        if problem is not None and not isinstance(ours, FencedError):
            ours = refusal(problem, doing)
        if ours.code == "kafka.no_topic":
            return what_is_missing(self._producer, self._topics, doing) or ours
        if isinstance(ours, UnavailableError):
            return type(ours)(f"{ours.message} Nothing was committed.", code=ours.code, suggestion=ours.suggestion)
        return ours
