"""`airflow-connect plugins`: the installed plugins and their keys."""

from __future__ import annotations

from airflow_connect.cli.control.about import plugin_actions as add_arguments
from airflow_connect.cli.control.actions import run_action as run

NAME = "plugins"
HELP = "the installed plugins and their keys"

__all__ = ["HELP", "NAME", "add_arguments", "run"]
