"""What an alteration of offsets would change, without changing anything: no fence, no group, no topic."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.runtime.driver.source.configuration import SourceConfiguration, is_source

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """One partition, before and after.

    Attributes:
        partition: as in Kafka Connect's REST API.
        before, after: its offset there; None: none.
        effect: what the next run does because of it, as a part of a sentence.
    """

    partition: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    effect: str

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of a request that makes the change (KIP-875)."""
        return {"partition": self.partition, "offset": self.after}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return asdict(self)


def preview_offsets(spec: RunSpec, offsets: Any) -> list[OffsetChange]:
    """What `set_offsets` would change.

    Args:
        spec: the connector and its worker.
        offsets: see `altering.set_offsets`; None: every offset is deleted.

    Raises:
        ConfigError: the configuration or `offsets` are wrong.
        OffsetError: a partition does not exist, or an offset is outside its log.
        UnavailableError, AccessError: Kafka.
    """
    return _of_source(spec, offsets) if is_source(spec) else _of_sink(spec, offsets)


def changes_between(before: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[OffsetChange]:
    """The same from offsets alone, both in the form of the REST API, where nothing is known of the log."""
    known = {_mark(entry["partition"]): entry["offset"] for entry in before}
    changes = []
    for entry in wanted:
        old, new = known.get(_mark(entry["partition"])), entry["offset"]
        numbers = [None if offset is None else offset.get(OFFSET) for offset in (old, new)]
        is_of_sink = TOPIC in entry["partition"]
        effect = _effect_on_sink(*map(_whole, numbers)) if is_of_sink else _effect_on_source(old, new)
        changes.append(OffsetChange(dict(entry["partition"]), old, new, effect))
    return changes


def _of_sink(spec: RunSpec, offsets: Any) -> list[OffsetChange]:
    from airflow_connect.kafka.admin import watermarks
    from airflow_connect.planning.chosen_positions import parse_positions, resolve
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

    configuration = SinkConfiguration.from_spec(spec)
    positions = parse_positions(offsets, "offsets")
    with configuration.references.hiding_errors(), SinkSession(configuration) as kafka:
        log = kafka.log_state(RunLimits())
        wanted = resolve(positions, log, lambda tps, ms: watermarks.offsets_for_timestamp(kafka.admin, tps, ms))
    return [
        OffsetChange(
            {TOPIC: place.topic, PARTITION: place.partition},
            _offset(log.committed.get(place)),
            _offset(new),
            _effect_on_sink(log.committed.get(place), new),
        )
        for place, new in wanted.items()
    ]


def _of_source(spec: RunSpec, offsets: Any) -> list[OffsetChange]:
    from airflow_connect.observe.status.connector_state import committed_offsets
    from airflow_connect.runtime.driver.offsets.of_sources import parse_offsets

    known = committed_offsets(spec)
    SourceConfiguration.from_spec(spec)
    if offsets is None:
        return changes_between(known, [{"partition": entry["partition"], "offset": None} for entry in known])
    wanted = parse_offsets(offsets, spec.connector.get("name"))
    return changes_between(known, [{"partition": dict(place), "offset": offset} for place, offset in wanted])


def _effect_on_sink(before: int | None, after: int | None) -> str:
    if before == after:
        return "no change"
    if after is None:
        return "starts as if it had never run (auto.offset.reset)"
    if before is None:
        return f"starts at {after}"
    return f"copies {before - after} offsets again" if after < before else f"skips {after - before} offsets"


def _effect_on_source(before: Any, after: Any) -> str:
    if before == after:
        return "no change"
    return "reads it from the beginning" if after is None else "continues there"


def _offset(number: int | None) -> dict[str, Any] | None:
    return None if number is None else {OFFSET: number}


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _mark(partition: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """REST answers, and people, write the number of a partition as a number or as text."""
    return tuple(sorted((key, str(value)) for key, value in partition.items()))
