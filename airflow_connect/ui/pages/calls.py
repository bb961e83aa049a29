"""One request of a browser: who sends it, to which installation, and what a page may offer to this user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from airflow_connect.control.herder.refusals import NOT_FOUND, RefusedError
from airflow_connect.ui.overview.model import Connector, Overview
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.asking import Console
from airflow_connect.ui.pages.checking import told_in_menu
from airflow_connect.ui.pages.rendering import segment
from airflow_connect.ui.web.access import Right, Visitor

MOUNT = "/airflow-connect"
"""Where the plugin mounts the pages in Airflow's API server."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request, with what its handler needs.

    Attributes:
        console: answers.
        visitor: who asks.
        root: path of the application, such as `/airflow-connect`; links begin with it.
        conn_id: the installation, or "".
        query: of the URL.
        form: fields of the body; a field may have several values.
        airflow_app: Airflow's own application, around the pages; None: they are not part of one.
    """

    console: Console
    visitor: Visitor
    root: str
    conn_id: str
    query: Mapping[str, str]
    form: Mapping[str, list[str]] = field(default_factory=dict)
    airflow_app: Any = field(default=None, repr=False)

    def field_of(self, name: str) -> str:
        """The last value of a form field, or ""."""
        return self.form.get(name, [""])[-1].strip()

    def may(self, right: Right) -> bool:
        """Whether the page may offer what needs this right."""
        return bool(self.conn_id) and self.visitor.may(right, self.console.installations.conn_id_of(self.conn_id))

    def may_run(self, connector: Connector) -> bool:
        """Whether a run of the connector may be started here: by its worker, or by its DAG."""
        if connector.is_registered:
            return connector.target == "STARTED" and self.may(Right.OPERATE)
        return bool(connector.dags) and self.may(Right.OPERATE) and self.visitor.may_trigger(connector.dags[0])

    def href(self, page: str = "", **query: str) -> str:
        """The address of a page of this installation."""
        path = f"{self.root}/{segment(self.conn_id)}" + (f"/{page}" if page else "")
        given = {name: value for name, value in query.items() if value}
        return f"{path}?{urlencode(given)}" if given else path

    def airflow(self, *parts: str) -> str:
        """The address of a page of Airflow itself."""
        return "/".join([self.root.removesuffix(MOUNT), *map(segment, parts)])

    def seen(self, *, now: bool = False) -> Seen[Overview]:
        """The installation."""
        return self.console.overview(self.conn_id, now=now)

    def shell(self, title: str, tab: str, seen: Seen[Any] | None = None) -> dict[str, Any]:
        """What every page shows around its content."""
        return {
            "problem_count": told_in_menu(self.console) if self.conn_id else "",
            "call": self,
            "title": title,
            "tab": tab,
            "seen": seen,
            "user": self.visitor.name,
            "installations": self.console.installations.names(),
            "is_named": self.console.installations.named(),
            "may_operate": self.may(Right.OPERATE),
            "may_change": self.may(Right.CHANGE),
            "done": self.query.get("done", ""),
        }


def connector_of(call: Call, seen: Seen[Overview]) -> Connector | None:
    """The connector that the query names; None: nothing is known of the installation yet.

    Raises:
        RefusedError: with status 404; names those with a similar name.
    """
    from airflow_connect.api.config.near_names import did_you_mean, nearest

    name = call.query.get("name", "")
    if seen.value is None:
        return None
    found = seen.value.connectors.get(name)
    if found is None:
        hint = did_you_mean(nearest(name, seen.value.connectors))
        raise RefusedError(f"There is no connector {name!r} in {call.conn_id}. {hint}".rstrip(), NOT_FOUND)
    return found
