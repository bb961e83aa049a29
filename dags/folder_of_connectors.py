"""One DAG for each connector file of the folder `connectors`, with the schedule that stands beside it. A DAG to copy.

To add a connector, put its configuration there: `orders.json` or `orders.properties`, and `orders.dag.json` with its
schedule. A file that cannot be used becomes an import error; the other DAGs stay.
"""

# [START howto]
from pathlib import Path

from airflow_connect.operators.dag_factory import DagSettings, connector_dags

connector_dags(
    Path(__file__).with_name("connectors"),
    settings=DagSettings(schedule="@hourly", retries=3),  # for connectors without a file of their own
    kafka_conn_id="kafka_default",
)
# [END howto]
