"""A disk that fills up under a source: that of a standalone worker's offsets file, and the broker's own.

The disks are real ones of a few megabytes, made in a user namespace (`unshare`), which needs no rights and leaves
nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROOT = Path(__file__).parents[4]


def on_a_small_disk(tmp_path: Path, size: str, what: str, **env: str) -> dict[str, Any]:
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = f"exec {sys.executable} -m tests.integration.runtime.source.full_disk"
    program = f"mount -t tmpfs -o size={size} tmpfs {disk} && {inside}"
    done = subprocess.run(  # noqa: PLW1510 (its output is looked at first)
        ["unshare", "-Urm", "sh", "-c", f"{program} {what} {disk}"],
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, **env},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_offsets_file_that_cannot_be_written_fails_the_run_and_the_next_one_repeats_nothing(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    found = on_a_small_disk(tmp_path, "64k", "offsets", BOOTSTRAP=kafka.bootstrap)

    assert [found[run]["status"] for run in ("first", "full", "after")] == ["done", "failed", "empty"]
    error = found["full"]["error"]
    assert "offset.storage.file.filename" in error["message"] and "No space left on device" in error["message"]
    assert error["retriable"] is True
    # The old file stays whole and alone; the topic of offsets knows what was written, and the next run copies that.
    assert (found["kept"], found["left"], found["changed"]) == (True, ["standalone.offsets"], True)
    assert found["values"] == {"0": list(range(12))}


@pytest.mark.budget(40)  # a broker of its own, started twice
def test_full_disk_of_the_broker_fails_the_run_and_the_next_one_has_each_record_once(tmp_path: Path) -> None:
    found = on_a_small_disk(tmp_path, "24m", "broker")

    assert [found[run]["status"] for run in ("first", "full", "after")] == ["done", "failed", "done"]
    assert found["full"]["error"]["retriable"] is True
