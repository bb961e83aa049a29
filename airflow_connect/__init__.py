"""Kafka Connect's model as Airflow DAG runs: bounded, exactly-once copies, executed by Spark.

Importing this package loads the standard library only. Connector authors import `airflow_connect.api`, DAG
authors `airflow_connect.operators`, programs that embed connectors `airflow_connect.Connect`. The layers of the package
and who may import whom: docs/architecture.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_connect.embedded.connect import Connect

__all__ = ["Connect", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load `Connect` on first use."""
    if name != "Connect":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module("airflow_connect.embedded.connect").Connect
