"""The local store on file systems that refuse: full, read-only, forbidden, another one in the middle.

Each fault is a real one, made in a user namespace of its own (`unshare`), which needs no rights and leaves nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, os, sys
from airflow_connect.errors import ConnectError
from airflow_connect.stores.local.store import LocalStore
from airflow_connect.stores.store import FileIdentity

store, step, size = LocalStore(sys.argv[1]), sys.argv[2], int(sys.argv[3])
publisher = store.publisher(probe_prefix="topics/", overwrite=False)
try:
    if step == "preflight":
        publisher.preflight()
    stager = store.stager("run")
    file = stager.open(FileIdentity("topics/t/p/t+0+0.bin", "t", 0, 0, root="topics/"))
    try:
        file.write(b"x" * size)
        staged = file.close(1, 1).result()
    except ConnectError:
        file.abort()
        raise
    if step == "read-only":
        os.system(f"mount -o remount,ro {sys.argv[1]}")
    print(json.dumps({"outcome": [o.value for o in publisher.publish([staged], lambda _: None).values()]}))
except ConnectError as error:
    left = sorted(os.path.join(d, n) for d, _, names in os.walk(sys.argv[1]) for n in names)
    print(json.dumps({"code": error.code, "message": error.message, "retriable": error.retriable, "left": left}))
"""
TMPFS = "mount -t tmpfs -o size=256k tmpfs {root}"


def run(root: Path, setup: str, step: str, size: int = 1000, namespaces: str = "-Urm") -> dict[str, Any]:
    program = f"{setup.format(root=root)} && exec {sys.executable} -c '{PROGRAM}' {root} {step} {size}"
    done = subprocess.run(  # noqa: PLW1510 (its output is looked at first)
        ["unshare", namespaces, "sh", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def test_the_same_program_works_without_a_fault(root: Path) -> None:
    assert run(root, TMPFS, "preflight") == {"outcome": ["published"]}


def test_a_full_disk_is_said_and_may_pass_and_nothing_stays_on_it(root: Path) -> None:
    found = run(root, TMPFS, "preflight", size=1_000_000)

    assert (found["code"], found["retriable"], found["left"]) == ("local.disk_full", True, [])
    assert f"{root}/topics/+tmp/t/p/t+0+0.bin." in found["message"]


def test_a_read_only_file_system_is_said_by_the_preflight(root: Path) -> None:
    found = run(root, TMPFS + " && mkdir {root}/topics && mount -o remount,ro {root}", "preflight")

    assert (found["code"], found["retriable"]) == ("local.read_only", False)


def test_a_file_system_that_turns_read_only_keeps_the_staged_file(root: Path) -> None:
    found = run(root, TMPFS, "read-only")

    assert found["code"] == "local.read_only"
    assert len(found["left"]) == 1


@pytest.mark.parametrize("mode", ["0555", "0000"])
def test_a_directory_without_permission_is_said_by_the_preflight(root: Path, mode: str) -> None:
    # Without a mapping of users the process has lost root's right to pass over permissions.
    found = run(root, f"chmod {mode} {{root}}", "preflight", namespaces="-U")
    root.chmod(0o755)

    assert (found["code"], found["retriable"]) == ("local.forbidden", False)
    assert str(root) in found["message"]


def test_a_mount_between_staged_and_published_files_is_said(root: Path) -> None:
    setup = TMPFS + " && mkdir -p {root}/topics/t && mount -t tmpfs tmpfs {root}/topics/t"

    found = run(root, setup, "publish")

    assert found["code"] == "local.other_file_system"
