"""SIGKILL and SIGSTOP at random moments, and at every named step, while a proxy spoils half of all commits.

2 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them, as in `test_kill_rounds.py`. The catalog
is Iceberg's own REST servlet. Late requests outlive a killed run in the proxy. Meanwhile another writer appends rows to
the table and expires all snapshots but the newest. The same over a Hive metastore, which no proxy spoils.
"""

import threading
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from tests.crash.rounds import PARTITIONS
from tests.crash.test_kill_rounds import FIRST_SEED, KILL_ROUNDS, batches, play
from tests.support.copies.iceberg import FOREIGN, iceberg_sink
from tests.support.faulty_rest import faulty_rest

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

SPOILT = 0.5
PAUSE_S = 0.7


class Foreigner:
    """Another writer of the same tables, which reaches the catalog directly."""

    def __init__(self, properties):
        self._properties = properties
        self._sinks, self._stop, self._writing = [], threading.Event(), threading.Lock()
        self.rows = {}
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def join(self, sink):
        """Write to the table of a sink, too."""
        self._sinks.append(sink)

    def leave(self, sink):
        """Write no more to its table; returns when nothing is being written there."""
        with self._writing:
            self._sinks.remove(sink)

    def end(self):
        self._stop.set()
        self._thread.join()

    def _work(self):
        while not self._stop.wait(PAUSE_S):
            for sink in list(self._sinks):
                with self._writing:
                    if sink in self._sinks:
                        self._write(sink)

    def _write(self, sink):
        table = sink.table_at(self._properties)
        if table is not None and sink.rows():
            self._append(sink.table_name, table)

    def _append(self, name, table):
        columns = {field.name: [FOREIGN if field.name == "n" else None] for field in table.schema().fields}
        try:
            table.append(pa.Table.from_pydict(columns, table.schema().as_arrow()))
        except CommitFailedException:
            return  # The run was faster.
        self.rows[name] = self.rows.get(name, 0) + 1
        if self.rows[name] % 2:
            try:
                table.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
            except CommitFailedException:
                return


def play_over(seeds, foreigner, make_sink, properties):
    """Play rounds; runs reach the catalog by `properties`."""

    def sink(seed):
        made = make_sink(seed)
        made.catalog_properties = properties
        foreigner.join(made)
        made.before_removal = lambda: foreigner.leave(made)
        return made

    try:
        play(seeds, sink)
    finally:
        foreigner.end()


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_commit_every_record_exactly_once(kafka, iceberg_rest, tmp_path, make_topic, seeds):
    with faulty_rest(iceberg_rest.uri, SPOILT) as proxy:
        play_over(
            seeds,
            Foreigner({"type": "rest", "uri": iceberg_rest.uri}),
            lambda seed: iceberg_sink(kafka, tmp_path / str(seed), make_topic(partitions=PARTITIONS)),
            {"type": "rest", "uri": proxy.uri},
        )


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_runs_over_a_hive_metastore_that_compares(kafka, metastore, tmp_path, make_topic, seeds):
    properties = {"type": "hive", "uri": metastore.uri, "warehouse": f"file://{tmp_path}/warehouse"}
    play_over(
        seeds,
        Foreigner(properties),
        lambda seed: iceberg_sink(kafka, tmp_path / str(seed), make_topic(partitions=PARTITIONS)),
        properties,
    )
