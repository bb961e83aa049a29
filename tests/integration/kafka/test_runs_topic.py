"""The runs topic on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.runs_topic import RunsTopic, decode_document, encode_document, ensure, read
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from tests.support.kafka_data import TopicProducer, add_partitions

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(kafka: KafkaBroker) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap}


@pytest.fixture
def admin(settings: dict[str, Any]) -> Admin:
    return admin_client(settings)


@pytest.fixture
def topic(admin: Admin, unique_name: str) -> RunsTopic:
    return ensure(admin, unique_name, 3, 1)


def write(settings: dict[str, Any], topic: RunsTopic, connector: str, records: list[Any]) -> None:
    writer = TransactionalWriter(settings, f"{topic.name}-{connector}")
    writer.fence()
    writer.commit([(topic.name, topic.partition_of(connector), key, value) for key, value in records])
    writer.close()


def test_ensure_creates_once_and_a_new_topic_is_readable_at_once(
    admin: Admin, settings: dict[str, Any], unique_name: str
) -> None:
    created = ensure(admin, unique_name, 3, 1)
    assert created == RunsTopic(unique_name, 3)
    assert read(admin, settings, created, "c") == {}
    assert ensure(admin, unique_name, 3, 1) == created


def test_ensure_by_two_first_runs_at_once_gives_both_the_same(settings: dict[str, Any], unique_name: str) -> None:
    results: list[RunsTopic] = []
    threads = [
        threading.Thread(target=lambda: results.append(ensure(admin_client(settings), unique_name, 3, 1)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [RunsTopic(unique_name, 3)] * 3


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_ensure_of_a_topic_that_forgets_is_refused(admin: Admin, make_topic: Callable[..., str], policy: str) -> None:
    name = make_topic(config={"cleanup.policy": policy})
    with pytest.raises(ConfigError, match=f"{name} has cleanup.policy={policy}"):
        ensure(admin, name, 1, 1)


def test_ensure_after_partitions_were_added_is_refused(
    kafka: KafkaBroker, settings: dict[str, Any], topic: RunsTopic
) -> None:
    add_partitions(kafka.bootstrap, topic.name, 5)
    with pytest.raises(ConfigError, match="has 5 partitions, but 3 are configured"):
        ensure(admin_client(settings), topic.name, 3, 1)


def test_ensure_with_too_many_replicas_says_so(admin: Admin, unique_name: str) -> None:
    with pytest.raises(ConfigError, match=f"Topic {unique_name} does not exist and cannot be created with 7 replicas"):
        ensure(admin, unique_name, 1, 7)


def test_document_of_three_megabytes_is_written_read_and_replaced(
    admin: Admin, settings: dict[str, Any], topic: RunsTopic
) -> None:
    large = {"files": [{"key": f'topics/"{i}"', "n": i} for i in range(90_000)]}
    records = encode_document("manifest", "c", large)
    assert len(records) > 3 and sum(len(value or b"") for _, value in records) > 3_000_000
    write(settings, topic, "c", records)
    held = read(admin, settings, topic, "c")
    assert decode_document("manifest", "c", held) == large

    write(settings, topic, "c", encode_document("manifest", "c", {"files": []}, present=held))
    held = read(admin, settings, topic, "c")
    assert decode_document("manifest", "c", held) == {"files": []}
    assert list(held) == ['["manifest","c",0]']

    write(settings, topic, "c", encode_document("manifest", "c", None, present=held))
    assert read(admin, settings, topic, "c") == {}


def test_read_sees_only_its_own_connector_in_a_shared_partition(
    admin: Admin, settings: dict[str, Any], produce: TopicProducer, unique_name: str
) -> None:
    shared = ensure(admin, unique_name, 1, 1)
    for connector in ("a", "a-b", 'a"b'):
        write(settings, shared, connector, encode_document("run", connector, {"of": connector}, name="1"))
    produce(unique_name, [(0, b"not json", b"x"), (0, b'["run"]', b"x"), (0, b"\xff", b"x")])
    for connector in ("a", "a-b", 'a"b'):
        held = read(admin, settings, shared, connector)
        assert len(held) == 1
        assert decode_document("run", connector, held, name="1") == {"of": connector}


def test_read_ignores_aborted_records(
    admin: Admin, settings: dict[str, Any], produce: TopicProducer, topic: RunsTopic
) -> None:
    write(settings, topic, "c", encode_document("manifest", "c", {"n": 1}))
    partition = topic.partition_of("c")
    aborted = [(partition, key, value) for key, value in encode_document("manifest", "c", {"n": 2})]
    produce.transaction(topic.name, aborted, "abort")
    assert decode_document("manifest", "c", read(admin, settings, topic, "c")) == {"n": 1}


def test_read_waits_for_a_strangers_open_transaction_and_misses_nothing_behind_it(
    admin: Admin, settings: dict[str, Any], produce: TopicProducer, unique_name: str
) -> None:
    shared = ensure(admin, unique_name, 1, 1)
    stranger = produce.transaction(unique_name, [(0, b'["run","other",0]', b"{}")], "open")
    # Committed, and yet above the last stable offset: a reader that stops there would miss this manifest.
    write(settings, shared, "mine", encode_document("manifest", "mine", {"open": True}))
    ending = threading.Timer(0.3, stranger.commit_transaction)
    ending.start()
    assert decode_document("manifest", "mine", read(admin, settings, shared, "mine")) == {"open": True}
    ending.join()


def test_read_behind_a_transaction_that_never_ends_gives_up_with_the_place(
    admin: Admin,
    settings: dict[str, Any],
    produce: TopicProducer,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compacted_topics, "OPEN_TRANSACTION_TIMEOUT_S", 0.3)
    shared = ensure(admin, unique_name, 1, 1)
    produce.transaction(unique_name, [(0, b"k", b"v")], "open")
    with pytest.raises(UnavailableError, match=f"{unique_name}-0 to offset 1 could not be read within"):
        read(admin, settings, shared, "mine")
