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
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.texts import Table, plural

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.documents import Documents, RunDocument
    from airflow_connect.connectors.restore.groups.step import GroupOffset, GroupOffsets
    from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

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
    from airflow_connect.runtime.driver.source.configuration import SourceConfiguration

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
            found = _found(SourceConfiguration.from_spec(spec), arguments)
        except ConnectError as error:
            failure = {**error.to_json(), "message": f"{label_of(path, connector)}: {error.message}"}
            errors.append(failure)
            results.append({"file": path, "error": failure})
            continue
        errors += [error.to_json() for error in found.failures.values()]
        results.append(_result(path, found))
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


def _found(configuration: SourceConfiguration, arguments: Namespace) -> GroupOffsets:
    from airflow_connect.connectors.restore.connector import RestoreConnector
    from airflow_connect.connectors.restore.documents import Documents
    from airflow_connect.connectors.restore.groups.step import apply, translate
    from airflow_connect.java.patterns.compiled import compile_java_pattern
    from airflow_connect.runtime.driver.source.kafka_session import SourceSession

    if not issubclass(configuration.connector_class, RestoreConnector):
        raise ConfigError(
            f"{configuration.name} does not restore a backup.",
            code="restore.no_restore",
            config_path="connector.class",
            suggestion="Name the configuration with which the topics were restored.",
        )
    pattern = compile_java_pattern(arguments.groups) if arguments.groups else None
    connector = configuration.connector_class()
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        try:
            restored = connector.restored(configuration.resolved.connector.raw, kafka.read_offsets().items())
            documents = Documents(restored.store, restored.backup.documents)
            document = _document(documents, arguments.document, restored.typed.root)
            found = translate(
                restored,
                document,
                lambda group: pattern is None or pattern.fullmatch(group) is not None,
                kafka.admin,
                configuration.consumer.settings,
            )
            found.notes = [*documents.notes, *found.notes]
            if not arguments.dry_run:
                apply(found, kafka.admin, overwrite=arguments.overwrite)
            return found
        finally:
            connector.stop()


def _document(documents: Documents, run_id: str, root: str) -> RunDocument:
    for document in documents:
        if not run_id or document.name.rpartition("/")[2] == f"{run_id}.json":
            return document
    what = f"of run {run_id}" if run_id else "of a run of the sink"
    raise ConfigError(
        f"{root} has no document {what} with offsets of consumer groups."
        + "".join(f" {note}" for note in documents.notes),
        code="restore.no_document",
        suggestion="Sinks write one with each run of a backup, below +runs. Backups of earlier releases have none.",
    )


def _result(path: str, found: GroupOffsets) -> dict[str, Any]:
    return {
        "file": path,
        "error": None,
        "document": found.document,
        "offsets": [one.to_json() for one in found.offsets],
        "failures": {group: error.to_json() for group, error in found.failures.items()},
        "notes": found.notes,
    }


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
