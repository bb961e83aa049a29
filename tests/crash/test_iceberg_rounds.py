"""SIGKILL and SIGSTOP at random moments, and at every named step, while a catalog spoils half of all commits.

4 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them, as in `test_kill_rounds.py`: two of four
with Iceberg's own REST catalog behind a proxy, whose late requests outlive a killed run, two with a catalog in SQLite,
where another writer appends rows and expires snapshots between.
"""

import pytest

from tests.crash.rounds import PARTITIONS
from tests.crash.test_kill_rounds import FIRST_SEED, KILL_ROUNDS, batches, play
from tests.support.copies.iceberg import iceberg_sink
from tests.support.faulty_rest import faulty_rest

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

SPOILT = 0.5
IN_SQLITE = {
    "iceberg.catalog.type": None,
    "iceberg.catalog.py-catalog-impl": "tests.support.faulty_catalog.FaultyCatalog",
    "iceberg.catalog.faults": str(SPOILT),
}


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_commit_every_record_exactly_once(kafka, iceberg_rest, tmp_path, make_topic, seeds):
    with faulty_rest(iceberg_rest.uri, SPOILT) as proxy:

        def sink(seed):
            spoilt = IN_SQLITE if seed % 2 else {}
            made = iceberg_sink(kafka, tmp_path / str(seed), make_topic(partitions=PARTITIONS), **spoilt)
            if not spoilt:
                made.catalog_properties = {"type": "rest", "uri": proxy.uri}
            return made

        play(seeds, sink)
