"""`airflow-connect worker`: serve Kafka Connect's REST API, and keep running what is registered."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace

from airflow_connect.cli.blocks import line
from airflow_connect.cli.inputs import complete_files, spark_settings
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.redaction import secret_values

NAME = "worker"
HELP = "serve Kafka Connect's REST API and keep running the registered connectors"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the argument for the worker's file."""
    complete_files(parser.add_argument("worker", help="worker configuration, .properties or JSON"))


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Work until a signal."""
    from airflow_connect.control.worker.worker import WorkerSettings, work

    worker = read_worker_file(arguments.worker)
    settings = WorkerSettings.from_worker(worker)
    terminal.hide(settings.control.references.values, [*secret_values(worker), *settings.server.users.values()])

    def serve(stopping: threading.Event) -> None:
        from airflow_connect.runtime.engine.spark import SparkEngine

        with SparkEngine(spark_settings(worker)) as engine:
            work(settings, engine, stopping, lambda text: terminal.note(line(text)))

    run_interruptible(serve, terminal)
    return CommandOutcome("The worker has ended.")
