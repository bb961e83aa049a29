"""Property tests: one seed, printed with a failure, which alone decides what is tried."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FAILING = """
import importlib, json, os
from hypothesis import given, settings, strategies as st
from tests.support.session.searching import examples

importlib.import_module(os.environ["LOADED_BEFORE"])
tried = []

@settings(max_examples=examples(30))
@given(st.integers(), st.text(max_size=3))
def test_nothing_is_long(number, text):
    if len(tried) < examples(30):
        tried.append((number, text))
        open(os.environ["TRIED"], "w").write(json.dumps(tried))
    assert len(text) < 3
"""


def _run(folder: Path, loaded_before: str, *options: str, **variables: str) -> tuple[str, list[list[object]]]:
    """What pytest says of the failing test, and which examples it tried."""
    (folder / "test_failing.py").write_text(FAILING)
    tried = folder / "tried.json"
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull]
    outcome = subprocess.run(
        [*command, "--rootdir", str(folder), *options, str(folder / "test_failing.py")],
        cwd=PROJECT,
        env={**os.environ, "LOADED_BEFORE": loaded_before, "TRIED": str(tried), **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    return outcome.stdout, json.loads(tried.read_text())


def test_the_command_beside_a_failure_tries_the_same_examples(tmp_path: Path) -> None:
    said, tried = _run(tmp_path, "json", AIRFLOW_CONNECT_EXAMPLES="2", AIRFLOW_CONNECT_SOAK="1")
    (command,) = re.findall(r"^.*\.venv/bin/python -m pytest .*$", said, re.MULTILINE)
    variables, seed = re.match(r"(.*) \.venv.*::test_nothing_is_long (--hypothesis-seed=\d+)$", command).groups()  # type: ignore[union-attr]
    assert variables == "AIRFLOW_CONNECT_EXAMPLES=2 AIRFLOW_CONNECT_SOAK=1"
    assert f"property tests: {seed}" in said
    # Which modules of the package are loaded makes no difference.
    _, again = _run(tmp_path, "airflow_connect.layout.time.date_patterns", seed, AIRFLOW_CONNECT_EXAMPLES="2")
    assert again == tried


def test_every_number_of_examples_can_be_multiplied() -> None:
    literal = re.compile(r"max_examples\s*=\s*\d")
    assert [str(path) for path in sorted((PROJECT / "tests").rglob("*.py")) if literal.search(path.read_text())] == []
