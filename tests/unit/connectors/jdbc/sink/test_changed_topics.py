"""What is said about a topic that has more partitions than at the last commit."""

from __future__ import annotations

import pytest

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.connectors.jdbc.sink.connector import JdbcSinkConnector

BASE = {"name": "n", "connector.class": "JdbcSink", "topics": "t", "connection.url": "jdbc:sqlite:/tmp/x.db"}
GROWN, RECREATED = TopicChange("t", 1, 3, False), TopicChange("t", 2, 2, True)


def notes(change: TopicChange, **config: str) -> list[str]:
    connector = JdbcSinkConnector()
    connector.config = {**BASE, **{key.replace("_", "."): value for key, value in config.items()}}
    return list(connector.notes_on_changes([change]))


@pytest.mark.parametrize(
    "config",
    [
        {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"},
        {"insert_mode": "update", "pk_mode": "record_value", "pk_fields": "id"},
        {"pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"},
    ],
)
def test_rows_that_later_records_change_depend_on_the_order_of_a_key(config: dict[str, str]) -> None:
    (note,) = notes(GROWN, **config)
    assert note.startswith(
        "Topic t has 3 partitions, and had 1 at the last commit. A key may now be in another partition"
    )
    assert notes(RECREATED, **config) == []


@pytest.mark.parametrize(
    "config", [{}, {"pk_mode": "record_key", "pk_fields": "id"}, {"pk_mode": "kafka", "insert_mode": "upsert"}]
)
def test_rows_that_nothing_changes_do_not(config: dict[str, str]) -> None:
    assert notes(GROWN, **config) == []


@pytest.mark.parametrize("insert_mode", ["upsert", "update", "insert"])
def test_rows_whose_keys_are_offsets_of_a_topic_that_is_gone_may_be_replaced(insert_mode: str) -> None:
    found = notes(RECREATED, pk_mode="kafka", insert_mode=insert_mode)
    assert len(found) == (0 if insert_mode == "insert" else 1)  # an insert is refused instead
    assert all("so its records replace rows of the old topic" in note for note in found)
