"""Bounds of a run: a replay's are chosen by its first run, and stay what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError
from airflow_connect.kafka.admin import consumer_group, watermarks
from airflow_connect.planning.bounds import Bounds, ReplayRange
from airflow_connect.planning.limits import RunLimits

if TYPE_CHECKING:
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession


def bounds_of(kafka: SinkSession, asked: Mapping[str, Any], state: ConnectorState | None) -> Bounds | None:
    """The bounds of a run whose request has `bounds`; None: there are none.

    Args:
        kafka: the run's session.
        asked: `RunSpec.bounds`.
        state: the state of the connector; a replay that has begun keeps its bounds there.

    Raises:
        ConfigError: positions are wrong, or this replay has begun with another range.
        OffsetError: a position is outside the log.
    """
    if not asked:
        return None
    if "ranges" in asked:
        return Bounds.from_json(asked)
    known = state.bounds if state else {}
    if known and known["asked"] != asked:
        raise ConfigError(
            f"Replay {state.connector if state else ''} has begun with another range: {_shown(known['asked'])}, and now"
            f" {_shown(asked)}.",
            code="replay.other_range",
            suggestion="Give another replay_id to replay another range.",
            config_path="replay_id",
        )
    return Bounds.from_json(known["chosen"]) if known else _choose(kafka, ReplayRange(**asked))


def remembered(asked: Mapping[str, Any], bounds: Bounds | None) -> dict[str, Any]:
    """What the state of a replay keeps; {} for other runs."""
    if bounds is None or not bounds.begin:
        return {}
    return {"asked": dict(asked), "chosen": bounds.to_json()}


def _choose(kafka: SinkSession, wanted: ReplayRange) -> Bounds:
    log = kafka.log_state(RunLimits())
    copied = consumer_group.read_committed_offsets(kafka.admin, wanted.group, log.earliest)
    return wanted.resolve(log, copied, lambda tps, ms: watermarks.offsets_for_timestamp(kafka.admin, tps, ms))


def _shown(asked: Mapping[str, Any]) -> str:
    return f"start {asked['start']!r}, until {asked['until']!r}"
