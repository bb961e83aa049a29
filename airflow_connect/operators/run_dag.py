"""Runs one DAG with `dag.test` whenever its parent process requests it. A separate process for the demo.

usage: python -m airflow_connect.operators.run_dag DAGS_FOLDER DAG_ID, with AIRFLOW_HOME set
stdin: each line starts a run; the end of stdin ends the process.
stdout: JSON lines: `ready` when the database is migrated and the DAG is loaded; then for each run the events
of its connectors (runtime.spec.Observer) and `dag_run` {state, run_id, seconds}. Everything else goes to
stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError
from airflow_connect.operators.connector import ConnectorOperator

if TYPE_CHECKING:
    from airflow.sdk import DAG


def main(dags_folder: str, dag_id: str) -> None:
    """Migrate the database, load the DAG, then run it for each line of stdin."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)

        def tell(event: Mapping[str, Any]) -> None:
            out.write(json.dumps(event, default=str) + "\n")
            out.flush()

        dag = _load(dags_folder, dag_id)
        ConnectorOperator.listeners.append(tell)
        tell({"event": "ready"})
        for _ in sys.stdin:
            began = time.monotonic()
            run = dag.test(logical_date=None)
            seconds = round(time.monotonic() - began, 2)
            tell({"event": "dag_run", "state": str(run.state), "run_id": run.run_id, "seconds": seconds})


def _load(dags_folder: str, dag_id: str) -> DAG:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.utils.db import initdb

    initdb()
    bag = DagBag(dag_folder=dags_folder)
    if dag_id not in bag.dags:
        raise ConfigError(
            f"The folder {dags_folder} has no DAG called {dag_id!r}: {bag.import_errors or sorted(bag.dags)}."
        )
    dag: DAG = bag.dags[dag_id]
    for task in dag.tasks:
        task.retries = 0  # A user is watching: report a failure at once, not after the retry delays.
    return dag


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
