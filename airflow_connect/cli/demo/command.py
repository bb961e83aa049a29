"""`airflow-connect demo`: two runs of a DAG, step by step."""

from __future__ import annotations

import contextlib
import signal
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Part, line
from airflow_connect.cli.live_progress import progress_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.steps import Step
from airflow_connect.cli.terminal import Terminal
from airflow_connect.documentation import page_url
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import missing_package
from airflow_connect.runtime.reporting.presentation import report_line
from airflow_connect.runtime.reporting.texts import Table, format_bytes, format_count, format_seconds, plural

if TYPE_CHECKING:
    from airflow_connect.cli.demo.airflow_process import AirflowProcess
    from airflow_connect.cli.demo.stage import Stage

NAME = "demo"
HELP = "copy a topic to S3 through Airflow, on a broker and an S3 server started for it"
DEFAULT_RECORDS = 60_000
OBJECTS_SHOWN = 5


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the number of records and for keeping the servers."""
    parser.add_argument(
        "--keep", action="store_true", help="keep the servers running until Ctrl-C, and show how to inspect them"
    )
    parser.add_argument(
        "--ui", action="store_true",
        help="start a whole Airflow with its UI instead: DAGs that copy, a worker, a failed connector to repair",
    )  # fmt: skip
    parser.add_argument(
        "--records", type=int, default=DEFAULT_RECORDS, help=f"records in the topic (default: {DEFAULT_RECORDS})"
    )


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Start servers, copy, show the result, copy again."""
    _check_installation()
    if arguments.ui:
        from airflow_connect.cli.demo import ui

        with _signals_as_exceptions():
            return ui.show(terminal)
    from airflow_connect.cli.demo import stage as stages
    from airflow_connect.cli.demo.airflow_process import AirflowProcess

    with _signals_as_exceptions(), stages.servers(terminal) as stage:
        connections = {"kafka_default": stage.kafka_connection, "aws_default": stage.aws_connection}
        log = terminal.err if terminal.verbose else None
        with AirflowProcess(stage.folder / "airflow", stage.dags, stages.DAG_ID, connections, log) as airflow:
            stages.fill(stage, arguments.records, terminal)
            with Step(terminal, "Airflow") as step:
                airflow.wait_until_ready()
                step.fact = f"3.3, DAG {stages.DAG_ID}"
            first = _dag_run(airflow, "First run", terminal)
            result = _show_result(stage, terminal)
            second = _dag_run(airflow, "Second run: nothing new in the topic", terminal)
        outcome = _outcome(first, second, result, terminal)
        if arguments.keep:
            _keep(stage, terminal)
        else:
            _print_next_steps(stage.dags, terminal)
    return outcome


def _check_installation() -> None:
    missing = [name for name in ("airflow", "pyspark", "boto3") if find_spec(name) is None]
    if missing:
        raise missing_package(" and ".join(missing), "demo", purpose="The demo", where="")


def _dag_run(airflow: AirflowProcess, title: str, terminal: Terminal) -> tuple[RunReport, float]:
    """A DAG run with its progress; returns the connector's report and the seconds of the whole DAG run."""
    terminal.note()
    terminal.note(line((title, "bold")))
    reports: list[RunReport] = []
    with progress_of(terminal) as progress:

        def observe(event: Any) -> None:
            if event["event"] == "end":
                reports.append(RunReport.from_json(event["report"]))
            progress(event)

        dag_run = airflow.run(observe)
    report = reports[-1]
    terminal.note(line(("✓ ", "green"), report_line(report), hang=2))
    return report, float(dag_run["seconds"])


def _show_result(stage: Stage, terminal: Terminal) -> dict[str, Any]:
    """The objects, counted by reading them, and the offsets, read from Kafka."""
    from airflow_connect.cli.demo.bucket import count_objects, directories
    from airflow_connect.cli.demo.stage import BUCKET

    objects = count_objects(stage.s3.client(), BUCKET)
    offsets = _offsets(stage)
    if not terminal.as_json:
        rows = [
            (directory + "/", *map(format_count, (files, records)), format_bytes(size))
            for directory, files, records, size in directories(objects)
        ]
        sums = (len(objects), sum(found.records for found in objects))
        size = format_bytes(sum(found.size_bytes for found in objects))
        rows.append(("all", *map(format_count, sums), size))
        _table(terminal, f"s3://{BUCKET}", ("DIRECTORY", "OBJECTS", "RECORDS", "SIZE"), rows)
        shown = [(o.key.rpartition("/")[2], format_count(o.records), format_bytes(o.size_bytes)) for o in objects]
        left = len(objects) - OBJECTS_SHOWN
        more = [(f"... {format_count(left)} more", "", "")] if left > 0 else []
        _table(terminal, "", ("OBJECT", "RECORDS", "SIZE"), [*shown[:OBJECTS_SHOWN], *more])
        rows = [(name, *map(format_count, (committed, end, end - committed))) for name, committed, end in offsets]
        _table(terminal, "group connect-meetups-to-s3", ("PARTITION", "COMMITTED", "END", "LAG"), rows)
    return {
        "objects": [found._asdict() for found in objects],
        "offsets": [{"partition": name, "committed": committed, "end": end} for name, committed, end in offsets],
    }


