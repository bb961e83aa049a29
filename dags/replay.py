"""Copy a range of a topic again, into a folder of its own. A DAG to copy, started by hand.

The connector `meetups-to-files.json` goes on as before: the replay has its own name and its own offsets. Clearing the
task, or a retry, continues the same replay and copies nothing twice. A new DAG run is a new replay.
"""

# [START howto]
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_connect.operators.replay import ReplayOperator

with DAG(
    dag_id="replay",
    schedule=None,
    params={
        "start": Param("2026-11-20T00:00:00Z", type="string", description="A time, an offset, or earliest"),
        "until": Param("", type="string", description="The same; empty: up to what the connector has copied"),
    },
    tags=["kafka", "files"],
    doc_md=__doc__,
):
    ReplayOperator(
        task_id="replay_meetups",
        config_file=Path(__file__).with_name("meetups-to-files.json"),
        kafka_conn_id="kafka_default",
        start="{{ params.start }}",
        until="{{ params.until }}",
        into={"topics.dir": "replayed/{{ dag_run.run_after.strftime('%Y%m%dT%H%M%S') }}"},
        retries=3,
    )
# [END howto]
