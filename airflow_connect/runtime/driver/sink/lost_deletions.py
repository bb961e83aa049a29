"""Deletions that Kafka may have removed before a run could read them.

A compacted topic keeps the last record of each key, and tombstones for `delete.retention.ms`, a day by default. A sink
that deletes by tombstones and reads later than that never learns of a deletion: what it has written of the key stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.counting import plural
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin.topic_settings import settings_of_topics
from airflow_connect.kafka.reading.first_timestamps import first_records
from airflow_connect.runtime.reporting.texts import format_seconds

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_state import PlannedRun
    from airflow_connect.documents.run import TaskReport
    from airflow_connect.kafka.clients.short_lived import Admin
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

_DEFAULT_MS = 86_400_000
"""`delete.retention.ms` of a topic whose settings may not be read."""


def lost_deletions(
    config: SinkConfiguration,
    admin: Admin,
    planned: PlannedRun,
    committed: Mapping[TopicPartition, int],
    reports: Sequence[TaskReport],
) -> tuple[str, ...]:
    """Name the topics of which tombstones may be missing.

    Args:
        config: of the connector.
        admin: of its cluster.
        planned: the run.
        committed: where earlier runs have ended: only what they have written can be deleted.
        reports: of the tasks.
    """
    missing: Counter[str] = Counter()
    starts: dict[TopicPartition, int] = {}
    for part in (p for report in reports for p in report.partitions):
        place, passed = part.range.topic_partition, part.range.end - part.range.start - part.read
        if committed.get(place) and passed > 0:
            missing[place.topic] += passed
            starts[place] = min(part.range.start, starts.get(place, part.range.start))
    if not missing or not planned.last_run_ms or not config.sink.deletes_by_null:
        return ()
    kept_ms = _kept_ms(admin, missing)
    since_ms = _since_ms(config, {p: start for p, start in starts.items() if p.topic in kept_ms}, planned.last_run_ms)
    return tuple(
        f"Topic {topic} is compacted, and Kafka removes its tombstones after {format_seconds(most_ms / 1000)}"
        f" (delete.retention.ms). This run reads what came in {format_seconds(age_ms / 1000)}, and"
        f" {plural(missing[topic], 'offset')} in it {'has' if missing[topic] == 1 else 'have'} no record. If tombstones"
        " were among them, what was written of their keys is still there. Run the connector more often, or raise"
        " delete.retention.ms; to be sure, copy the topic into an empty target."
        for topic, most_ms in sorted(kept_ms.items())
        if (age_ms := planned.now_ms - since_ms[topic]) > most_ms
    )


def _kept_ms(admin: Admin, topics: Mapping[str, int]) -> dict[str, int]:
    """How long compacted topics keep tombstones."""
    found = {}
    for topic, settings in settings_of_topics(admin, sorted(topics)).items():
        if isinstance(settings, ConnectError):
            found[topic] = _DEFAULT_MS
        elif "compact" in settings["cleanup.policy"]:
            found[topic] = int(settings["delete.retention.ms"])
    return found


def _since_ms(config: SinkConfiguration, starts: Mapping[TopicPartition, int], last_run_ms: int) -> dict[str, int]:
    """When the last run was planned, or the time of the first record that this one reads, if it is earlier."""
    consumer = config.consumer
    since = {place.topic: last_run_ms for place in starts}
    for place, first in first_records(consumer.settings, starts, consumer.isolation_level).items():
        if not isinstance(first, ConnectError) and first.timestamp_ms is not None:
            since[place.topic] = min(since[place.topic], first.timestamp_ms)
    return since