def _offsets(stage: Stage) -> list[tuple[str, int, int]]:
    """Partition, committed offset, end of the log."""
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.cli.demo.meetups import PARTITIONS, TOPIC
    from airflow_connect.kafka.admin.consumer_group import read_committed_offsets
    from airflow_connect.kafka.admin.watermarks import latest_offsets
    from airflow_connect.kafka.clients.short_lived import admin_client

    admin = admin_client({"bootstrap.servers": stage.kafka.bootstrap})
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    committed = read_committed_offsets(admin, "connect-meetups-to-s3", partitions)
    ends = latest_offsets(admin, partitions, "read_committed")
    return [(str(tp), committed.get(tp, 0), ends[tp]) for tp in partitions]


def _table(terminal: Terminal, title: str, header: tuple[str, ...], rows: list[Any]) -> None:
    terminal.print()
    if title:
        terminal.print(line((title, "bold")))
    terminal.print(Table(header, rows, "<".ljust(len(header), ">"), indent=2))


def _outcome(
    first: tuple[RunReport, float], second: tuple[RunReport, float], result: dict[str, Any], terminal: Terminal
) -> CommandOutcome:
    own = (second[0].ended_ms - second[0].started_ms) / 1000
    where = f"{format_seconds(own)} of its own work, {format_seconds(second[1])} including Airflow"
    terminal.note(line(where, indent=2))
    records = sum(found["records"] for found in result["objects"])
    runs = [{"report": report.to_json(), "dag_run_seconds": seconds} for report, seconds in (first, second)]
    return CommandOutcome(
        summary=f"{format_count(records)} records in {plural(len(result['objects']), 'object')}; second run {where}.",
        result={**result, "runs": runs},
    )


def _print_next_steps(dags: Path, terminal: Terminal) -> None:
    rows = [
        ("airflow-connect demo --keep", "keep the servers and inspect them"),
        (f"cp {_short(dags)}/* $AIRFLOW_HOME/dags/", "take DAG and configuration to your Airflow"),
        ("airflow-connect standalone --help", "the same without Airflow"),
        (page_url("how-to/use-in-your-airflow"), "connections, limits, retries, assets"),
    ]
    _what_next(terminal, rows)


def _keep(stage: Stage, terminal: Terminal) -> None:
    """Show how to inspect the servers, then wait for Ctrl-C."""
    worker, connector = stage.write_files()
    files = f"{worker.name} {connector.name}"
    key, secret = stage.s3.access_key, stage.s3.secret_key
    rows = [
        (f"cd {_short(stage.folder)}", "worker and connector configuration"),
        (f"airflow-connect plan {files}", ""),
        (f"airflow-connect standalone {files}", ""),
        (f"kcat -b {stage.kafka.bootstrap} -t meetups -C -c 3", "three records"),
        (f"export AWS_ACCESS_KEY_ID={key} AWS_SECRET_ACCESS_KEY={secret}", ""),
        (f"aws --endpoint-url {stage.s3.endpoint_url} s3 ls --recursive s3://meetups", "the objects"),
    ]
    _what_next(terminal, rows)
    terminal.note()
    terminal.note(line(("The servers run until you press Ctrl-C.", "bold")))
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    terminal.note()


def _what_next(terminal: Terminal, rows: list[tuple[str, str]]) -> None:
    terminal.note()
    terminal.note(line(("What to try next", "bold")))
    width = max(len(command) for command, why in rows if why)
    for command, why in rows:
        words: tuple[Part, ...] = (f"{command:{width}}  ", (why, "dim")) if why else (command,)
        terminal.note(line(*words, indent=2, breaks=False))


def _short(path: Path) -> str:
    """A short form of a path: relative to the current folder or to the home folder, if that is shorter."""
    for base, prefix in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(base):
            return prefix + str(path.relative_to(base))
    return str(path)


@contextlib.contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so both stop the servers."""

    def handler(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
