"""What a shell offers when somebody presses the tabulator key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]


def completions(words: str, folder: Path) -> list[str]:
    """What argcomplete offers behind `words`, by its protocol with bash."""
    answer = folder.parent / "answer"
    line = f"airflow-connect {words}"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
        "PYTHONPATH": str(PROJECT),
    }
    command = [sys.executable, "-m", "airflow_connect.cli"]
    done = subprocess.run(command, env={**os.environ, **asked}, cwd=folder, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    return sorted(word.strip() for word in answer.read_text().split("\n"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    (made / "more").mkdir(parents=True)
    for name in ("worker.properties", "orders.json", "notes.txt", "more/other.json"):
        (made / name).touch()
    return made


def test_commands_are_completed(folder: Path) -> None:
    assert set(completions("", folder)) >= {"standalone", "plan", "validate", "dlq", "demo"}
    assert completions("stan", folder) == ["standalone"]
    assert completions("dlq ", folder)[-2:] == ["replay", "show"]
    assert completions("plan --v", folder) == ["--verbose"]


@pytest.mark.parametrize("command", ["standalone", "plan worker.properties", "dlq show", "validate orders.json"])
def test_configuration_files_and_directories_are_completed_and_nothing_else(command: str, folder: Path) -> None:
    files = [word for word in completions(f"{command} ", folder) if not word.startswith("-")]
    assert files == ["more/", "orders.json", "worker.properties"]
    assert completions(f"{command} more/", folder) == ["more/other.json"]


def test_names_of_a_worker_that_does_not_answer_are_not_offered_but_files_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONNECT_URL", "http://127.0.0.1:9")
    assert {word for word in completions("connectors pause ", folder) if not word.startswith("-")} <= {""}
    words = {word for word in completions("offsets get ", folder) if not word.startswith("-")}
    assert words == {"more/", "orders.json", "worker.properties"}
