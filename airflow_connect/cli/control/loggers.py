"""`airflow-connect loggers`: log levels of workers."""

from __future__ import annotations

from airflow_connect.cli.control.about import logger_actions as add_arguments
from airflow_connect.cli.control.actions import run_action as run

NAME = "loggers"
HELP = "log levels of workers"

__all__ = ["HELP", "NAME", "add_arguments", "run"]
