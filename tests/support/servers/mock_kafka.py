"""librdkafka's mock cluster: brokers that answer with the error that a test wants, or not at all."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import TracebackType

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from airflow_connect.kafka.clients.short_lived import QUICK

_HANDLE_AT = 16
_PRODUCE = 0
_LIST_OFFSETS = 2


class MockKafka:
    """Brokers inside this process."""

    def __init__(self, brokers: int = 1) -> None:
        """They live as long as the object."""
        self._owner = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": brokers, "log_level": 0})
        lines = Path("/proc/self/maps").read_text().splitlines()
        (path,) = {line.split(maxsplit=5)[5] for line in lines if "/librdkafka" in line}
        self._library = ctypes.CDLL(path)
        self._library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        self._library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        handle = ctypes.c_void_p.from_address(id(self._owner) + _HANDLE_AT)
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_handle_mock_cluster(handle))
        self.bootstrap: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def answer_produce(self, *codes: int) -> None:
        """The next produce requests get these errors, one each; 0: none. Nothing is written then."""
        self._answer(_PRODUCE, codes)

    def answer_list_offsets(self, *codes: int) -> None:
        """The next requests for offsets get these errors, one each; 0: none."""
        self._answer(_LIST_OFFSETS, codes)

    def _answer(self, request: int, codes: tuple[int, ...]) -> None:
        kind = ctypes.c_int16(request)
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, kind)
        errors, count = (ctypes.c_int * len(codes))(*codes), ctypes.c_size_t(len(codes))
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, kind, count, errors)

    def create(self, topic: str, partitions: int = 1) -> None:
        """A topic with one copy of each partition."""
        self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Let a broker lead a partition; they are numbered from 1."""
        self._library.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)

    def stop(self, broker: int) -> None:
        """End a broker, which stays in the metadata."""
        self._library.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def values(self, topic: str) -> list[bytes | None]:
        """What the log of a topic holds."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "g", "enable.auto.commit": False,
             "enable.partition.eof": True, "isolation.level": "read_uncommitted", "fetch.wait.max.ms": 10, **QUICK}
        )  # fmt: skip
        found: list[bytes | None] = []
        try:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            while (message := consumer.poll(30)) is not None:
                error = message.error()
                if error is None:
                    found.append(message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
            raise TimeoutError(f"The mock cluster did not give {topic} within 30 s.")
        finally:
            consumer.close()

    def __enter__(self) -> MockKafka:
        """It is there already."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End it."""
        self._owner.close()
