"""From the files of a command line to the specs of runs."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.spec import RunSpec


def add_files(parser: ArgumentParser) -> None:
    """The arguments of `standalone` and `plan`, as of Kafka Connect's connect-standalone."""
    parser.add_argument("worker", help="worker configuration, .properties or JSON")
    parser.add_argument(
        "connectors", nargs="+", metavar="connector", help="connector configuration, .properties or JSON"
    )


def spec_of(path: str, worker: Mapping[str, Any], command: str) -> RunSpec:
    """The run that a connector file and a worker configuration describe.

    Raises:
        ConfigError: the file is missing or cannot be read.
    """
    return RunSpec(
        connector=read_connector_file(path),
        worker=worker,
        origin={"command": command, "user": os.environ.get("USER") or str(os.getuid()), "file": Path(path).name},
    )


def label_of(path: str, connector: Mapping[str, Any] | None = None) -> str:
    """What messages call a connector: its name, or its file."""
    return str((connector or {}).get("name") or Path(path).name)
