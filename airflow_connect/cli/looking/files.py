"""`airflow-connect files`: the files that a sink has published."""

from __future__ import annotations

import re
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import add_name
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import add_target
from airflow_connect.cli.inputs import positive
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.looking.runs import time_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.runtime.reporting.texts import Table, format_bytes, format_count, plural

NAME = "files"
HELP = "the files that a sink has published, as its store lists them"
_SECONDS = {"m": 60, "h": 3600, "d": 86400}


def add_arguments(parser: ArgumentParser) -> None:
    """Connector, time and number of files."""
    add_name(parser, or_file=True)
    parser.add_argument(
        "--since",
        type=since,
        default=0,
        metavar="TIME",
        help="only files published since then: 30m, 12h, 1d, or a time (ISO 8601)",
    )
    parser.add_argument("--limit", type=positive, default=100, metavar="N", help="the newest N (default: 100)")
    add_target(parser)


def since(text: str) -> int:
    """Milliseconds since the epoch of `1d` or of a time.

    Raises:
        ArgumentTypeError: it is neither.
    """
    ago = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    if ago:
        return time.time_ns() // 1_000_000 - int(ago[1]) * _SECONDS[ago[2]] * 1000
    try:
        return parse_timestamp_ms(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a time: write 30m, 12h, 1d, or 2026-11-20T08:00:00Z") from error


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """List the store."""
    return run_interruptible(lambda _: _files(arguments, terminal), terminal)


def _files(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.observe.inspecting.files import published_files

    spec = spec_that_runs(arguments, terminal, NAME)
    found = sorted(published_files(spec, arguments.since), key=lambda file: (file.modified_ms, file.name))
    shown, size = found[-arguments.limit :], sum(file.size_bytes for file in found)
    rows = [
        (
            time_of(file.modified_ms),
            f"{file.topic}-{file.partition}",
            format_count(file.start),
            format_bytes(file.size_bytes),
            file.name,
        )
        for file in shown
    ]
    told = f"{plural(len(found), 'file')}, {format_bytes(size)}"
    more = f"; the newest {format_count(len(shown))} are shown" if len(shown) < len(found) else ""
    header = ("PUBLISHED", "PARTITION", "START", "SIZE", "NAME")
    lines: list[Block] = [Table(header, rows, "<<>><")] if rows else []
    result = {"count": len(found), "size_bytes": size, "files": [file.to_json() for file in shown]}
    return CommandOutcome(f"{told}.", result, [*lines, line(f"{told}{more}.")])
