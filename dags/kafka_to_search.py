"""Copy a Kafka topic into an index of OpenSearch or Elasticsearch every ten minutes. A DAG to copy, with its file.

`clicks-to-search.json` is a configuration of Confluent's Elasticsearch sink. The addresses of the brokers come from the
Airflow connection `kafka_default`. Address, user and password of the server come from the connection `search_default`,
whose extra has a member `url`, such as `https://search.example.com:9200`.
"""

# [START howto]
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, Asset

from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG(
    dag_id="kafka_to_search",
    schedule="*/10 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,  # what is copied follows from the offsets in Kafka, not from the date of a run
    max_active_runs=1,
    params=run_params(),  # the trigger form asks how much to copy
    tags=["kafka", "search"],
    doc_md=__doc__,
):
    ConnectorOperator(
        task_id="copy_clicks",
        config_file=Path(__file__).with_name("clicks-to-search.json"),
        kafka_conn_id="kafka_default",
        retries=3,  # safe at any moment: a document that is written again is the same
        retry_delay=timedelta(minutes=1),
        outlets=[Asset("clicks_index")],
    )
# [END howto]
