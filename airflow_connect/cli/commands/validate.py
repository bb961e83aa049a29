"""`airflow-connect validate`: every finding about configuration files, offline."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from airflow_connect.api.errors import EXIT_CONFIG_WRONG, EXIT_DONE, ConfigError
from airflow_connect.cli.inputs import label_of
from airflow_connect.cli.outcome import Outcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.presentation import plural
from airflow_connect.runtime.spec import RunSpec

NAME = "validate"
HELP = "check configuration files without any server"
_STAND_IN_WORKER = {"bootstrap.servers": "not-asked:9092"}


def add_arguments(parser: ArgumentParser) -> None:
    """Files; the first may be a worker's."""
    parser.add_argument(
        "files", nargs="+", metavar="file", help="connector files; a worker file may stand in front of them"
    )


def run(arguments: Namespace, terminal: Terminal) -> Outcome:
    """Check every file."""
    files = list(arguments.files)
    worker = _worker_in_front(files)
    results = [_check(path, worker) for path in files]
    wrong = sum(1 for result in results if not result["ok"])
    return Outcome(
        summary=f"{plural(len(results) - wrong, 'connector')} valid, {wrong} wrong.",
        result={"connectors": results},
        lines=[line for result in results for line in _lines(result, terminal)],
        exit_code=EXIT_CONFIG_WRONG if wrong else EXIT_DONE,
    )


def _worker_in_front(files: list[str]) -> Mapping[str, Any]:
    """Take a worker file away from the front of `files`: one that names brokers and no connector class."""
    if len(files) > 1:
        first = read_connector_file(files[0])
        if "connector.class" not in first and "bootstrap.servers" in first:
            del files[0]
            return first
    return _STAND_IN_WORKER


def _check(path: str, worker: Mapping[str, Any]) -> dict[str, Any]:
    from airflow_connect.runtime.driver.run import validate_connector

    name = label_of(path)
    try:
        connector = read_connector_file(path)
        name = label_of(path, connector)
        findings = validate_connector(RunSpec(connector=connector, worker=worker))
    except ConfigError as error:
        findings = [
            {"key": error.config_path, "message": error.message, "suggestion": error.suggestion, "level": "error"}
        ]
    is_valid = all(finding["level"] != "error" for finding in findings)
    return {"file": path, "name": name, "ok": is_valid, "findings": findings}


def _lines(result: Mapping[str, Any], terminal: Terminal) -> list[str]:
    mark = terminal.style("✓", "green") if result["ok"] else terminal.style("✗", "red")
    lines = [f"{mark} {terminal.style(result['name'], 'bold')}  {result['file']}"]
    for finding in result["findings"]:
        wrong = finding["level"] == "error"
        sign = terminal.style("✗", "red") if wrong else terminal.style("⚠", "yellow")
        level = "" if wrong else f" ({finding['level']})"
        lines += [f"  {sign} {terminal.style(finding['key'], 'bold')}{level}", f"      {finding['message']}"]
        if finding.get("suggestion"):
            lines.append(f"      → {finding['suggestion']}")
    return lines
