"""`airflow-connect restore`: what follows when topics are restored: offsets of consumer groups, settings of topics."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.inputs import add_files, common_flags, label_of, sentence, spec_of
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.texts import Table, plural

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.groups.step import GroupOffset, GroupOffsets
    from airflow_connect.runtime.spec import RunSpec

NAME = "restore"
HELP = "set offsets of consumer groups, or settings of topics, after a restore from a backup"
_GROUPS = "translate the offsets of consumer groups that a backup has, and set them in the restored topics"
_SETTINGS = "set the settings of restored topics that would have deleted records meanwhile: those of the originals"
MOST_SHOWN = 200


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of the action."""
    actions = parser.add_subparsers(metavar="action", required=True)
    groups = actions.add_parser("groups", parents=[common_flags()], help=_GROUPS, description=sentence(_GROUPS))
    add_files(groups)
    groups.add_argument(
        "--groups", default="", metavar="REGEX", help="only groups whose whole name matches (Java; default: all)"
    )
    groups.add_argument(
        "--document",
        default="",
        metavar="RUN",
        help="the offsets that this run of the sink has found, by its run id (default: the newest document)",
    )
    groups.add_argument("--dry-run", action="store_true", help="show the translated offsets, but set none")
    groups.add_argument(
        "--overwrite", action="store_true", help="also groups that have committed other offsets in the restored topics"
    )
    groups.set_defaults(step=_set_groups, summary=_groups_summary)
    settings = actions.add_parser("settings", parents=[common_flags()], help=_SETTINGS, description=sentence(_SETTINGS))
    add_files(settings)
    settings.add_argument("--dry-run", action="store_true", help="show the settings, but set none")
    settings.set_defaults(step=_set_settings, summary=_settings_summary)


class Done(NamedTuple):
    """What an action has done for one restore.

    Attributes:
        result: plain JSON.
        lines: to show.
        failures: of parts that could not be set.
    """

    result: dict[str, Any]
    lines: list[Block]
    failures: list[ConnectError]


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Carry out an action for each restore; one that fails does not stop the others."""
    worker = read_worker_file(arguments.worker)
    return run_interruptible(lambda stopping: _for_each(arguments, worker, stopping), terminal)


def _for_each(arguments: Namespace, worker: Mapping[str, Any], stopping: threading.Event) -> CommandOutcome:
    results: list[dict[str, Any]] = []
    lines: list[Block] = []
    errors: list[Mapping[str, Any]] = []
    for path in arguments.connectors:
        if stopping.is_set():
            break
        connector: Mapping[str, Any] | None = None
        try:
            spec = spec_of(path, worker, NAME, arguments.settings)
            connector = spec.connector
            done: Done = arguments.step(spec, arguments)
        except ConnectError as error:
            failure = {**error.to_json(), "message": f"{label_of(path, connector)}: {error.message}"}
            errors.append(failure)
            results.append({"file": path, "error": failure})
            continue
        errors += [error.to_json() for error in done.failures]
        results.append({"file": path, "error": None, **done.result})
        lines += [line((label_of(path, connector), "bold")), *done.lines]
    return CommandOutcome(
        summary=arguments.summary(results, is_dry=arguments.dry_run),
        result={"connectors": results},
        lines=lines,
        errors=errors,
        exit_code=max(map(exit_code_of, errors), default=0),
    )


def _set_groups(spec: RunSpec, arguments: Namespace) -> Done:
    from airflow_connect.runtime.driver.offsets.restored_groups import GroupChoice, restore_groups

    choice = GroupChoice(
        arguments.groups, arguments.document, only_shows=arguments.dry_run, overwrites=arguments.overwrite
    )
    found = restore_groups(spec, choice)
    return Done(found.to_json(), _told(found), list(found.failures.values()))


def _groups_summary(results: Sequence[Mapping[str, Any]], *, is_dry: bool) -> str:
    offsets = [one for result in results for one in result.get("offsets", ())]
    done = sum(one["isDone"] for one in offsets)
    return f"{plural(len(offsets), 'offset')} translated" + ("." if is_dry else f", {done} set.")


def _set_settings(spec: RunSpec, arguments: Namespace) -> Done:
    from airflow_connect.runtime.driver.offsets.restored_settings import restore_settings

    found = restore_settings(spec, only_shows=arguments.dry_run)
    rows = []
    for one in found:
        state = "refused" if one.failure else ("set" if one.is_done else "to be set")
        settings = [f"{name}={value} (is {one.before.get(name, 'unknown')})" for name, value in one.settings.items()]
        rows.append((one.topic, ", ".join(settings), str(one.deleted_soon), state))
    header = ("TOPIC", "SETTINGS", "DELETED SOON", "STATE")
    none = "Nothing is to be set: no topic was created, and none had settings that were lifted."
    shown: list[Block] = [Table(header, rows, "<<><", 2)] if rows else [line(none, indent=2)]
    return Done({"topics": [one.to_json() for one in found]}, shown, [one.failure for one in found if one.failure])


def _settings_summary(results: Sequence[Mapping[str, Any]], *, is_dry: bool) -> str:
    topics = [one for result in results for one in result.get("topics", ())]
    done = sum(one["isDone"] for one in topics)
    return f"{plural(len(topics), 'topic')} with settings to set" + ("." if is_dry else f", {done} done.")


def _told(found: GroupOffsets) -> list[Block]:
    header = ("GROUP", "BACKUP", "OFFSET", "RESTORED", "OFFSET", "STATE")
    shown = found.offsets[:MOST_SHOWN]
    rows = [
        (one.group, str(one.original), str(one.offset), str(one.restored), str(one.new_offset), _state(one, found))
        for one in shown
    ]
    blocks: list[Block] = [line(f"Offsets of groups as in {found.document}:", indent=2)]
    blocks += [Table(header, rows, "<<><><", 2)] if rows else [line("No group has offsets there.", indent=2)]
    if len(found.offsets) > len(shown):
        blocks.append(line(f"And {len(found.offsets) - len(shown)} more; --json shows all.", indent=2))
    return [*blocks, *(line((note, "yellow"), indent=2) for note in found.notes)]


def _state(one: GroupOffset, found: GroupOffsets) -> str:
    state = "refused" if one.group in found.failures else ("set" if one.is_done else "translated")
    return f"{state}; {one.note}" if one.note else state
