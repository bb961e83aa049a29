"""What an alteration of offsets would change, without changing anything: no fence, no group, no topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.runtime.driver.kinds import kind_of

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"


@dataclass(frozen=True, slots=True)
class OffsetChange(JsonDocument):
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


def preview_offsets(spec: RunSpec, offsets: Any) -> list[OffsetChange]:
    """What `set_offsets` would change.

    Args:
        spec: the connector and its worker.
        offsets: see `entry.set_offsets`; None: every offset is deleted.

    Raises:
        ConfigError: the configuration or `offsets` are wrong.
        OffsetError: a partition does not exist, or an offset is outside its log.
        UnavailableError, AccessError: Kafka.
    """
    return changes_between(*kind_of(spec).wanted_offsets(offsets))


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


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _mark(partition: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """REST answers, and people, write the number of a partition as a number or as text."""
    return tuple(sorted((key, str(value)) for key, value in partition.items()))
