"""`airflow-connect validate`: every finding about configuration files, offline."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from airflow_connect.api.connector_keys import CONNECTOR_CLASS
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
    """Files, the first may be a worker's; or the class whose keys are to be described."""
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument(
        "files", nargs="*", metavar="file", default=[], help="connector files; a worker file may stand in front of them"
    )
    either.add_argument(
        "--json-schema",
        metavar="CLASS",
        help="check nothing, and print the JSON Schema of configurations of this connector class, for editors",
    )


def run(arguments: Namespace, terminal: Terminal) -> Outcome:
    """Check every file, or describe a class."""
    if arguments.json_schema is not None:
        return _schema_of(arguments.json_schema)
    files = list(arguments.files)
    worker = _worker_in_front(files)
    results = [_check(path, worker, with_infos=terminal.as_json) for path in files]
    wrong = sum(1 for result in results if not result["ok"])
    return Outcome(
        summary=f"{plural(len(results) - wrong, 'connector')} valid, {wrong} wrong.",
        result={"connectors": results},
        lines=[line for result in results for line in _lines(result, terminal)],
        exit_code=EXIT_CONFIG_WRONG if wrong else EXIT_DONE,
    )


def _schema_of(name: str) -> Outcome:
    from airflow_connect.api.config_json_schema import json_schema
    from airflow_connect.api.resolved_config import connector_definition

    schema = json_schema(connector_definition({CONNECTOR_CLASS: name}), name)
    return Outcome(
        summary=f"The keys of {name} as JSON Schema.",
        result={"schema": schema},
        lines=json.dumps(schema, indent=2).splitlines(),
    )


def _worker_in_front(files: list[str]) -> Mapping[str, Any]:
    """Take a worker file away from the front of `files`: one that names brokers and no connector class."""
    if len(files) > 1:
        first = read_connector_file(files[0])
        if CONNECTOR_CLASS not in first and "bootstrap.servers" in first:
            del files[0]
            return first
    return _STAND_IN_WORKER


def _check(path: str, worker: Mapping[str, Any], *, with_infos: bool) -> dict[str, Any]:
    from airflow_connect.runtime.driver.run import validate_connector

    name = label_of(path)
    infos: dict[str, Any] | None = None
    try:
        connector = read_connector_file(path)
        name = label_of(path, connector)
        spec = RunSpec(connector=connector, worker=worker)
        findings = _believable(validate_connector(spec), worker)
        if with_infos:
            infos = _infos(spec)
    except ConfigError as error:
        findings = [
            {"key": error.config_path, "message": error.message, "suggestion": error.suggestion, "level": "error"}
        ]
    is_valid = all(finding["level"] != "error" for finding in findings)
    return {"file": path, "name": name, "ok": is_valid, "findings": findings, "config_infos": infos}


def _believable(findings: list[dict[str, Any]], worker: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Without a worker file nobody knows its config providers: what a reference to one stands for may well be right."""
    if worker is not _STAND_IN_WORKER:
        return findings
    unknown = {finding["key"] for finding in findings if finding["level"] == "unknown"}
    return [finding for finding in findings if finding["level"] != "error" or finding["key"] not in unknown]


def _infos(spec: RunSpec) -> dict[str, Any] | None:
    """ConfigInfos; None where no class says which keys there are, which is among the findings."""
    from airflow_connect.runtime.driver.configuration import RunConfiguration

    try:
        return RunConfiguration.infos(spec)
    except ConfigError:
        return None


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
