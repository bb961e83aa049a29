"""Entries of Airflow's audit log (Browse > Audit Log, `/api/v2/eventLogs`) about connectors."""

from __future__ import annotations

import json
from collections.abc import Iterable

from airflow.models.log import Log
from airflow.utils.session import create_session

PREFIX = "connect."


def record(
    operation: str, who: str, conn_id: str, connector: str | None = None, keys: Iterable[str] = (), **more: str
) -> None:
    """Add an entry, and return when it is in the database. Call it before the change, so that none lacks its entry.

    An entry says what a user has requested; the request may fail afterwards. It never has values of a configuration,
    because they may be secrets.

    Args:
        operation: what is requested, such as `pause_connector`; the event is `connect.pause_connector`.
        who: the name of the user.
        conn_id: the installation.
        connector: its name, if the request names one.
        keys: configuration keys that the request sets.
        more: what else an auditor needs: plain text.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: the database cannot be written; the change must not be made.
    """
    extra = {"connection": conn_id, "connector": connector, "keys": sorted(keys), **more}
    told = {name: value for name, value in extra.items() if value}
    with create_session() as session:
        session.add(Log(event=f"{PREFIX}{operation}", owner=who, owner_display_name=who, extra=json.dumps(told)))
