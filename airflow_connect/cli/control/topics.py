"""`airflow-connect topics`: the topics that registered connectors have used."""

from __future__ import annotations

from airflow_connect.cli.control.about import topic_actions as add_arguments
from airflow_connect.cli.control.actions import run_action as run

NAME = "topics"
HELP = "the topics that registered connectors have used"

__all__ = ["HELP", "NAME", "add_arguments", "run"]
