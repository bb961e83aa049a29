"""`make bench ARGS=--peers` with few records: every peer copies, and every record of both is counted back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.peers.pairs import PEERS

pytestmark = [pytest.mark.integration, pytest.mark.soak]
ROOT = Path(__file__).parents[3]


# Starts two brokers, an S3 server, four workers of Kafka Connect and four Spark sessions, one after the other.
@pytest.mark.budget(180)
@pytest.mark.timeout(600)
def test_every_row_is_copied_by_both():
    command = [sys.executable, "tests/bench/run.py", "--peers", "--records", "20000"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ours / theirs") == len(PEERS)
    assert [name for name in PEERS if f"\n{name}" not in done.stdout] == []
