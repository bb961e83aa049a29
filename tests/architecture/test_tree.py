"""Habits of the tree: small files that say what they are, nothing that ties it to a machine or a host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
MAX_LINES = 500
FORBIDDEN_NAMES = {"utils.py", "helpers.py", "common.py", "base.py", "manager.py"}

# Spelled in pieces, so that this file is not its own finding.
REGISTRY_HOST = re.compile(
    r"\b[\w.-]*(?:" + "|".join(("mav" + "en", "py" + "pi", "npm" + "js", "cra" + "tes")) + r")[\w-]*\.(?:org|com|io)\b"
)
MACHINE_PATH = re.compile(r"(?<![\w./$~-])/(?:" + "|".join(("work", "root", "home", "Users")) + r")/[\w.-]+")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = sorted({REPOSITORY / name for name in listed.stdout.split("\0") if name})
    return [path for path in paths if path.is_file()]


def test_no_python_file_is_longer_than_its_limit():
    lengths = {
        str(path.relative_to(REPOSITORY)): len(path.read_text().splitlines())
        for path in tracked("*.py")
        if "data" not in path.parts
    }
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md"])
def test_pages_name_the_limit_that_is_checked(page):
    assert re.findall(r"\b(\d+) lines", (REPOSITORY / page).read_text()) == [str(MAX_LINES)]


def test_no_module_has_a_name_that_says_nothing():
    assert [str(path) for path in tracked("*.py") if path.name in FORBIDDEN_NAMES] == []


@pytest.mark.parametrize("pattern", [REGISTRY_HOST, MACHINE_PATH], ids=["registry-host", "machine-path"])
def test_tree_names_no_registry_host_and_no_path_of_a_machine(pattern):
    found = []
    for path in tracked():
        if path.name == "requirements.lock" or path.is_relative_to(REPOSITORY / "tests" / "data"):
            text = path.read_bytes().decode("utf-8", "ignore") if path.name == "requirements.lock" else ""
        else:
            text = path.read_bytes().decode("utf-8", "ignore")
        found += [f"{path.relative_to(REPOSITORY)}: {match.group()}" for match in pattern.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("https://repo1.mav" + "en.org/x", REGISTRY_HOST),
        ("index = files.py" + "pi.org", REGISTRY_HOST),
        ("open('/ro" + "ot/x.txt')", MACHINE_PATH),
        ("cd /wo" + "rk/main", MACHINE_PATH),
    ],
)
def test_patterns_find_what_they_are_for(text, pattern):
    assert pattern.search(text)


def test_benchmarks_can_be_started() -> None:
    """No test runs them, so a module that has moved would be noticed by whoever measures next."""
    paths = (REPOSITORY / "tests" / "bench").rglob("*.py")
    modules = sorted(".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in paths)
    program = f"import importlib\nfor name in {modules}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)  # noqa: PLW1510

    assert done.returncode == 0, done.stderr
