"""`airflow-connect offsets`: where a connector continues, and how to change that."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import (
    Actions,
    add_name,
    add_yes,
    bullet,
    is_confirmed,
    not_confirmed,
    run_action,
)
from airflow_connect.cli.control.chosen import Chosen, choose
from airflow_connect.cli.inputs import complete_files
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.reporting.texts import Table, plural

if TYPE_CHECKING:
    from airflow_connect.observe.inspecting.previewing import OffsetChange

NAME = "offsets"
HELP = "show, compare, set, reset the offsets of a connector"
_NO_CHANGE = "no change"

run = run_action


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of every action."""
    actions = Actions(parser)
    add_name(actions.add("get", _get, "committed offsets"), or_file=True)
    _add_wanted(actions.add("diff", _diff, "what `set` would change; changes nothing"))
    change = actions.add("set", _set, "let the next run start elsewhere; the connector must be stopped")
    _add_wanted(change)
    add_yes(change)
    reset = actions.add("reset", _reset, "delete offsets, as if the connector had never run; it must be stopped")
    add_name(reset, or_file=True)
    _add_partitions(reset)
    add_yes(reset)


def _add_wanted(parser: ArgumentParser) -> None:
    add_name(parser, or_file=True)
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument(
        "--to",
        metavar="POSITION",
        help="earliest, latest, a time (ISO 8601: the first record at or after it), or an offset",
    )
    complete_files(
        either.add_argument(
            "--file",
            metavar="FILE",
            help='JSON: {"offsets": [...]} as of the REST API, output of `offsets get --json` or {"topic-0": POSITION}',
        )
    )
    _add_partitions(parser)


def _add_partitions(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--partition",
        action="append",
        default=[],
        metavar="TOPIC-N",
        dest="partitions",
        help="only this partition of a sink, such as meetups-0; can be repeated (default: all)",
    )


