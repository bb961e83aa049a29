"""Errors while a server of the development stack is fetched or started."""

from __future__ import annotations

from airflow_connect.errors import ConnectError


class DevStackError(ConnectError):
    """A server of the development stack is not available.

    No process and no incomplete file is left; trying again is safe.
    """

    code = "devstack.failed"
