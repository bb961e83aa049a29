"""Names that topics can have behind transformations, and the keys that a sweep recognises by them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.transform import Transformation
from airflow_connect.config.resolved.sink import SinkConnectorConfig
from airflow_connect.connectors.files.s3.connector import S3SinkConnector
from airflow_connect.connectors.files.shared.publishing.topic_names import final_topics
from tests.support.copies.started_sinks import sink_of

CONNECTOR = {
    "name": "n", "connector.class": "S3SinkConnector", "topics": "a,b,c", "s3.bucket.name": "bucket",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage", "format.class": "JsonFormat", "flush.size": "1",
}  # fmt: skip


class Renaming(Transformation):
    """May give any topic."""

    def apply(self, record: Any) -> Any:
        """Unchanged."""
        return record


class Keeping(Renaming):
    """Says that it does not."""

    renames_topics = False


def regex(alias: str, pattern: str, replacement: str, **more: str) -> dict[str, str]:
    keys = {"type": "RegexRouter", "regex": pattern, "replacement": replacement, **more}
    return {f"transforms.{alias}.{key}": value for key, value in keys.items()}


MATCHES_A = {"predicates": "p", "predicates.p.type": "TopicNameMatches", "predicates.p.pattern": "a"}
TOMBSTONES = {"predicates": "p", "predicates.p.type": "RecordIsTombstone"}
BY_DAY = {"transforms.d.type": "TimestampRouter"}


@pytest.mark.parametrize(
    ("transforms", "config", "expected"),
    [
        ("", {}, ["a"]),
        ("r", regex("r", "a", "x"), ["x"]),
        ("r", regex("r", "b", "x"), ["a"]),
        ("r,s", regex("r", "a", "x") | regex("s", "x", "y"), ["y"]),
        ("r", regex("r", ".*", "x", predicate="p") | MATCHES_A, ["x"]),
        ("r", regex("r", ".*", "x", predicate="p", negate="true") | MATCHES_A, ["a"]),
        ("r", regex("r", ".*", "x", predicate="p") | TOMBSTONES, ["a", "x"]),
        ("d", BY_DAY, ["a\\-[A-Za-z0-9._-]*"]),
        ("d", BY_DAY | {"transforms.d.topic.format": "all"}, ["all"]),
        ("d,r", BY_DAY | regex("r", "a-.*", "x"), ["[A-Za-z0-9._-]*"]),
        ("m", {"transforms.m.type": "MaskField$Value", "transforms.m.fields": "f"}, ["a"]),
        ("t", {"transforms.t.type": f"{__name__}:Renaming"}, ["[A-Za-z0-9._-]*"]),
        ("t", {"transforms.t.type": f"{__name__}:Keeping"}, ["a"]),
    ],
)
def test_final_topics_are_known_as_far_as_the_configuration_says(
    transforms: str, config: dict[str, str], expected: list[str]
) -> None:
    chain = SinkConnectorConfig.from_config(CONNECTOR | {"transforms": transforms} | config).transforms
    assert [name.regex for name in final_topics(chain, "a")] == expected


def leftovers(config: dict[str, str]) -> Any:
    ranges = [OffsetRange(topic, 0, 10, 20) for topic in ("a", "b", "c")]
    return sink_of(S3SinkConnector, CONNECTOR | config).leftovers(ranges)


def key(folder: str, topic: str, partition: int = 0, start: int = 15) -> str:
    return f"topics/{folder}/partition={partition}/{topic}+{partition}+{start:010}.json"


def test_leftovers_of_merged_topics_are_found_under_the_new_name_only_where_they_belong() -> None:
    pattern = leftovers({"transforms": "r"} | regex("r", "a|b", "merged"))

    assert pattern.prefixes[:2] == ("topics/c/", "topics/merged/")
    for ours in (key("merged", "a"), key("merged", "b"), key("c", "c")):
        assert pattern.matches(ours), ours
    strangers = [
        key("a", "a"), key("merged", "c"), key("c", "a"), key("other", "a"), key("merged", "merged"),
        key("merged", "a", start=20), key("merged", "a", partition=1), key("merged/x", "a"), key("merged", "x+a"),
    ]  # fmt: skip
    for stranger in strangers:
        assert not pattern.matches(stranger), stranger


def test_leftovers_of_days_are_found_under_every_day() -> None:
    pattern = leftovers({"transforms": "d"} | BY_DAY)

    assert pattern.prefixes[:3] == ("topics/a-", "topics/b-", "topics/c-")
    assert pattern.matches(key("a-20260101", "a"))
    assert not pattern.matches(key("a-20260101", "b"))
    assert not pattern.matches(key("a", "a"))


def test_leftovers_of_many_topics_stay_a_short_pattern() -> None:
    topics = [f"topic-{n}" for n in range(200)]
    sink = sink_of(S3SinkConnector, CONNECTOR)
    pattern = sink.leftovers([OffsetRange(topic, 0, 0, 1) for topic in topics])
    assert pattern.matches(key("topic-7", "topic-7", start=0))
    assert not pattern.matches(key("topic-7", "topic-70", start=0))
    assert len(pattern.pattern) < 100 * len(topics)
