"""`make lint` names code that nothing uses (vulture); here: that it looks, and that its list of exceptions is short."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["vulture"]


def _unused(*arguments: str) -> set[str]:
    command = [sys.executable, "-m", "vulture", *arguments]
    outcome = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=200, check=False)
    assert outcome.returncode in (0, 3), outcome.stderr
    return set(re.findall(r"unused \w+ '(\w+)'", outcome.stdout))


def test_every_exception_is_needed() -> None:
    everything = _unused("--ignore-names", "no_such_name")
    assert set(SETTINGS["ignore_names"]) - everything == set()


def test_code_that_nothing_uses_is_found(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("def used():\n    return 1\n\n\ndef forgotten():\n    return used()\n")
    assert _unused(str(tmp_path)) == {"forgotten"}


def test_lint_looks_for_it() -> None:
    lint = (PROJECT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    assert "$(BIN)/vulture" in lint
