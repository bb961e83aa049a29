"""What can go wrong while a server of the development stack is fetched or started."""

from __future__ import annotations

from airflow_connect.api.errors import ConnectError


class DevStackError(ConnectError):
    """A server of the development stack is not available.

    Nothing is left running and nothing half-written; trying again is safe.
    """

    code = "devstack.failed"
