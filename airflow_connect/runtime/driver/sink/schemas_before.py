"""The schema that each topic-partition of a run starts with: frozen with the plan, kept in the manifest.

So all attempts of a task, and a repeated copy, lay out equal files. The schema comes from what the last run committed,
or else from the last published file: of another connector, of an earlier release, or of a time without
`schema.compatibility`. Source: Confluent's HDFS sink (TopicPartitionWriter), which reads the last file at every start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import is_other_topic
from airflow_connect.exactly_once.value_schemas import NOTHING

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.documents.run import Plan
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink


def schemas_before(sink: StartedSink, state: ConnectorState, plan: Plan) -> Mapping[TopicPartition, str]:
    """See `RoleContext`; {} if the sink continues with no schema.

    Partitions that are read again, because offsets were set back or the topic was recreated, start without one.

    Raises:
        ConnectError: the store refused, or did not answer; or a file cannot be read.
    """
    known = state.seeing(plan.topic_ids).value_schemas
    recreated = {t for t, i in plan.topic_ids.items() if is_other_topic(state.topic_ids.get(t, ""), i)}
    again = {
        r.topic_partition
        for r in plan.ranges
        if r.topic in recreated or r.start < state.committed.get(r.topic_partition, 0)
    }
    wanted = list(dict.fromkeys(r.topic_partition for r in plan.ranges))
    found = sink.last_schemas([tp for tp in wanted if tp not in known and tp not in again])
    if found is None:
        return {}
    every = {**found, **known, **dict.fromkeys(again, NOTHING)}
    return {tp: every.get(tp, NOTHING) for tp in wanted}
