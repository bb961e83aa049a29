"""Tombstones that a compacted topic no longer has when a run comes: rows of deleted keys stay, and are named."""

from __future__ import annotations

import pytest

from tests.support.copies.jdbc_sink import jdbc_sink
from tests.support.copies.search_sink import documents, search_sink

pytestmark = pytest.mark.integration

DELETES = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "n", "delete.enabled": "true"}
COMPACTED = {"cleanup.policy": "compact", "delete.retention.ms": "1"}
KEYS = {"key.converter": "org.apache.kafka.connect.converters.LongConverter"}


def named(report):
    return [note for note in report.notes if "delete.retention.ms" in note]


def key(number):
    return number.to_bytes(8, "big")


@pytest.mark.parametrize(
    ("topic", "changes", "is_named"),
    [
        (COMPACTED, {}, True),
        ({**COMPACTED, "cleanup.policy": "compact,delete"}, {}, True),
        ({**COMPACTED, "delete.retention.ms": "86400000"}, {}, False),
        ({"cleanup.policy": "delete"}, {}, False),
        (COMPACTED, {"delete.enabled": "false"}, False),
    ],
    ids=["compacted", "both", "in time", "not compacted", "no deletions"],
)
def test_gap_in_a_compacted_topic_that_is_read_too_late_is_named(
    kafka, sqlite_database, make_topic, produce, topic, changes, is_named
):
    """An aborted transaction stands for what the cleaner of the log has removed: offsets without a record."""
    sink = jdbc_sink(kafka, sqlite_database, make_topic(config=topic))
    sink.config |= {**KEYS, **DELETES, "fields.whitelist": "pad", **changes}
    sqlite_database.execute(f"DROP TABLE {sink.table}", f"CREATE TABLE {sink.table} (n BIGINT PRIMARY KEY, pad TEXT)")

    def row(number, value='{"pad": "a"}'):
        return (0, key(number), value)

    produce.transaction(sink.topic, [row(0)], "abort")
    produce(sink.topic, [row(1), row(2)])
    assert named(sink.run()) == []  # Nothing was written before.
    produce(sink.topic, [row(3)])
    assert named(sink.run()) == []  # There is no gap.
    produce.transaction(sink.topic, [row(1, None)], "abort")
    produce(sink.topic, [row(4)])
    found = named(sink.run())
    assert sqlite_database.rows(f"SELECT COUNT(*) FROM {sink.table}") == [(4,)]
    assert len(found) == is_named
    assert all(
        note.startswith(f"Topic {sink.topic} is compacted, and Kafka removes its tombstones after ")
        and "2 offsets in it have no record" in note  # The record, and the marker of its transaction.
        for note in found
    )


def test_search_sink_that_deletes_names_it_too(kafka, opensearch, make_topic, produce):
    sink = search_sink(kafka, opensearch, make_topic(config=COMPACTED), key_ignore="false", **KEYS)
    sink.config["behavior.on.null.values"] = "delete"
    produce(sink.topic, [(0, key(1), '{"n": 1}')])
    assert named(sink.run()) == []
    produce.transaction(sink.topic, [(0, key(1), None)], "abort")
    produce(sink.topic, [(0, key(2), '{"n": 2}')])
    assert len(named(sink.run())) == 1
    assert set(documents(opensearch, sink.bucket)) == {"1", "2"}
