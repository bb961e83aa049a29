"""`airflow-connect expire-snapshots`: shorten the history of the tables that an Iceberg sink fills."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from airflow_connect.cli.blocks import Block
from airflow_connect.cli.control.actions import add_name
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import add_target
from airflow_connect.cli.inputs import positive
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.reporting.texts import Table, format_count, plural

NAME = "expire-snapshots"
HELP = "expire old snapshots of the tables that an Iceberg sink fills, except those that runs still need"
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


def add_arguments(parser: ArgumentParser) -> None:
    """Connector, and what stays."""
    add_name(parser, or_file=True)
    parser.add_argument(
        "--older-than", type=_age_ms, metavar="AGE", help="30m, 12h, 7d (default: as each table says, or else 5d)"
    )
    parser.add_argument(
        "--keep-last",
        type=positive,
        metavar="N",
        help="of each branch, the newest N stay (default: as each table says, or else 1)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would expire, but write nothing")
    add_target(parser)


def _age_ms(text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,6})([mhd])", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not an age: write 30m, 12h or 7d")
    return int(found[1]) * _UNITS_MS[found[2]]


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Look at every table, and expire."""
    return run_interruptible(lambda _: _expire(arguments, terminal), terminal)


def _expire(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.runtime.driver.table_maintenance import expire_snapshots

    spec = spec_that_runs(arguments, terminal, NAME)
    found = expire_snapshots(spec, age_ms=arguments.older_than, least=arguments.keep_last, dry_run=arguments.dry_run)
    header = ("TABLE", "SNAPSHOTS", "EXPIRE" if arguments.dry_run else "EXPIRED", "YOUNG", "NEEDED")
    rows = [(one.table, *map(format_count, (one.snapshots, len(one.expired), one.young, one.needed))) for one in found]
    lines: list[Block] = [Table(header, rows, "<>>>>")] if rows else ["No table exists yet."]
    count = sum(len(one.expired) for one in found)
    did = "would expire" if arguments.dry_run else "expired"
    told = f"{plural(count, 'snapshot')} of {plural(len(found), 'table')} {did}."
    result = {"name": spec.connector["name"], "dry_run": arguments.dry_run, "tables": [one.to_json() for one in found]}
    return CommandOutcome(told, result, lines)
