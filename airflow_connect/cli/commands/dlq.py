"""`airflow-connect dlq`: shows dead letters, and writes them back to the topics that they came from."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.inputs import add_files, common_flags, label_of, positive, sentence, spec_of
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.texts import format_count, plural

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

NAME = "dlq"
HELP = "show the dead letters of connectors, or replay them"

Answer = tuple[dict[str, Any], list[Block]]
"""The result as plain JSON, and as lines for users."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of both actions."""
    common = common_flags()
    actions = parser.add_subparsers(metavar="action", required=True)
    show = actions.add_parser("show", parents=[common], help=_SHOW, description=sentence(_SHOW))
    add_files(show)
    show.add_argument("--limit", type=positive, default=20, metavar="N", help="maximum number of letters (default: 20)")
    show.add_argument("--from-beginning", action="store_true", help="the oldest letters instead of the newest")
    show.add_argument("--connector", default="", metavar="NAME", help="only letters of this connector")
    _add_filters(show)
    show.set_defaults(action=_show, counted=_shown)
    replay = actions.add_parser("replay", parents=[common], help=_REPLAY, description=sentence(_REPLAY))
    add_files(replay)
    replay.add_argument("--dry-run", action="store_true", help="show what would be replayed, but write nothing")
    replay.add_argument("--to", default="", metavar="TOPIC", help="write all of them to this topic")
    replay.add_argument("--from-beginning", action="store_true", help="also letters that were replayed before")
    _add_filters(replay)
    replay.set_defaults(action=_replay, counted=_replayed)


_SHOW = "show dead letters: origin, reason, and the beginning of the value"
_REPLAY = "write dead letters back to the topics that they came from, each one once"


def _add_filters(parser: ArgumentParser) -> None:
    parser.add_argument("--stage", default="", help="only letters of this stage, such as VALUE_CONVERTER")
    parser.add_argument(
        "--error", default="", metavar="TEXT", help="only letters whose error class or message contains this"
    )
    parser.add_argument(
        "--since",
        type=_time,
        default=None,
        metavar="TIME",
        help="only letters with this timestamp (ISO 8601) or a later one: that of the record that failed, or, if the"
        " queue did not accept it, that of the letter",
    )


def _time(text: str) -> int:
    try:
        return parse_timestamp_ms(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Show or replay the dead letters of every connector; a connector that fails does not stop the others."""
    worker = read_worker_file(arguments.worker)
    return run_interruptible(lambda stopping: _for_each(arguments, worker, terminal, stopping), terminal)


def _for_each(
    arguments: Namespace, worker: Mapping[str, Any], terminal: Terminal, stopping: threading.Event
) -> CommandOutcome:
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

    action: Callable[[SinkConfiguration, Namespace], Answer] = arguments.action
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
            result, told = action(SinkConfiguration.from_spec(spec), arguments)
        except ConnectError as error:
            failure = {**error.to_json(), "message": f"{label_of(path, connector)}: {error.message}"}
            errors.append(failure)
            results.append({"file": path, "error": failure})
            continue
        results.append({"file": path, "error": None, **result})
        lines += [line((label_of(path, connector), "bold")), *told]
    return CommandOutcome(
        summary=_summary(results, arguments.counted),
        result={"connectors": results},
        lines=lines,
        errors=errors,
        exit_code=max(map(exit_code_of, errors), default=0),
    )


def _summary(results: list[dict[str, Any]], counted: Callable[[dict[str, Any]], int]) -> str:
    failed = sum(1 for result in results if result["error"])
    letters = plural(sum(counted(result) for result in results if not result["error"]), "dead letter")
    verb = "shown" if counted is _shown else "replayed"
    return f"{letters} {verb}, {plural(failed, 'connector')} failed." if failed else f"{letters} {verb}."


def _shown(result: dict[str, Any]) -> int:
    return len(result["letters"])


def _replayed(result: dict[str, Any]) -> int:
    return 0 if result["dry_run"] else int(result["replayed"])


def _show(configuration: SinkConfiguration, arguments: Namespace) -> Answer:
    from airflow_connect.runtime.driver.dead_letters.view import describe, find_letters, letter_table

    found = find_letters(
        configuration, _filter(arguments, arguments.connector), arguments.limit, oldest=arguments.from_beginning
    )
    result = {
        "queue": found.queue,
        "matching": found.matching,
        "letters": [describe(letter) for letter in found.letters],
    }
    if not found.letters:
        return result, [line(f"No dead letters in {found.queue}.", indent=2)]
    which = "oldest" if arguments.from_beginning else "newest"
    told = f"{format_count(len(found.letters))} of {plural(found.matching, 'dead letter')} in {found.queue}"
    more = f", the {which}" if found.matching > len(found.letters) else ""
    return result, [line(f"{told}{more}:", indent=2), letter_table(found.letters, indent=2)]


def _replay(configuration: SinkConfiguration, arguments: Namespace) -> Answer:
    from airflow_connect.runtime.driver.dead_letters.replay import ReplayRequest, replay

    request = ReplayRequest(_filter(arguments, ""), arguments.to, arguments.dry_run, arguments.from_beginning)
    done = replay(configuration, request)
    verb = "Would replay" if arguments.dry_run else "Replayed"
    lines = [f"{verb} {plural(done.topics.total(), 'dead letter')} of {done.queue}."]
    lines += [f"{format_count(count)} to {topic}" for topic, count in sorted(done.topics.items())]
    lines += [
        f"{format_count(count)} had failed in {stage or 'an unknown stage'} with {error or 'an unknown error'}"
        for (stage, error), count in done.reasons.most_common()
    ]
    if done.repeated:
        lines.append(f"{format_count(done.repeated)} skipped: another letter is about the same record")
    if done.others:
        lines.append(f"{format_count(done.others)} stay: they belong to other connectors")
    if done.passed_over:
        lines.append(f"{format_count(done.passed_over)} stay: not selected; a later replay can write them")
    lines += done.notes
    return {"dry_run": arguments.dry_run, **done.to_json()}, [line(text, indent=2, hang=2) for text in lines]


def _filter(arguments: Namespace, connector: str) -> Any:
    from airflow_connect.kafka.reading.dead_letters import LetterFilter

    return LetterFilter(connector, arguments.stage, arguments.error, arguments.since)
