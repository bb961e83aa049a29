"""On PYTHONPATH: servers that would listen on every address of this machine listen on its loopback only.

Airflow's log servers take no host (airflow.utils.serve_logs.core), and a test has no business on the network.
Drivers may do without Spark, as their worker configuration says.
"""

from __future__ import annotations

import socket
from typing import Any

from tests.support.processes.without_spark import engine_choice

LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_bind = socket.socket.bind


def bind(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6):
        address = (LOOPBACK.get(address[0], address[0]), *address[1:])
    _bind(self, address)


socket.socket.bind = bind  # type: ignore[method-assign]
engine_choice.install()
