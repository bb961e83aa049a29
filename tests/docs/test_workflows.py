"""Workflows, hooks and the build of the site name targets of the Makefile and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def steps_of(workflow: Path) -> list[dict[str, object]]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job.get("steps", [])]


def commands_of(workflow: Path) -> list[str]:
    return [str(step["run"]) for step in steps_of(workflow) if "run" in step]


def test_there_are_workflows_for_each_push_each_night_and_a_release():
    assert [path.stem for path in WORKFLOWS] == ["ci", "nightly", "release"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_targets_of_the_makefile(workflow):
    commands = commands_of(workflow)
    targets = {command.split()[1] for command in commands}
    assert commands
    assert all(command.startswith("make ") for command in commands)
    assert targets - TARGETS == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_limited_in_time_and_rights(workflow):
    found = yaml.safe_load(workflow.read_text("utf-8"))
    assert found["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in found["jobs"].values() if "uses" not in job)
    assert all("@" in str(step["uses"]) for step in steps_of(workflow) if "uses" in step)


def test_called_workflows_exist():
    called = [path for workflow in WORKFLOWS for path in re.findall(r"uses: \./(\S+)", workflow.read_text("utf-8"))]
    assert called
    assert [path for path in called if not (ROOT / path).exists()] == []


def test_the_night_has_the_time_of_ci_and_every_supported_python():
    job = yaml.safe_load((ROOT / ".github/workflows/nightly.yaml").read_text("utf-8"))["jobs"]["test"]
    versions = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert job["timeout-minutes"] == 90
    assert job["strategy"]["matrix"]["python"] == versions


def test_hooks_and_the_site_use_the_environment_of_the_lock():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    commands = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))["build"]["commands"]
    assert {hook["entry"].split()[0] for hook in hooks} == {".venv/bin/ruff"}
    assert commands[0] == "make docs"
