"""References to config providers on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.values.broken_configs import DATA, WORKER, valid
from tests.unit.cli.conftest import Done

ROOT = Path(__file__).parents[3]
Cli = Callable[..., Done]
(SINK,) = [name for name in DATA if name.endswith("S3SinkConnector")]
SECRET = "hunter22-of-nobody"


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., list[Path]]:
    """Files of a worker with the providers `file` and `env`, and of a connector."""
    (tmp_path / "secrets.properties").write_text(f"secret={SECRET}\n")
    providers = {
        "config.providers": "file,env",
        "config.providers.file.class": "FileConfigProvider",
        "config.providers.env.class": "EnvVarConfigProvider",
    }

    def write(**changes: str) -> list[Path]:
        connector = {**valid(SINK), **{key.replace("_", "."): value for key, value in changes.items()}}
        paths = [tmp_path / "worker.json", tmp_path / "connector.json"]
        for path, config in zip(paths, ({**valid(WORKER), **providers}, connector), strict=True):
            path.write_text(json.dumps(config).replace("SECRETS", str(tmp_path / "secrets.properties")))
        return paths

    return write


def validate(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "airflow_connect.cli", "validate", "--json", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def levels(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    (connector,) = json.loads(done.stdout)["result"]["connectors"]
    return {finding["key"]: finding["level"] for finding in connector["findings"]}


def test_validate_shows_references_and_not_what_they_stand_for(files: Callable[..., list[Path]]) -> None:
    done = validate(*files(aws_secret_access_key="${file:SECRETS:secret}", flush_size="${file:SECRETS:secret}"))
    assert done.returncode == 2
    assert levels(done) == {"flush.size": "error"}
    assert "${file:" in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_validate_without_the_worker_leaves_references_open(files: Callable[..., list[Path]]) -> None:
    connector = files(flush_size="${env:SIZE}", tasks_max="${vault:a:b}")[1]
    done = validate(connector)
    assert levels(done) == {"flush.size": "unknown", "tasks.max": "unknown"}


def test_validate_accepts_what_only_airflow_knows_and_says_so(files: Callable[..., list[Path]]) -> None:
    done = validate(*files(aws_secret_access_key="${airflow:s3:password}", flush_size="${airflow:var:size}"))
    assert done.returncode == 0
    assert levels(done) == {"aws.secret.access.key": "unknown", "flush.size": "unknown"}
    assert "config.providers.airflow.class" in done.stdout


@pytest.mark.parametrize("command", ["standalone", "plan"])
def test_missing_value_ends_the_command_before_anything_is_started(
    cli: Cli, files: Callable[..., list[Path]], command: str
) -> None:
    done = cli(command, *files(aws_secret_access_key="${file:SECRETS:other}"))
    assert done.exit_code == 2
    assert "Configuration aws.secret.access.key refers to ${file:" in done.err


def test_set_takes_a_reference_to_a_secret_and_no_secret(
    cli: Cli, files: Callable[..., list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    key, paths = "aws.secret.access.key", files()
    done = cli("plan", "--set", f"{key}=${{env:NOT_SET_ANYWHERE}}", *paths)
    assert f"Configuration {key} refers to ${{env:NOT_SET_ANYWHERE}}" in done.err
    with pytest.raises(SystemExit):
        cli("plan", "--set", f"{key}=x${{env:HOME}}{SECRET}", *paths)
    assert SECRET not in capsys.readouterr().err


NOISY = """
import os, subprocess, sys
from airflow_connect.cli.private_streams import NoiseFilter, take_streams
from airflow_connect.cli.terminal import Terminal

out, err = take_streams(verbose=True)
terminal = Terminal(out, err, verbose=True, noise=NoiseFilter(err))
os.write(2, b"before\\n")
terminal.hide({{"${{env:X}}": {secret!r}}})
terminal.note("told by us: " + {secret!r})
terminal.print("result: " + {secret!r})
print("printed: " + {secret!r})
os.write(2, b"written: " + {secret!r}.encode() + b"\\n")
subprocess.run(["sh", "-c", "echo of a child: " + {secret!r} + " >&2"], check=True)
os.write(1, b"the last words, without a line end")
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_noise_of_all_writers_passes_the_filter_of_a_verbose_command(unbuffered: str) -> None:
    code = NOISY.format(secret=SECRET)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    # What is a result is names and counts: it is not searched.
    assert done.stdout == f"result: {SECRET}\n"
    assert sorted(done.stderr.splitlines()) == [
        "before", "of a child: ${env:X}", "printed: ${env:X}", "the last words, without a line end",
        "told by us: ${env:X}", "written: ${env:X}",
    ]  # fmt: skip
