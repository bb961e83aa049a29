"""Entries of lists of topics that have no effect, because transformations give records other names."""

from __future__ import annotations

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_state import CopiedRun
from airflow_connect.connectors.search.config import SearchSinkConfig
from airflow_connect.connectors.search.connector import ElasticsearchSinkConnector
from airflow_connect.connectors.search.topic_lists import MOST_NAMES, RENAMED, notes_on_lists
from airflow_connect.documents.run import PartitionReport


def notes(key: str, entries: str, **renamed: list[str]) -> list[str]:
    config = {"name": "n", "connector.class": "ElasticsearchSinkConnector", "topics": ",".join(renamed)}
    config |= {"connection.url": "http://search:9200", key: entries}
    reports = [
        PartitionReport(OffsetRange(topic, 0, 0, 5), 5, 5, 5, 5, details={RENAMED: names})
        for topic, names in renamed.items()
    ]
    return list(notes_on_lists(CopiedRun(None, reports=reports), SearchSinkConfig.from_config(config)))  # type: ignore[arg-type]


def test_topic_that_a_transformation_renames_is_named() -> None:
    """Its ids were keys: 20 records became 10 documents."""
    for key in ("topic.key.ignore", "topic.schema.ignore"):
        (note,) = notes(key, "orders", orders=["shop-orders"])
        assert note.startswith(
            f"{key} has orders, which has no effect: transformations give its records the topic shop"
        )


def test_entry_that_has_an_effect_or_may_have_one_is_not() -> None:
    assert notes("topic.key.ignore", "orders", orders=["orders"]) == []
    assert notes("topic.key.ignore", "orders", orders=["a", "orders"]) == []
    assert notes("topic.key.ignore", "orders", orders=["a"], other=["orders"]) == []
    assert notes("topic.key.ignore", "shop-orders", orders=["shop-orders"]) == []
    assert notes("topic.key.ignore", "orders", orders=[]) == []
    assert notes("topic.key.ignore", "orders", orders=[f"u{n}" for n in range(MOST_NAMES)]) == []
    assert notes("topic.key.ignore", "orders,shop-orders", orders=["shop-orders"]) == []


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (
            {"topic.key.ignore": "t, ordres", "topic.schema.ignore": "x"},
            ["topic.key.ignore has ordres", "topic.schema"],
        ),
        ({"topic.key.ignore": "t"}, []),
        ({"topic.key.ignore": "ordres", "transforms": "r", "transforms.r.type": "org.x.R"}, []),
        ({"topic.key.ignore": "ordres", "topics": "", "topics.regex": "t.*"}, []),
    ],
    ids=["unknown", "known", "may be renamed", "pattern"],
)
def test_entry_that_no_topic_has_is_named(config: dict[str, str], named: list[str]) -> None:
    """A misspelt name had no effect, without a word."""
    base = {"name": "n", "connector.class": "ElasticsearchSinkConnector", "connection.url": "http://search:9200"}
    found = ElasticsearchSinkConnector.notes_on_config({**base, "topics": "t", **config})
    assert len(found) == len(named) and all(map(str.startswith, found, named))
