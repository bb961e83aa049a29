"""SIGKILL and SIGSTOP at random moments, and at every named step, while documents are written to a real OpenSearch.

2 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them, as in `test_kill_rounds.py`.
"""

import pytest

from tests.crash.rounds import PARTITIONS
from tests.crash.test_kill_rounds import FIRST_SEED, batches, play
from tests.support.copies.search_sink import search_sink
from tests.support.session.searching import KILL_ROUNDS

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(30)]


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_index_every_record_exactly_once(kafka, opensearch, make_topic, seeds):
    play(seeds, lambda seed: search_sink(kafka, opensearch, make_topic(partitions=PARTITIONS)))
