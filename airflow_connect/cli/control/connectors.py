"""`airflow-connect connectors`: what Kafka Connect's REST API does with connectors."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import (
    Actions,
    add_name,
    add_yes,
    bullet,
    is_confirmed,
    not_confirmed,
    refuse_hidden,
    run_action,
    shown_config,
)
from airflow_connect.cli.control.target import connectors_of
from airflow_connect.cli.inputs import complete_files
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import Table, plural

NAME = "connectors"
HELP = "list, create, change, pause, restart registered connectors"
_TRACE_LINES = 6


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of every action."""
    actions = Actions(parser)
    actions.add("list", _list, "all connectors with their states")
    get = actions.add("get", _get, "the configuration of a connector")
    add_name(get)
    get.add_argument("--with-secrets", action="store_true", help="print passwords as they are registered")
    create = actions.add("create", _create, "register connectors that do not exist yet")
    _add_files(create)
    create.add_argument(
        "--state", choices=("RUNNING", "PAUSED", "STOPPED"), default=None, help="their first state (default: RUNNING)"
    )
    apply = actions.add("apply", _apply, "create connectors, or change them to what the files say")
    _add_files(apply)
    apply.add_argument("--dry-run", action="store_true", help="show what would change, but change nothing")
    delete = actions.add("delete", _delete, "remove connectors; their offsets stay")
    add_name(delete, several=True)
    add_yes(delete)
    for name, what in _CHANGES.items():
        add_name(actions.add(name, _changing(name), what), several=True)
    restart = actions.add("restart", _restart, "run connectors now, and forget their failures")
    add_name(restart, several=True)
    restart.add_argument("--only-failed", action="store_true", help="only what has failed")
    add_name(actions.add("status", _status, "states of connectors and their tasks, and why they failed"), several=True)


_CHANGES = {
    "pause": "let no run begin; one that is running ends first",
    "resume": "let runs begin again",
    "stop": "let no run begin and remove the tasks, so that offsets may be changed",
}

run = run_action


def _add_files(parser: ArgumentParser) -> None:
    complete_files(
        parser.add_argument("files", nargs="+", metavar="file", help="connector configuration, .properties or JSON")
    )


