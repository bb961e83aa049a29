"""No number, depth or size in a message, a header or a configuration hangs a conversion or ends it in a raw error.

A large dose, with a new seed each time, is played with AIRFLOW_CONNECT_SOAK=1.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = bool(os.environ.get("AIRFLOW_CONNECT_SOAK"))
CASES = 4_000 if SOAK else 60
ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(0 if SOAK else 300)
def test_hostile_input_ends_in_a_value_or_an_error_of_the_project(tmp_path: Path) -> None:
    current = tmp_path / "case"
    seed = random.SystemRandom().randrange(10**9) if SOAK else 20
    command = [sys.executable, "-m", "tests.unit.limits.worker", str(current), str(seed), str(CASES)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    played = current.read_text(encoding="utf-8") if current.exists() else "nothing"
    assert ended.returncode == 0, (
        f"Seed {seed}. The last case was {played[:2000]}\n{ended.stdout[-20_000:]}\n{ended.stderr[-6_000:]}"
    )
