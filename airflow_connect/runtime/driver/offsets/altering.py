"""Sets or deletes the offsets of a connector (KIP-875), fenced as a run is.

The alteration takes the connector's transactional id, so a run that copies at the same time fails as fenced: it
commits nothing, and the next run starts at the new offsets. A run that already publishes is not disturbed; the
alteration is refused until its manifest is closed. A live Kafka Connect worker is never disturbed either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.runtime.driver.source.configuration import SourceConfiguration, is_source

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.offsets.altered import AlteredOffsets
    from airflow_connect.runtime.spec import RunSpec


def set_offsets(spec: RunSpec, offsets: Any) -> AlteredOffsets:
    """Set offsets of a connector.

    Args:
        spec: the connector and its worker.
        offsets: of a sink, see `planning.chosen_positions`; of a source, the list of Kafka Connect's REST API:
            `[{"partition": {...}, "offset": {...}}]`. An offset of None is deleted. Other partitions keep theirs.

    Raises:
        ConfigError: the configuration or `offsets` are wrong, or the connector refuses them.
        OffsetError: a partition does not exist, or an offset is outside its log; the message names it.
        NotStoppedError: a live Kafka Connect worker runs the connector.
        RetriableError: a run of the connector has not finished publishing.
        FencedError: a run of the connector began during the alteration. Nothing was altered, or all of it.
        UnavailableError, AccessError: Kafka.
    """
    if isinstance(offsets, Mapping) and set(offsets) == {"offsets"}:  # the whole body of the REST request
        offsets = offsets["offsets"]
    if is_source(spec):
        from airflow_connect.runtime.driver.offsets.of_sources import alter, parse_offsets

        return alter(SourceConfiguration.from_spec(spec), parse_offsets(offsets, spec.connector.get("name")))
    from airflow_connect.planning.chosen_positions import parse_positions
    from airflow_connect.runtime.driver.offsets.of_sinks import alter as alter_sink
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

    return alter_sink(SinkConfiguration.from_spec(spec), parse_positions(offsets, "offsets"))


def reset_offsets(spec: RunSpec, partitions: Any = None) -> AlteredOffsets:
    """Delete offsets of a connector, so that it starts as if it had never run.

    Args:
        spec: the connector and its worker.
        partitions: which: of a sink `["topic-0", ...]`, of a source its source partitions; None: all.

    Raises:
        ConnectError: as `set_offsets`.
    """
    if is_source(spec):
        from airflow_connect.runtime.driver.offsets.of_sources import alter, parse_offsets

        entries = None if partitions is None else [{"partition": which, "offset": None} for which in partitions]
        wanted = None if entries is None else parse_offsets(entries, spec.connector.get("name"))
        return alter(SourceConfiguration.from_spec(spec), wanted)
    return set_offsets(spec, None if partitions is None else dict.fromkeys(partitions))


__all__ = ["reset_offsets", "set_offsets"]
