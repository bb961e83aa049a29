"""`airflow-connect tasks`: the tasks of registered connectors."""

from __future__ import annotations

from airflow_connect.cli.control.about import task_actions as add_arguments
from airflow_connect.cli.control.actions import run_action as run

NAME = "tasks"
HELP = "the tasks of registered connectors"

__all__ = ["HELP", "NAME", "add_arguments", "run"]
