"""Records that the target cluster does not take: they are named, with the setting and what to do."""

from __future__ import annotations

import time

import pytest

from tests.integration.connectors.mirror.conftest import Mirror
from tests.integration.connectors.mirror.test_topics import alter

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])
HOUR_MS = 3_600_000
LARGE = {"message.max.bytes": 9_000_000}
SKIPPING = {"delivery_guarantee": "at_least_once", "errors_tolerance": "all"}
KEPT = {"sync_topic_configs_enabled": "false", "tasks_max": "1"}


def feed(mirror: Mirror, *, key: bytes | None = b"k", size: int = 5, later_ms: int = 0) -> None:
    """Three records, of which the second of partition 0 is the one that is refused; the copy exists already."""
    now = int(time.time() * 1000)
    alter(mirror.source, mirror.topic, max_message_bytes="9000000", message_timestamp_after_max_ms=str(10**12))
    mirror.run()
    rows = [(0, b"k", b"first", now), (0, key, b"x" * size, now + later_ms), (1, b"k", b"last", now)]
    for row in rows:  # in batches of their own
        mirror.write(mirror.topic, [row], LARGE)


AFTER, BEFORE = "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"
REFUSED, TOO_LARGE = "data.refused_by_kafka", "kafka.too_large"
CASES = pytest.mark.parametrize(
    ("record", "setting", "value", "code", "told"),
    [
        ({"later_ms": 2 * HOUR_MS}, AFTER, str(HOUR_MS), REFUSED, "timestamp"),
        ({"later_ms": -2 * HOUR_MS}, BEFORE, str(HOUR_MS), REFUSED, "timestamp"),
        ({"size": 700_000}, "max.message.bytes", "500000", TOO_LARGE, "700001 bytes"),
        # Kafka's client refuses it before the broker does.
        ({"size": 3_000_000}, "max.message.bytes", "9000000", TOO_LARGE, "3000001 bytes"),
        ({"key": None}, "cleanup.policy", "compact", REFUSED, "has no key"),
    ],
    ids=["later", "earlier", "too large for the topic", "too large for the client", "without a key"],
)


@BOTH_PATHS
@CASES
def test_record_that_the_target_refuses_is_named_with_the_setting(
    mirror: Mirror, columnar: bool, record: dict[str, int], setting: str, value: str, code: str, told: str
) -> None:
    feed(mirror, **record)
    alter(mirror.target, mirror.remote, **{setting.replace(".", "_"): value})

    report = mirror.try_run(columnar=columnar, **KEPT)

    error = report.error
    assert (report.status, error["code"], error["retriable"]) == ("failed", code, False)
    assert f"{mirror.topic}-0@1 of the source cluster" in error["message"] and told in error["message"]
    assert setting in error["suggestion"] and "delivery.guarantee=at_least_once" in error["suggestion"]
    assert mirror.copies()[0] == []


@CASES
def test_record_that_the_target_refuses_is_skipped_counted_and_named_if_errors_are_tolerated(
    mirror: Mirror, record: dict[str, int], setting: str, value: str, code: str, told: str
) -> None:
    feed(mirror, **record)
    alter(mirror.target, mirror.remote, **{setting.replace(".", "_"): value})

    report = mirror.run(**KEPT, **SKIPPING)

    assert (report.records, report.source.failed) == (2, 1)
    (note,) = [one for one in report.notes if one.startswith("1 record was skipped")]
    assert "KAFKA_PRODUCE" in note and f"'topic': '{mirror.topic}'" in note and "'offset': 1" in note
    assert [copy.value for copy in mirror.copies()[0]] == [b"first"]
    # It is not read again.
    assert mirror.offsets()[0]["offset"] == 1