def _get(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    chosen = choose(arguments, terminal, "offsets get")
    offsets = _committed(chosen)
    rows = [(_place(entry["partition"]), _shown(entry["offset"])) for entry in offsets]
    lines: list[Block] = [Table(("PARTITION", "OFFSET"), rows, "<>")] if rows else ["No offsets."]
    return CommandOutcome(f"{plural(len(rows), 'offset')}.", {"name": chosen.name, "offsets": offsets}, lines)


def _diff(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    chosen = choose(arguments, terminal, "offsets diff")
    return _told(chosen, _changes(chosen, _wanted(arguments)), is_done=False)


def _set(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    chosen = choose(arguments, terminal, "offsets set")
    chosen.refuse_running()
    return _make(chosen, _changes(chosen, _wanted(arguments)), arguments, terminal)


def _reset(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    chosen = choose(arguments, terminal, "offsets reset")
    chosen.refuse_running()
    wanted = dict.fromkeys(arguments.partitions) if arguments.partitions else None
    return _make(chosen, _changes(chosen, wanted), arguments, terminal)


def _make(chosen: Chosen, changes: list[OffsetChange], arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Show the changes, ask, and make them."""
    if all(change.effect == _NO_CHANGE for change in changes):
        return _told(chosen, changes, is_done=False)
    if not arguments.yes and not terminal.as_json:
        terminal.note(_table(changes))
    if not is_confirmed(arguments, terminal, f"Change the offsets of {chosen.name}?"):
        return not_confirmed()
    entries = [change.entry for change in changes if change.effect != _NO_CHANGE]
    if chosen.registered is not None:
        chosen.registered.alter_offsets(chosen.name, entries)
    else:
        from airflow_connect.runtime.driver.entry import set_offsets

        assert chosen.spec is not None
        set_offsets(chosen.spec, entries)
    return _told(chosen, changes, is_done=True)


def _told(chosen: Chosen, changes: list[OffsetChange], *, is_done: bool) -> CommandOutcome:
    count = sum(change.effect != _NO_CHANGE for change in changes)
    verb = "changed" if is_done else "would be changed"
    told = f"{chosen.name}: {plural(count, 'offset')} {verb}." if count else f"{chosen.name}: nothing to change."
    result = {"name": chosen.name, "changed": is_done, "offsets": [change.to_json() for change in changes]}
    lines: list[Block] = [_table(changes)] if changes else []
    return CommandOutcome(told, result, [*lines, bullet(told) if is_done else line(told)])


def _table(changes: list[OffsetChange]) -> Table:
    rows = [(_place(c.partition), _shown(c.before), _shown(c.after), c.effect) for c in changes]
    return Table(("PARTITION", "OLD", "NEW", "EFFECT"), rows, "<>><")


def _wanted(arguments: Namespace) -> Any:
    """Positions as `set_offsets` takes them.

    Raises:
        ConfigError: the file is missing or no JSON.
    """
    if arguments.file is None:
        return dict.fromkeys(arguments.partitions, arguments.to) if arguments.partitions else arguments.to
    if arguments.partitions:
        raise ConfigError("--partition is given with --file.", suggestion="Name the partitions in the file.")
    path = Path(arguments.file)
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", code="config.file_missing") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}.", code="config.file_invalid") from error
    return _entries(found)


def _entries(found: Any) -> Any:
    """The offsets of a file: as the REST API has them, or as `offsets get --json` prints them for any connector."""
    printed = found.get("result") if isinstance(found, dict) and found.get("command") == NAME else None
    if isinstance(printed, dict) and set(printed) == {"name", "offsets"}:
        return printed["offsets"]
    return found["offsets"] if isinstance(found, dict) and set(found) == {"offsets"} else found


def _changes(chosen: Chosen, wanted: Any) -> list[OffsetChange]:
    from airflow_connect.observe.inspecting.previewing import changes_between, preview_offsets

    if chosen.spec is not None:
        return preview_offsets(chosen.spec, wanted)
    known = _committed(chosen)
    if wanted is None:
        return changes_between(known, [{"partition": entry["partition"], "offset": None} for entry in known])
    return changes_between(known, _absolute(wanted, known))


def _absolute(wanted: Any, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Offsets for a REST API, which knows no ends and no times.

    Raises:
        ConfigError: a position is not an offset.
    """
    from airflow_connect.planning.chosen_positions import parse_positions

    if isinstance(wanted, list) and not any("kafka_topic" in (entry.get("partition") or {}) for entry in wanted):
        return wanted
    places = {(str(e["partition"].get("kafka_topic")), int(e["partition"].get("kafka_partition", 0))) for e in known}
    found: dict[tuple[str, int], int | None] = {}
    for place, position in parse_positions(wanted, "offsets").items():
        if position.kind not in ("offset", "none"):
            raise ConfigError(
                f"The position {position.kind} needs the ends of the topics, which a REST API does not know.",
                suggestion="Give an offset, or use --worker instead of --url.",
            )
        number = position.number if position.kind == "offset" else None
        found |= dict.fromkeys(places if place is None else [(place.topic, place.partition)], number)
    return [
        {
            "partition": {"kafka_topic": topic, "kafka_partition": partition},
            "offset": None if number is None else {"kafka_offset": number},
        }
        for (topic, partition), number in sorted(found.items())
    ]


def _committed(chosen: Chosen) -> list[dict[str, Any]]:
    if chosen.registered is not None:
        return chosen.registered.offsets(chosen.name)
    from airflow_connect.observe.status.connector_state import committed_offsets

    assert chosen.spec is not None
    return committed_offsets(chosen.spec)


def _place(partition: dict[str, Any]) -> str:
    if "kafka_topic" in partition:
        return f"{partition['kafka_topic']}-{partition['kafka_partition']}"
    return json.dumps(partition, ensure_ascii=False)


def _shown(offset: dict[str, Any] | None) -> str:
    if offset is None:
        return "-"
    return str(offset["kafka_offset"]) if set(offset) == {"kafka_offset"} else json.dumps(offset, ensure_ascii=False)