def _list(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    found = connectors_of(arguments, terminal).expanded()
    rows = [_row(name, known) for name, known in sorted(found.items())]
    table = Table(("NAME", "TYPE", "STATE", "TASKS", "CLASS"), rows, "<<<<<")
    shown = {
        name: {
            **known,
            **({"info": {**known["info"], "config": shown_config(known["info"]["config"])}} if "info" in known else {}),
        }
        for name, known in found.items()
    }
    lines: list[Block] = [table] if rows else ["No connectors."]
    return CommandOutcome(f"{plural(len(found), 'connector')}.", {"connectors": shown}, lines)


def _row(name: str, known: Mapping[str, Any]) -> tuple[str, ...]:
    status, info = known.get("status", {}), known.get("info", {})
    states = Counter(task["state"] for task in status.get("tasks", ()))
    tasks = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    kind = str(info.get("type") or status.get("type") or "unknown")
    connector_class = str(info.get("config", {}).get("connector.class") or "")
    return name, kind, status.get("connector", {}).get("state", "UNASSIGNED"), tasks or "none", connector_class


def _get(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    info = connectors_of(arguments, terminal).info(arguments.name)
    config = shown_config(info["config"], with_secrets=arguments.with_secrets)
    lines = [line(text, breaks=False) for text in json.dumps(config, indent=2, ensure_ascii=False).splitlines()]
    return CommandOutcome(f"{plural(len(config), 'key')}.", {**info, "config": config}, list(lines))


def _create(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)

    def one(path: str) -> tuple[str, str]:
        name, config = _file(path, terminal)
        connectors.create(name, config, arguments.state)
        return name, "created"

    return _each(arguments.files, one)


def _apply(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)

    def one(path: str) -> tuple[str, str]:
        name, config = _file(path, terminal)
        differences = _differences(connectors.config(name), {**config, "name": name})
        if arguments.dry_run:
            return name, "\n".join(["would be changed" if differences else "unchanged", *differences])
        return name, "\n".join([connectors.apply(name, config), *differences])

    return _each(arguments.files, one)


def _file(path: str, terminal: Terminal) -> tuple[str, dict[str, Any]]:
    config = read_connector_file(path)
    terminal.hide({}, secret_values(config))
    name = str(config.get("name") or "")
    if not name:
        raise ConfigError(f"{path} has no name.", config_path="name", suggestion="Set `name`.")
    refuse_hidden(config, path)
    return name, config


def _differences(now: Mapping[str, Any] | None, wanted: Mapping[str, Any]) -> list[str]:
    """Keys that change, one a line; values of secrets are hidden."""
    if now is None:
        return []
    old = {key: str(value) for key, value in now.items()}
    new = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in wanted.items()}
    before, after = shown_config(old), shown_config(new)
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return [
        f"+ {key}={after[key]}"
        if key not in old
        else f"- {key}={before[key]}"
        if key not in new
        else f"~ {key}: {before[key]} → {after[key]}"
        for key in changed
    ]


def _delete(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)
    for name in arguments.names:
        connectors.info(name)
    what = ", ".join(arguments.names)
    if not is_confirmed(arguments, terminal, f"Delete {what}? The offsets stay."):
        return not_confirmed()

    def one(name: str) -> tuple[str, str]:
        return name, "deleted" if connectors.delete(name) else "gone already"

    return _each(arguments.names, one)


def _changing(what: str) -> Callable[[Namespace, Terminal], CommandOutcome]:
    def change(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
        connectors = connectors_of(arguments, terminal)

        def one(name: str) -> tuple[str, str]:
            getattr(connectors, what)(name)
            return name, f"{what} requested"

        return _each(arguments.names, one)

    return change


def _restart(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)

    def one(name: str) -> tuple[str, str]:
        connectors.restart(name, only_failed=arguments.only_failed)
        return name, "restart requested"

    return _each(arguments.names, one)


def _status(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)
    found = {name: connectors.states(name) for name in arguments.names}
    return CommandOutcome(
        f"{plural(len(found), 'connector')}.",
        {"connectors": found},
        [block for states in found.values() for block in state_blocks(states)],
    )


def state_blocks(states: Mapping[str, Any]) -> list[Block]:
    """ConnectorStateInfo as a line, a table of the tasks, and the traces of failures."""
    parts = [("connector", states["connector"])] + [(f"task {task['id']}", task) for task in states["tasks"]]
    rows = [(what, part["state"], str(part.get("worker_id") or "")) for what, part in parts]
    blocks: list[Block] = [
        line((states["name"], "bold"), f"  {states.get('type', 'unknown')}"),
        Table(("PART", "STATE", "WORKER"), rows, "<<<", indent=2),
    ]
    for what, part in parts:
        if part.get("trace"):
            blocks.append(line((f"✗ {what}", "red"), indent=2))
            blocks += [line(text, indent=6) for text in str(part["trace"]).splitlines()[:_TRACE_LINES]]
    return blocks


def _each(words: list[str], one: Callable[[str], tuple[str, str]]) -> CommandOutcome:
    """Do one thing after the other, even if one of them fails."""
    results: list[dict[str, Any]] = []
    lines: list[Block] = []
    errors: list[Mapping[str, Any]] = []
    for word in words:
        try:
            name, done = one(word)
        except ConnectError as error:
            failure = {**error.to_json(), "message": f"{word}: {error.message}"}
            errors.append(failure)
            results.append({"given": word, "error": failure})
            continue
        head, *more = done.splitlines()
        lines += [bullet(f"{name}: {head}"), *(line(text, indent=4, hang=4) for text in more)]
        results.append({"given": word, "name": name, "done": head, "differences": more, "error": None})
    failed = f", {len(errors)} failed" if errors else ""
    return CommandOutcome(
        summary=f"{len(results) - len(errors)} of {plural(len(results), 'connector')} done{failed}.",
        result={"connectors": results},
        lines=lines,
        errors=errors,
        exit_code=max(map(exit_code_of, errors), default=0),
    )
