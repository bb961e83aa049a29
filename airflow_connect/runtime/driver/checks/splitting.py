"""Whether several tasks of a run may copy one partition: what the configuration says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.sink import Delivery
from airflow_connect.config.keys.sink import SinkKeys

if TYPE_CHECKING:
    from airflow_connect.api.sink import Splitting
    from airflow_connect.config.resolved.sink import SinkConnectorConfig
    from airflow_connect.exactly_once.guarantee import Guarantee


def why_not_split(
    config: SinkConnectorConfig, delivery: Delivery, guarantee: Guarantee, splitting: Splitting, *, tasks_differ: bool
) -> str:
    """Why each partition has one task, as a clause that can follow a colon; "" if it may have several.

    Args:
        config: the connector's.
        delivery, guarantee: what the sink can promise, and what the run promises.
        splitting: what the connector allows.
        tasks_differ: whether the connector gives each task a configuration of its own.
    """
    if not config.split_partitions:
        return f"{SinkKeys.split_partitions} is false"
    if delivery is Delivery.TRANSACTIONAL:
        return "the target stores one offset for each partition, with the records"
    if splitting.refused:
        return splitting.refused
    if tasks_differ:
        return "the connector gives each task a configuration of its own"
    if not config.flush_on_end:
        # Gaps in the offsets are unknown, and so is what transformations and converters will drop.
        return (
            f"with {SinkKeys.flush_on_end}=false, a file ends only where it is full, and that is known only when the"
            " records before it were read"
        )
    limits = {SinkKeys.run_max_bytes.name: config.run_max_bytes, SinkKeys.run_max_seconds.name: config.run_max_seconds}
    if limit := next((key for key, value in limits.items() if value), ""):
        return f"{limit} may end a task anywhere, and nothing behind that offset could be committed"
    if guarantee.may_repeat and delivery is Delivery.STAGED:
        return (
            f"with {SinkKeys.delivery_guarantee}={guarantee.name}, a repeated run must give files the same names, and"
            " it could cut elsewhere"
        )
    return ""
