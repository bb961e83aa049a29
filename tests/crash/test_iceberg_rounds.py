"""SIGKILL and SIGSTOP at random moments, and at every named step, while a catalog spoils half of all commits.

4 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them, as in `test_kill_rounds.py`.
"""

import pytest

from tests.crash.rounds import PARTITIONS
from tests.crash.test_kill_rounds import FIRST_SEED, KILL_ROUNDS, batches, play
from tests.support.copies.iceberg import iceberg_sink

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_commit_every_record_exactly_once(kafka, tmp_path, make_topic, seeds):
    spoilt = {
        "iceberg.catalog.type": None,
        "iceberg.catalog.py-catalog-impl": "tests.support.faulty_catalog.FaultyCatalog",
        "iceberg.catalog.faults": "0.5",
    }
    play(
        seeds,
        lambda seed: iceberg_sink(kafka, tmp_path / str(seed), make_topic(partitions=PARTITIONS), **spoilt),
    )
