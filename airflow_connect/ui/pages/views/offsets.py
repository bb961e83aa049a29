"""Setting and resetting the offsets of a sink: what is committed, what would be, what that means; then the change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.control.herder.refusals import CONFLICT, RefusedError
from airflow_connect.control.state.records import STOPPED
from airflow_connect.errors import ConnectError
from airflow_connect.planning.chosen_positions import parse_positions, resolve
from airflow_connect.planning.planner import LogState
from airflow_connect.runtime.reporting.texts import format_count
from airflow_connect.ui.overview.model import Connector, Position
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.of_dags import may_change, refuse_others
from airflow_connect.ui.pages.views.run_now import in_utc

ALL = "all"


@dataclass(frozen=True, slots=True)
class Move:
    """One partition: `after` None deletes the offset."""

    position: Position
    after: int | None

    @property
    def effect(self) -> str:
        """What the next run would do because of it."""
        before, after = self.position.start, self.after
        if after is None:
            return "the offset is deleted; the next run starts where auto.offset.reset says"
        if after < before:
            return f"{format_count(before - after)} records will be written again"
        if after > before:
            return f"{format_count(after - before)} records will be skipped, and never be written"
        return "nothing changes"

    @property
    def kind(self) -> str:
        """`bad` if records are skipped."""
        if self.after is None:
            return "warn"
        return "bad" if self.after > self.position.start else "warn" if self.after < self.position.start else "quiet"


def page(call: Call) -> str:
    """The form."""
    return _page(call)


def preview(call: Call) -> str | tuple[int, str]:
    """The same page with what the change would do; with status 400 if the fields are wrong."""
    connector = _known(call)
    try:
        moves = _moves(call, connector)
    except ConnectError as error:
        return 400, _page(call, problem=str(error))
    return _page(call, moves=moves)


def confirmed(call: Call) -> tuple[Connector, dict[str, int | None]]:
    """The connector, and the offsets that the user has seen and confirmed, by partition.

    Raises:
        RefusedError: the fields are wrong, or a run has committed since.
    """
    connector = _known(call, now=True)
    try:
        wanted, before = json.loads(call.field_of("wanted")), json.loads(call.field_of("before"))
    except ValueError as error:
        raise RefusedError("The confirmation has no offsets. Start again from the page of the offsets.") from error
    if not isinstance(wanted, dict) or not isinstance(before, dict):
        raise RefusedError("The confirmation has no offsets. Start again from the page of the offsets.")
    current = {position.place: position.committed for position in connector.positions}
    if any(current.get(place) != offset for place, offset in before.items()):
        raise RefusedError("The connector has committed other offsets since. Look at them first.", CONFLICT)
    return connector, wanted


def _page(call: Call, moves: list[Move] | None = None, problem: str = "") -> str:
    seen = call.seen()
    connector = connector_of(call, seen)
    return render(
        "offsets.html",
        **call.shell("Offsets", "connectors", seen),
        name=call.query.get("name", ""),
        connector=connector,
        # An alteration fences runs: that of a DAG which copies now fails, and commits nothing.
        is_ready=connector is not None and (not connector.is_registered or connector.target == STOPPED),
        may_change_it=connector is not None and may_change(call, connector),
        moves=moves,
        problem=problem,
        wanted=json.dumps({move.position.place: move.after for move in moves or ()}),
        before=json.dumps({move.position.place: move.position.committed for move in moves or ()}),
        to=call.field_of("to") or "earliest",
        value=call.field_of("value"),
        place=call.field_of("place") or ALL,
    )


def _known(call: Call, *, now: bool = False) -> Connector:
    connector = connector_of(call, call.seen(now=now))
    if connector is None:
        raise RefusedError("The offsets have not been read from Kafka yet. Try again.", 503)
    refuse_others(call, connector)
    if not connector.positions:
        raise RefusedError(
            f"The offsets of {connector.name} cannot be changed on this page: it is no sink, or its topics are not"
            " known. airflow-connect offsets, SetOffsetsOperator and ConnectHook change those of every connector."
        )
    return connector


def _moves(call: Call, connector: Connector) -> list[Move]:
    to, place = call.field_of("to"), call.field_of("place") or ALL
    given = _given(to, call.field_of("value"))
    positions = parse_positions(given if place == ALL else {place: given}, "The offset")
    by_place = {TopicPartition(p.topic, p.partition): p for p in connector.positions}
    log = LogState(
        topic_ids={},
        earliest={tp: p.beginning for tp, p in by_place.items()},
        end={tp: p.end for tp, p in by_place.items()},
        committed={},
    )
    wanted = resolve(positions, log, lambda tps, ms: _at_time(call, tps, ms))
    return [Move(by_place[tp], offset) for tp, offset in wanted.items()]


def _given(to: str, value: str) -> str | None:
    """The position as `parse_positions` reads it: there, digits are an offset and other text is a time."""
    if to == "offset" and not value.isdecimal():
        raise RefusedError(f"The offset is {value!r}, and must be a number, such as 120. Nothing was changed.")
    if to != "time":
        return {"offset": value, "none": None}.get(to, to)
    try:
        return in_utc(parse_timestamp_ms(value))
    except ValueError as error:
        raise RefusedError(f"The time is {value!r}. {error}. Nothing was changed.") from error


def _at_time(call: Call, tps: Iterable[TopicPartition], ms: int) -> Mapping[TopicPartition, int | None]:
    from airflow_connect.kafka.admin.watermarks import offsets_for_timestamp

    topics = call.console.installations.get(call.conn_id).topics
    return offsets_for_timestamp(topics.admin, list(tps), ms)
