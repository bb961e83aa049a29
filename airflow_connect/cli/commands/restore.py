"""`airflow-connect restore groups`: gives consumer groups their offsets in restored topics."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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

NAME = "restore"
HELP = "set offsets of consumer groups in topics that were restored from a backup"
_GROUPS = "translate the offsets of consumer groups that a backup has, and set them in the restored topics"
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


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Translate and set the offsets for each restore; one that fails does not stop the others."""
    worker = read_worker_file(arguments.worker)
    return run_interruptible(lambda stopping: _for_each(arguments, worker, terminal, stopping), terminal)


def _for_each(
    arguments: Namespace, worker: Mapping[str, Any], terminal: Terminal, stopping: threading.Event
) -> CommandOutcome:
    from airflow_connect.runtime.driver.offsets.restored_groups import GroupChoice, restore_groups

    choice = GroupChoice(
        arguments.groups, arguments.document, only_shows=arguments.dry_run, overwrites=arguments.overwrite
    )
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
            found = restore_groups(spec, choice)
        except ConnectError as error:
            failure = {**error.to_json(), "message": f"{label_of(path, connector)}: {error.message}"}
            errors.append(failure)
            results.append({"file": path, "error": failure})
            continue
        errors += [error.to_json() for error in found.failures.values()]
        results.append({"file": path, "error": None, **found.to_json()})
        lines += [line((label_of(path, connector), "bold")), *_told(found)]
    offsets = [one for result in results for one in result.get("offsets", ())]
    done = sum(one["isDone"] for one in offsets)
    summary = f"{plural(len(offsets), 'offset')} translated" + ("." if arguments.dry_run else f", {done} set.")
    return CommandOutcome(
        summary=summary,
        result={"connectors": results},
        lines=lines,
        errors=errors,
        exit_code=max(map(exit_code_of, errors), default=0),
    )


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
