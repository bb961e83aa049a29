"""`airflow-connect validate`: every finding about configuration files, offline."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.inputs import complete_files, label_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.config.keys.sink import CONNECTOR_CLASS
from airflow_connect.errors import EXIT_CONFIG_WRONG, EXIT_DONE, ConfigError
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.reporting.texts import plural
from airflow_connect.runtime.spec import RunSpec

NAME = "validate"
HELP = "check configuration files without any server"
_STAND_IN_WORKER = {"bootstrap.servers": "not-asked:9092"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments: files, of which the first may be a worker file, or the class to describe."""
    either = parser.add_mutually_exclusive_group(required=True)
    complete_files(
        either.add_argument(
            "files",
            nargs="*",
            metavar="file",
            default=[],
            help="connector files; a worker file may come first",
        )
    )
    either.add_argument(
        "--json-schema",
        metavar="CLASS",
        help="print the JSON Schema for configurations of this connector class, for editors; checks nothing",
    )


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Check every file, or describe a class."""
    if arguments.json_schema is not None:
        return _schema_of(arguments.json_schema)
    files = list(arguments.files)
    worker = _leading_worker_file(files)
    results = [_check(path, worker, with_infos=terminal.as_json) for path in files]
    wrong = sum(1 for result in results if not result["ok"])
    return CommandOutcome(
        summary=f"{plural(len(results) - wrong, 'connector')} valid, {wrong} wrong.",
        result={"connectors": results},
        lines=[block for result in results for block in _blocks(result)],
        exit_code=EXIT_CONFIG_WRONG if wrong else EXIT_DONE,
    )


def _schema_of(name: str) -> CommandOutcome:
    from airflow_connect.api.config.json_schema import json_schema
    from airflow_connect.config.resolved.loading import connector_definition

    schema = json_schema(connector_definition({CONNECTOR_CLASS: name}), name)
    return CommandOutcome(
        summary=f"The keys of {name} as JSON Schema.",
        result={"schema": schema},
        lines=[line(text, breaks=False) for text in json.dumps(schema, indent=2).splitlines()],
    )


def _leading_worker_file(files: list[str]) -> Mapping[str, Any]:
    """Separate a worker file from the connector files: the first one, if it names brokers and no connector class."""
    if len(files) > 1:
        first = read_connector_file(files[0])
        if CONNECTOR_CLASS not in first and "bootstrap.servers" in first:
            del files[0]
            return first
    return _STAND_IN_WORKER


def _check(path: str, worker: Mapping[str, Any], *, with_infos: bool) -> dict[str, Any]:
    from airflow_connect.runtime.driver.checks.java import JavaAnswer, java_answer
    from airflow_connect.runtime.driver.entry import validate_connector

    name = label_of(path)
    infos: dict[str, Any] | None = None
    try:
        connector = read_connector_file(path)
        name = label_of(path, connector)
        spec = RunSpec(connector=connector, worker=worker)
        findings = _certain_findings(validate_connector(spec), worker)
        of_java = JavaAnswer()
        if all(finding["level"] != "error" for finding in findings):
            of_java = java_answer(spec)
            findings = [*of_java.findings, *findings]
        if with_infos and (own := _infos(spec)) is not None:
            infos = of_java.complete(own)
    except ConfigError as error:
        findings = [
            {"key": error.config_path, "message": error.message, "suggestion": error.suggestion, "level": "error"}
        ]
    is_valid = all(finding["level"] != "error" for finding in findings)
    return {"file": path, "name": name, "ok": is_valid, "findings": findings, "config_infos": infos}


def _certain_findings(findings: list[dict[str, Any]], worker: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Without a worker file, its config providers are unknown, and a reference to one of them may be valid."""
    if worker is not _STAND_IN_WORKER:
        return findings
    unknown = {finding["key"] for finding in findings if finding["level"] == "unknown"}
    return [finding for finding in findings if finding["level"] != "error" or finding["key"] not in unknown]


def _infos(spec: RunSpec) -> dict[str, Any] | None:
    """ConfigInfos; None if the connector class, and so its keys, are unknown; this is one of the findings."""
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

    try:
        return SinkConfiguration.infos(spec)
    except ConfigError:
        return None


def _blocks(result: Mapping[str, Any]) -> list[Block]:
    mark = ("✓", "green") if result["ok"] else ("✗", "red")
    blocks: list[Block] = [line(mark, " ", (result["name"], "bold"), f"  {result['file']}")]
    for finding in result["findings"]:
        wrong = finding["level"] == "error"
        sign = ("✗", "red") if wrong else ("⚠", "yellow")
        level = "" if wrong else f" ({finding['level']})"
        blocks += [line(sign, " ", (finding["key"], "bold"), level, indent=2), line(finding["message"], indent=6)]
        if finding.get("suggestion"):
            blocks.append(line((f"→ {finding['suggestion']}", "cyan"), indent=6, hang=2))
    return blocks
