"""What the commands print, to which stream, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.documentation import error_url
from tests.unit.cli.conftest import Done

Cli = Callable[..., Done]
Connector = Callable[..., Path]


def test_standalone_prints_the_result_on_stdout_and_the_progress_on_stderr(
    cli: Cli, worker: Path, connector: Connector
) -> None:
    done = cli("standalone", worker, connector("orders"))
    assert done.exit_code == 0
    assert done.out == "✓ orders: 20 records in 2 files, 900 B, 0.50 s, exactly_once.\n"
    lines = done.err.splitlines()
    assert lines[0].startswith("orders: run ")
    assert lines[1:] == [
        "plan ...",
        "TOPIC    PARTITION  START  END  RECORDS  TASK",
        "meetups          0      0   10       10     0",
        "meetups          1      0   10       10     0",
        "Up to 20 records of 2 partitions in 1 task.",
        "copy ...",
    ]


def test_standalone_on_a_terminal_draws_a_bar(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("standalone", worker, connector("orders"), tty=True)
    assert "\033[32m✓\033[0m copy     " in done.err
    assert "━" * 12 in done.err
    assert "100%  20 records  900 B" in done.err
    assert done.out == "\033[32m✓ \033[0morders: 20 records in 2 files, 900 B, 0.50 s, exactly_once.\n"


def test_no_color_is_obeyed(cli: Cli, worker: Path, connector: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    done = cli("standalone", worker, connector("orders"), tty=True)
    assert "\033[3" not in done.out + done.err


def test_standalone_with_nothing_to_copy(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("standalone", worker, connector("orders", fake="empty"))
    assert (done.exit_code, done.out) == (0, "✓ orders: nothing to copy, 0.50 s.\n")


def test_failed_connector_does_not_keep_the_others_from_running(cli: Cli, worker: Path, connector: Connector) -> None:
    files = [connector("a", fake="away"), connector("b"), connector("c", fake="config"), connector("d")]
    done = cli("standalone", worker, *files)
    assert done.exit_code == 2
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["✓ b", "✓ d"]
    assert done.err.endswith(
        "✗ server.unavailable  some.key\n"
        "  a: It went wrong.\n"
        "  → Do something.\n"
        f"  {error_url('server.unavailable')}\n"
        "✗ config.invalid  some.key\n"
        "  c: It went wrong.\n"
        "  → Do something.\n"
        f"  {error_url('config.invalid')}\n"
    )


@pytest.mark.parametrize(("fake", "code"), [("copy", 0), ("empty", 0), ("away", 1), ("fenced", 1), ("config", 2)])
@pytest.mark.parametrize("command", ["standalone", "plan"])
def test_exit_code_follows_the_error(
    cli: Cli, worker: Path, connector: Connector, command: str, fake: str, code: int
) -> None:
    assert cli(command, worker, connector("orders", fake=fake)).exit_code == code


def test_missing_connector_file_is_named_and_the_next_one_runs(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("standalone", worker, "/nowhere/x.json", connector("b"))
    assert done.exit_code == 2
    assert "✗ config.file_missing\n  x.json: There is no file /nowhere/x.json.\n" in done.err
    assert done.out.startswith("✓ b: ")


def test_missing_file_is_named_before_a_missing_worker(cli: Cli) -> None:
    done = cli("lint", "/nowhere/orders.json")
    assert done.exit_code == 2
    assert "There is no file /nowhere/orders.json." in done.err


def test_missing_worker_file_ends_the_command(cli: Cli, connector: Connector) -> None:
    done = cli("standalone", "/nowhere/worker.properties", connector("b"))
    assert (done.exit_code, done.out) == (2, "")
    assert "There is no file /nowhere/worker.properties." in done.err


def test_plan_prints_a_table_of_each_connector(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("plan", worker, connector("orders"), connector("idle", fake="empty"))
    assert done.err == ""
    assert done.out == (
        "orders\n"
        "  TOPIC    PARTITION  START  END  RECORDS  TASK\n"
        "  meetups          0      0   10       10     0\n"
        "  meetups          1      0   10       10     0\n"
        "  Up to 20 records of 2 partitions in 1 task.\n"
        "idle\n"
        "  Nothing to copy.\n"
    )


def test_validate_prints_every_finding(cli: Cli, connector: Connector) -> None:
    findings = [
        {"key": "flush.size", "message": "Missing required configuration.", "suggestion": "Set it.", "level": "error"},
        {"key": "s3.proxy.url", "message": "Has no meaning here.", "suggestion": "", "level": "ignored"},
    ]
    done = cli("validate", connector("good"), connector("bad", findings=findings))
    folder = connector("good").parent
    assert done.exit_code == 2
    assert done.out == (
        f"✓ good  {folder}/good.json\n"
        f"✗ bad  {folder}/bad.json\n"
        "  ✗ flush.size\n"
        "      Missing required configuration.\n"
        "      → Set it.\n"
        "  ⚠ s3.proxy.url (ignored)\n"
        "      Has no meaning here.\n"
    )


def test_validate_takes_a_worker_file_in_front(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("validate", "--json", worker, connector("good"))
    assert [entry["name"] for entry in done.envelope["result"]["connectors"]] == ["good"]


def test_validate_reports_a_file_that_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"name": ')
    done = cli("validate", broken)
    assert done.exit_code == 2
    assert "broken.json is not JSON" in done.out


def test_json_of_a_success_is_one_envelope(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("standalone", "--json", worker, connector("orders"))
    envelope = done.envelope
    assert list(envelope) == ["command", "ok", "summary", "result", "error"]
    assert (envelope["command"], envelope["ok"], envelope["error"]) == ("standalone", True, None)
    assert envelope["summary"] == "1 of 1 connector done, 20 records."
    assert envelope["result"]["connectors"][0]["report"]["committed"] == {"meetups-0": 10, "meetups-1": 10}


@pytest.mark.parametrize("command", ["standalone", "plan"])
def test_json_of_failures_has_the_worst_error(cli: Cli, worker: Path, connector: Connector, command: str) -> None:
    done = cli(command, "--json", worker, connector("a", fake="config"), connector("b", fake="away"))
    assert done.envelope["ok"] is False
    assert done.envelope["error"]["code"] == "config.invalid"
    assert done.envelope["error"]["configPath"] == "some.key"
    assert done.exit_code == 2


def test_json_of_findings_has_no_error(cli: Cli, connector: Connector) -> None:
    finding = {"key": "flush.size", "message": "Missing.", "suggestion": "", "level": "error"}
    done = cli("validate", "--json", connector("bad", findings=[finding]))
    assert (done.envelope["ok"], done.envelope["error"], done.exit_code) == (False, None, 2)
    assert done.envelope["result"]["connectors"][0]["findings"] == [finding]


def test_validate_describes_a_class_as_json_schema(cli: Cli) -> None:
    done = cli("validate", "--json-schema", "S3Sink")
    schema = json.loads(done.out)
    assert (done.exit_code, schema["title"]) == (0, "S3Sink")
    assert "s3.bucket.name" in schema["required"]
    assert cli("validate", "--json", "--json-schema", "S3Sink").envelope["result"] == {"schema": schema}
    unknown = cli("validate", "--json-schema", "S3Sunk")
    assert (unknown.exit_code, unknown.out) == (2, "")
    assert "Did you mean" in unknown.err


def test_defect_is_reported_with_its_traceback_and_an_envelope(cli: Cli, worker: Path, connector: Connector) -> None:
    broken = connector("orders", fake="defect", **{"sasl.password": "hunter2-of-the-test"})
    done = cli("standalone", "--json", worker, broken, connector("next"))
    assert done.exit_code == 1
    assert done.envelope["error"]["code"] == "internal.error"
    assert done.envelope["result"]["connectors"][1]["report"]["status"] == "done"
    assert "AssertionError: a defect of ours near [hidden]" in done.err
    assert "hunter2" not in done.out + done.err


def test_own_error_shows_no_traceback(cli: Cli, worker: Path, connector: Connector) -> None:
    assert "Traceback" not in cli("plan", worker, connector("orders", fake="config")).err


@pytest.mark.parametrize(("place", "records"), [("front", 7), ("end", 7), ("nowhere", 20)])
def test_set_wins_over_the_file_of_every_connector(
    cli: Cli, worker: Path, connector: Connector, place: str, records: int
) -> None:
    files = [worker, connector("a"), connector("b")]
    words = ["--set", "run.max.records=7"]
    argv = {"front": [*words, *files], "end": [*files, *words], "nowhere": files}[place]
    reports = [found["report"] for found in cli("standalone", "--json", *argv).envelope["result"]["connectors"]]
    assert [report["records"] for report in reports] == [records, records]


def test_set_is_heard_by_plan(cli: Cli, worker: Path, connector: Connector) -> None:
    done = cli("plan", worker, connector("orders"), "--set", "fake=config", "--set", "other=a=b")
    assert (done.exit_code, done.err.splitlines()[0]) == (2, "✗ config.invalid  some.key")


@pytest.mark.parametrize("setting", ["run.max.records", "=7", "aws.secret.access.key=wonder1and"])
def test_set_refuses_what_is_no_setting_and_what_is_secret(
    cli: Cli, worker: Path, connector: Connector, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli("standalone", worker, connector("orders"), "--set", setting)
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert "argument --set: " in printed
    assert "wonder1and" not in printed
