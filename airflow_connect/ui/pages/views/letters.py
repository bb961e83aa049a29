"""Replaying the dead letters of a sink: first what would be done, then, confirmed, the replay."""

from __future__ import annotations

from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.kafka.reading.dead_letters import LetterFilter
from airflow_connect.runtime.driver.dead_letters.replay import Replayed, ReplayRequest
from airflow_connect.runtime.reporting.texts import plural
from airflow_connect.ui.overview.model import Connector
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.rendering import render
from airflow_connect.ui.pages.views.of_dags import config_of, refuse_others


def preview(call: Call) -> str:
    """What a replay would do. It reads the whole queue."""
    seen = call.seen()
    connector = permitted(call)
    found = _replayed(call, connector, dry_run=True)
    reasons = [(stage, error, count) for (stage, error), count in found.reasons.most_common()]
    return render(
        "replay.html",
        **call.shell("Replay dead letters", "connectors", seen),
        name=connector.name,
        found=found,
        total=found.topics.total(),
        reasons=reasons,
    )


def replay(call: Call, connector: Connector) -> str:
    """Replay the letters, and say what was done; `connector`: as `permitted` gives it."""
    found = _replayed(call, connector, dry_run=False)
    return (
        f"{plural(found.topics.total(), 'dead letter')} went back to {', '.join(sorted(found.topics)) or 'no topic'}."
    )


def _replayed(call: Call, connector: Connector, *, dry_run: bool) -> Replayed:
    request = ReplayRequest(LetterFilter(stage=call.query.get("stage", "")), dry_run=dry_run)
    return call.console.replayed(call.conn_id, connector.name, config_of(call, connector), request)


def permitted(call: Call) -> Connector:
    """The connector, for a user who may replay its dead letters.

    Raises:
        RefusedError: with status 403, the user may not; 404, there is no such connector; 503, nothing is known yet.
    """
    connector = connector_of(call, call.seen())
    if connector is None:
        raise RefusedError("The connectors have not been read from Kafka yet. Try again.", 503)
    refuse_others(call, connector)
    return connector
