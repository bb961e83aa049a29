"""Programs on a real disk of a few megabytes, made in a user namespace (`unshare`).

That needs no rights and leaves nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.processes.drivers import PROJECT


def on_a_small_disk(tmp_path: Path, size: str, module: str, *arguments: str, **env: str) -> dict[str, Any]:
    """Run a program on a disk of its own; returns the JSON object that is its last line.

    The program gets its arguments and the folder of the disk.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = f"exec {sys.executable} -m {module}"
    program = f"mount -t tmpfs -o size={size} tmpfs {disk} && {inside}"
    done = subprocess.run(  # noqa: PLW1510 (its output is looked at first)
        ["unshare", "-Urm", "sh", "-c", f"{program} {' '.join(arguments)} {disk}"],
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, **env},
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
