"""Who sends a request to Airflow, and what that user may do with the connectors of an installation.

Only permissions that every auth manager knows are asked for. FAB's auth manager would refuse a custom view of our own
to everybody until somebody grants it, and the simple auth manager allows viewers every method of a custom view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import (
    ConnectionDetails,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
from airflow.configuration import conf
from airflow.models.connection import Connection
from fastapi import HTTPException
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from airflow_connect.control.herder.refusals import FORBIDDEN, RefusedError


class Right(Enum):
    """What a request does, and the permission of Airflow that it needs.

    The connection of an installation holds its credentials: who may change it can reach everything that its connectors
    reach, so the same users may configure connectors. A configuration can name any installed class and any reference.
    """

    READ = "read DAG runs"
    OPERATE = "edit DAG runs"
    CHANGE = "edit the connection of the installation"


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user of a request.

    Attributes:
        user: as the auth manager knows it.
        login: the headers that the request has proved it with.
    """

    user: BaseUser = field(repr=False)
    login: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """As Airflow shows it."""
        return self.user.get_name()

    def may(self, right: Right, conn_id: str) -> bool:
        """Whether the user has a right on an installation. May ask a server: do not call it in the event loop."""
        manager = get_auth_manager()
        if right is Right.CHANGE:
            details = ConnectionDetails(conn_id=conn_id, team_name=_team_of(conn_id))
            return bool(manager.is_authorized_connection(method="PUT", details=details, user=self.user))
        method = "GET" if right is Right.READ else "PUT"
        return bool(
            manager.is_authorized_dag(method=method, access_entity=DagAccessEntity.RUN, user=self.user)  # type: ignore[arg-type]
        )

    def may_trigger(self, dag_id: str = "") -> bool:
        """Whether the user may start a run of a DAG; "": of DAGs, as far as it does not depend on the DAG.

        May ask a server: do not call it in the event loop, nor for each of many DAGs.
        """
        details = DagDetails(id=dag_id) if dag_id else None
        manager = get_auth_manager()
        entity: Any = DagAccessEntity.RUN
        return bool(manager.is_authorized_dag(method="POST", access_entity=entity, details=details, user=self.user))

    def may_edit_dag(self, dag_id: str = "") -> bool:
        """Whether the user may edit a DAG; "": DAGs, as far as it does not depend on the DAG.

        May ask a server: do not call it in the event loop, nor for each of many DAGs.
        """
        details = DagDetails(id=dag_id) if dag_id else None
        return bool(get_auth_manager().is_authorized_dag(method="PUT", details=details, user=self.user))

    def may_see_code(self, dag_id: str) -> bool:
        """Whether the user may see how a DAG is written. May ask a server: do not call it in the event loop."""
        entity: Any = DagAccessEntity.CODE
        details, manager = DagDetails(id=dag_id), get_auth_manager()
        return bool(manager.is_authorized_dag(method="GET", access_entity=entity, details=details, user=self.user))

    def connection_ids(self) -> list[str]:
        """The connections in Airflow's database that the user may see: their ids only.

        Asks the database, and maybe a server: do not call it in the event loop.
        """
        return sorted(get_auth_manager().get_authorized_connections(user=self.user))

    async def refuse_without(self, right: Right, conn_id: str) -> None:
        """Refuse the request if the user lacks the right.

        Raises:
            RefusedError: with status 403; names the permission.
        """
        if not await run_in_threadpool(self.may, right, conn_id):
            raise RefusedError(
                f"User {self.name} has no permission for this request: it needs the permission to {right.value}"
                f" ({conn_id}).",
                FORBIDDEN,
            )


async def visitor_of(request: Request) -> Visitor:
    """The user whose bearer token, or else whose login cookie, the request has.

    Raises:
        RefusedError: with status 401 if there is none or it has expired, 403 if it is not valid.
    """
    try:
        user = await get_user(request, bearer_credentials=await bearer_scheme(request))
    except HTTPException as error:
        raise RefusedError(str(error.detail), error.status_code) from error
    return Visitor(
        user, {name: request.headers[name] for name in ("authorization", "cookie") if name in request.headers}
    )


def _team_of(conn_id: str) -> str | None:
    """The team that owns a connection; a connection from the environment or a secrets backend has none."""
    if not conf.getboolean("core", "multi_team"):
        return None
    team: str | None = Connection.get_team_name(conn_id)
    return team
